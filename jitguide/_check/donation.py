"""The rule of `check` for donated memory: donated in vain, or not donated although a result could have it."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax

from jitguide import _jax
from jitguide._arguments import Arguments
from jitguide._check import inputs
from jitguide._check.findings import WORTH_BYTES, Finding, finding
from jitguide._display import size
from jitguide._jaxprs import bodies, liveness, name_stack, open_jaxpr
from jitguide._otherwise import otherwise
from jitguide._watch.signature import Leaf, Signature

_Source = tuple[frozenset[int], bool]
_NEW = (frozenset[int](), False)  # what is made from no input, and from no gradient


class _Result(NamedTuple):
    """A result: the inputs of its shape that it is made from, by number, and whether it is made from a gradient."""

    shape: tuple[int, ...]
    dtype: str
    updates: frozenset[int]
    gradient: bool


def donation(fn: Any, signature: Signature, traced: Any, lowered: Any, given: Arguments) -> Iterator[Finding]:
    """Find arguments whose memory a result could take over, and donated ones that are passed twice."""
    leaves = [(a.name, leaf) for a in signature.traced for leaf in a.leaves]
    infos, results = jax.tree.leaves(lowered.args_info), jax.tree.leaves(traced.out_info)
    sources = _sources(traced.jaxpr)
    if len(infos) != len(leaves) or len(sources) != len(results):
        return
    pairs = zip(results, sources, strict=True)
    free = [_Result(tuple(out.shape), str(out.dtype), *source) for out, source in pairs]
    every = [*free]
    donated = [(name, leaf) for (name, leaf), info in zip(leaves, infos, strict=True) if info.donated]
    donated.sort(key=lambda pair: not any(_same(pair[1], result) for result in free))
    used: dict[str, list[Leaf]] = {}
    lost: dict[str, list[Leaf]] = {}
    for name, leaf in donated:
        (used if _reused(leaf, free) else lost).setdefault(name, []).append(leaf)
    taken = {id(leaf) for some in used.values() for leaf in some}
    yield from _shared(signature, traced, given, taken)
    for name, without in lost.items():
        if name in used and sum(map(_bytes, without)) < WORTH_BYTES:
            continue  # a counter beside the arrays that matter
        what = f"{without[0].path} {without[0].type}".strip()
        left = " is left that" if _reused(without[0], [*every]) else ""
        yield finding(
            "donation",
            f"`{name}` is donated without effect: no result{left} has the size of its {what}.",
            "Do not donate it, or return an update of it in the same shape and dtype.",
        )
    helped = Counter[str]()
    large = {n: leaf for n, (_, leaf) in enumerate(leaves) if _bytes(leaf) >= WORTH_BYTES}
    for number in _helped({n: leaf for n, leaf in large.items() if not infos[n].donated}, free):
        helped[leaves[number][0]] += _bytes(large[number])
    for name, saved in helped.items():
        yield finding(
            "donation",
            f"`{name}` has {size(saved)} in the shape and dtype of a result, and is not donated.",
            f"If you do not need it after the call, `{inputs.option('donate', fn, signature, name)}` lets XLA "
            "reuse it for the result.",
        )


def _shared(signature: Signature, traced: Any, given: Arguments, donated: set[int]) -> Iterator[Finding]:
    """Find an array that is passed in two places that the result needs, and donated in one: JAX refuses that."""
    jaxpr = open_jaxpr(traced.jaxpr)
    values = dict(zip(signature.arguments, given[0], strict=False)) | given[1]
    arrays = [array for one in signature.traced for array in jax.tree.leaves(values[one.name])]
    leaves = [(f"{one.name}{leaf.path}", id(leaf)) for one in signature.traced for leaf in one.leaves]
    needed, places = liveness(jaxpr)[1], dict[int, list[tuple[str, int]]]()
    for array, leaf, variable in zip(arrays, leaves, jaxpr.invars, strict=False):
        if isinstance(array, jax.Array) and id(variable) in needed:
            places.setdefault(id(array), []).append(leaf)
    shared = [found for found in places.values() if len(found) > 1 and donated & {leaf for _, leaf in found}]
    if shared:
        names = " and ".join(f"`{name}`" for name, _ in shared[0])
        more = f" {len(shared) - 1} more arrays are passed twice." if len(shared) > 1 else ""
        yield finding(
            "donation",
            f"{names} are the same array, and it is donated: such a call raises an error.{more}",
            "Pass a copy in one of the places, made by `jnp.copy`.",
        )


def _helped(leaves: dict[int, Leaf], free: list[_Result]) -> list[int]:
    """Return the numbers of the leaves that a result can replace: each result replaces one, an input of its own first.

    A gradient replaces only what it is added to: its caller still needs the parameters.
    """
    found: set[int] = set()
    for own in (True, False):
        for number, leaf in leaves.items():
            fits = (
                one
                for one in free
                if _same(leaf, one) and (number in one.updates if own else not (one.updates or one.gradient))
            )
            if number not in found and (result := next(fits, None)):
                free.remove(result)
                found.add(number)
    return sorted(found)


def _sources(jaxpr: Any, done: dict[int, list[_Source]] | None = None) -> list[_Source]:
    """Return for each result the inputs of its shape that it is made from, by number, and whether from a gradient.

    What the backward pass of `jax.grad` returns is a gradient, and not made from an input.
    """
    done = {} if done is None else done
    if id(jaxpr) in done:
        return done[id(jaxpr)]
    inner = open_jaxpr(jaxpr)
    known = {id(v): (frozenset([number]), False) for number, v in enumerate(inner.invars)}
    for equation in inner.eqns:
        inputs = equation.invars
        backward = "transpose(" in name_stack(equation)
        gradient = backward or any(known.get(id(v), _NEW)[1] for v in inputs)
        inside = [(_sources(body, done), len(open_jaxpr(body).invars)) for body in bodies(equation)]
        inside = [(sources, count) for sources, count in inside if len(sources) == len(equation.outvars)]
        for place, out in enumerate(equation.outvars):
            # The inputs of a body are the last ones of its equation: a predicate comes first.
            feeds = [inputs[n - count] for sources, count in inside for n in sources[place][0]]
            feeds = feeds if inside else [v for v in inputs if _shape(v) == _shape(out)]
            updates = frozenset[int]().union(*(known.get(id(v), _NEW)[0] for v in feeds if not backward))
            known[id(out)] = updates, gradient or any(sources[place][1] for sources, _ in inside)
    done[id(jaxpr)] = [known.get(id(v), _NEW) for v in inner.outvars]
    return done[id(jaxpr)]


def _shape(variable: Any) -> tuple[int, ...]:
    return tuple(getattr(variable.aval, "shape", ()))


def _reused(leaf: Leaf, free: list[_Result]) -> bool:
    """Take the result out of `free` that can have the memory of a leaf: of its shape and dtype, or of its size."""
    fits = [one for one in free if 0 < _bytes(leaf) == _bytes(one)]
    same = [one for one in free if _same(leaf, one)]
    for found in (same or fits)[:1]:
        free.remove(found)
    return bool(same or fits)


def _same(leaf: Leaf, result: _Result) -> bool:
    return (leaf.shape, leaf.dtype) == (result.shape, result.dtype)


@otherwise(0)  # such as for a key of random numbers, whose dtype is JAX's own
def _bytes(one: Leaf | _Result) -> int:
    return _jax.nbytes(one.shape, jax.numpy.dtype(one.dtype))
