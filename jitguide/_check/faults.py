"""The rules of `check` for what is silently wrong: keys, arguments and side effects, and results that differ."""

import contextlib
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import checkify

from jitguide import _jaxprs
from jitguide._arguments import Arguments
from jitguide._check import jaxpr_scan, reach
from jitguide._check.findings import Finding, finding
from jitguide._display import significant
from jitguide._text import clean, first_sentence
from jitguide._timing.equality import apart
from jitguide._timing.rounding import Rounding, wide

_ACTS = 4  # that are named
_TO_THE_WORLD = "Pass times, random numbers, settings and what files contain as arguments, return what changes, and print with `jax.debug.print`."
_TO_A_CACHE = "Return what changes. A cache that is filled once, without a tracer, does no harm."
_TOLERANCE = 1e-3  # relative: what rounding alone may change
TRUNCATED = r"Explicitly requested dtype (\w+) .* truncated to dtype (\w+)"  # a warning of JAX


def keys(held: reach.Held, has_statics: bool, traced: Any) -> Iterator[Finding]:
    """Find random keys that are used twice, or are the same in each call: captured, or made in the body."""
    if _jaxprs.uses_a_key_twice(traced.jaxpr):
        yield finding(
            "key used twice",
            "A random key is used twice, so what is drawn is the same or related.",
            "Use each key once: get others from it by `jax.random.split` or `fold_in`.",
        )
    if not jaxpr_scan.draws_alike(traced.jaxpr):
        return
    found = (c for c in _jaxprs.constants(traced.jaxpr) if _jaxprs.key_kind(c))
    keys = [reach.named(held, c, "a random key") for c in found]
    where = f"captured {', '.join(dict.fromkeys(keys))}" if keys else "makes its random key itself"
    yield finding(
        "captured key",
        f"The function {where}: it draws the same numbers in each call{' with the same static arguments' * has_statics}.",
        "Pass the key as an argument, and split it outside before each call.",
    )


def purities(acts: Sequence[str], leaks: Sequence[str]) -> Iterator[Finding]:
    """Find what the body does while it is traced, and a compiled call leaves out."""
    if acts:
        what = ", ".join(acts[:_ACTS]).replace(", uses ", ", ")
        what += f" and {len(acts) - _ACTS} more" if len(acts) > _ACTS else ""
        yield finding(
            "impure body",
            f"The body {what}: that runs while JAX traces, and not in later calls.",
            _TO_A_CACHE if all(act.startswith("changes") for act in acts) else _TO_THE_WORLD,
        )
    for name in leaks:
        yield finding(
            "impure body",
            f"The body stores a tracer in `{name}`: a tracer has no value, and using it later raises an error.",
            "Return the value instead.",
        )


def kept_tracer() -> Iterator[Finding]:
    """Find a tracer that one trace leaves where the next one uses it."""
    yield finding(
        "impure body",
        "The body keeps a tracer of its first trace, for example in a cache such as `functools.lru_cache`: "
        "the next trace uses it and raises UnexpectedTracerError.",
        "Compute what is kept outside, with NumPy, or pass it as an argument.",
    )


def changed(names: Sequence[str]) -> Iterator[Finding]:
    """Find arguments that the body changes: a jitted function gets new containers, so the caller's stay as they were."""
    for name in names:
        yield finding(
            "impure body",
            f"The body changes its argument `{name}`: under jit, it changes a copy, and yours stays as it was.",
            "Return the new value.",
        )


@contextlib.contextmanager
def truncations(found: list[Finding]) -> Iterator[None]:
    """Add to `found` which dtypes a trace asks for in vain; all other warnings are passed on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    dtypes: dict[Any, None] = {}
    for one in caught:
        if match := re.match(TRUNCATED, str(one.message)):
            dtypes[match.groups()] = None
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    found += (
        finding(
            "truncated dtype",
            f"The body asks for {wanted} and gets {given}: JAX truncates 64-bit dtypes by default.",
            f"Ask for {given}, or set `jax_enable_x64`.",
        )
        for wanted, given in dtypes
    )


def disagreement(
    jitted: Any, plain: Any, arguments: Arguments, rounding: Rounding, impure: bool, coarsest: float
) -> Iterator[Finding]:
    """Find results that differ with and without jit by more than rounding.

    `impure` is whether the body is known to be, and `coarsest` the rounding of the coarsest dtype inside.
    """
    ours = [leaf.dtype for leaf in jax.tree.leaves(arguments) if isinstance(leaf, np.ndarray | np.generic)]
    cut = any(jax.dtypes.canonicalize_dtype(dtype) != dtype for dtype in ours)
    pairs = list(zip(numbers(jitted), numbers(plain), strict=False))
    for a, b in apart(max(_TOLERANCE, 8 * coarsest), pairs, rounding):
        how = f"shapes {a.shape} and {b.shape}"
        if a.shape == b.shape:
            one, two = wide(a), wide(b)
            finite = np.isfinite(one) & np.isfinite(two)
            extremes = (np.abs(x).max(initial=0) for x in (one[finite] - two[finite], two[finite]))
            difference, largest = (significant(float(x)) for x in extremes)
            how = f"up to {difference} at a largest value of {largest}"
        advice = (
            "Most often the body is impure, reads a global or an attribute that has changed, or indexes out of range; "
            "an unstable computation can also amplify rounding, and XLA may merge two divisions into one by a product that "
            "overflows. Compare parts of it with `jax.disable_jit`."
        )
        if cut:
            advice = f"Pass `jax.Array`s, because NumPy computes in 64 bits, and check again. {advice}"
        if a.dtype != b.dtype:
            how += f" in {a.dtype} and {b.dtype}"
            advice = "Pass `jax.Array`s, so that both compute in the same dtype; for 64 bits, set `jax_enable_x64`."
        if impure:
            advice = "The impure body may be the cause: fix that first, and check again."
        yield finding("disagreement", f"The results with and without jit differ: {how}.", advice)
        return


def out_of_range(error: IndexError) -> Iterator[Finding]:
    """Find an index that Python or NumPy refuses, and that JAX moves into the range or drops."""
    said = first_sentence(clean(str(error))).rstrip(".")
    yield finding(
        "disagreement",
        f"Without jit, the function raises IndexError: {said}. With jit, the index is clamped or the update dropped.",
        "Correct the index, or choose what JAX does with `x.at[i].get(mode=...)`.",
    )


def numbers(tree: Any) -> Iterator[Any]:
    """Yield the numbers of a result, without those in an error of checkify, which are new in each trace."""
    for leaf in jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, checkify.Error)):
        if isinstance(leaf, jax.Array | np.ndarray | np.generic | int | float | complex):
            yield leaf
