"""The rule of `check` for donated memory: donated in vain, or not donated although a result could have it."""

from collections.abc import Callable, Iterator
from typing import Any

import jax

from jitguide import _jax
from jitguide._check import inputs
from jitguide._check.findings import WORTH_BYTES, Finding, finding
from jitguide._display import size
from jitguide._watch.signature import Leaf, Signature


def donation(fn: Callable[..., Any], signature: Signature, traced: Any, lowered: Any) -> Iterator[Finding]:
    """Find arguments whose memory a result could take over."""
    leaves = [(a.name, leaf) for a in signature.arguments.values() if not a.static for leaf in a.leaves]
    infos = jax.tree.leaves(lowered.args_info)
    if len(infos) != len(leaves):
        return
    free = [(tuple(out.shape), str(out.dtype)) for out in jax.tree.leaves(traced.out_info)]
    donated = [(name, leaf) for (name, leaf), info in zip(leaves, infos, strict=True) if info.donated]
    donated.sort(key=lambda pair: (pair[1].shape, pair[1].dtype) not in free)
    used: dict[str, list[Leaf]] = {}
    lost: dict[str, list[Leaf]] = {}
    for name, leaf in donated:
        (used if _reused(leaf, free) else lost).setdefault(name, []).append(leaf)
    for name, without in lost.items():
        if name in used and sum(map(_bytes, without)) < WORTH_BYTES:
            continue  # a counter beside the arrays that matter
        what = f"{without[0].path} {without[0].type}".strip()
        yield finding(
            "donation",
            f"`{name}` is donated without effect: no result has the size of its {what}.",
            "Do not donate it, or return an update of it in the same shape and dtype.",
        )
    helped: dict[str, int] = {}
    for (name, leaf), info in zip(leaves, infos, strict=True):
        large = _bytes(leaf) >= WORTH_BYTES
        if large and not info.donated and (leaf.shape, leaf.dtype) in free:
            free.remove((leaf.shape, leaf.dtype))
            helped[name] = helped.get(name, 0) + _bytes(leaf)
    for name, saved in helped.items():
        yield finding(
            "donation",
            f"`{name}` has {size(saved)} in the shape and dtype of a result, and is not donated.",
            f"If you do not need it after the call, `{inputs.option('donate', fn, signature, name)}` lets XLA "
            "reuse it for the result.",
        )


def _reused(leaf: Leaf, free: list[tuple[tuple[int, ...], str]]) -> bool:
    """Take the result out of `free` that can have the memory of a leaf: of its shape and dtype, or of its size."""
    same = (leaf.shape, leaf.dtype)
    fits = (result for result in free if 0 < _bytes(leaf) == _size_of(*result))
    found = same if same in free else next(fits, None)
    if found is not None:
        free.remove(found)
    return found is not None


def _bytes(leaf: Leaf) -> int:
    return _size_of(leaf.shape, leaf.dtype)


def _size_of(shape: tuple[int, ...], dtype: str) -> int:
    try:
        return _jax.nbytes(shape, jax.numpy.dtype(dtype))
    except TypeError:  # such as a key of random numbers, whose dtype is JAX's own
        return 0
