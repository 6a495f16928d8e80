"""The rules of `check` for what is silently wrong: keys, arguments and side effects, and results that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from jitguide import _jaxprs
from jitguide._check import purity
from jitguide._check.rules import Finding, finding, named
from jitguide._display import significant
from jitguide._watch.signature import Signature


def keys(fn: Callable[..., Any], traced: Any) -> Iterator[Finding]:
    """Find random keys that the function captured: it draws the same numbers in each call."""
    names = {id(value): name for name, value in purity.captured(fn).items()}
    for c in _jaxprs.constants(traced.jaxpr):
        old = str(c.dtype) == "uint32" and c.shape[-1:] in ((2,), (4,)) and "key" in names.get(id(c), "")
        if old or str(c.dtype).startswith("key<"):
            yield finding(
                "captured key",
                f"The function captured {named(names, c, 'a random key')}: it draws the same numbers in each call.",
                "Pass the key as an argument, and split it outside before each call.",
            )


def unused(signature: Signature, traced: Any) -> Iterator[Finding]:
    """Find arguments that do not reach the result, though they hold arrays."""
    jaxpr = _jaxprs.open_jaxpr(traced.jaxpr)
    used = {id(v) for e in jaxpr.eqns for v in e.invars} | {id(v) for v in jaxpr.outvars}
    variables = iter(jaxpr.invars)
    for argument in (a for a in signature.arguments.values() if not a.static):
        own = [next(variables, None) for _ in argument.leaves]
        if own and not argument.name.startswith("_") and not any(v is None or id(v) in used for v in own):
            yield finding(
                "unused argument",
                f"`{argument.name}` is not used: its value does not reach the result.",
                "Use it, or remove it. A global, a default or an older variable may stand in its place.",
            )


def purities(fn: Callable[..., Any], acts: Sequence[str]) -> Iterator[Finding]:
    """Find what the body does while it is traced, and a compiled call leaves out."""
    if acts:
        yield finding(
            "impure body",
            f"The body uses {', '.join(acts[:4])}: that runs while JAX traces, and not in later calls.",
            "Pass times and random numbers as arguments; print values with `jax.debug.print`.",
        )
    for name in purity.leaks(fn):
        yield finding(
            "impure body",
            f"The body stores a tracer in `{name}`: a tracer has no value, and using it later raises an error.",
            "Return the value instead.",
        )


def disagreement(jitted: Any, plain: Any) -> Iterator[Finding]:
    """Find results that differ with and without jit by more than rounding."""
    pairs = list(zip(_numbers(jitted), _numbers(plain), strict=False))
    scale = max((float(np.nanmax(abs(b), initial=0)) for _, b in pairs), default=0)
    for a, b in pairs:
        rounding = max(
            (float(jax.numpy.finfo(x.dtype).eps) for x in (a, b) if x.dtype.kind not in "iub"), default=0
        )
        if a.shape == b.shape and np.allclose(a, b, 1e-3, max(1e-4, 64 * rounding) * scale, equal_nan=True):
            continue
        how = f"shapes {a.shape} and {b.shape}"
        if a.shape == b.shape:
            how = f"up to {significant(float(np.nanmax(abs(a - b))))} at a largest value of {significant(scale)}"
        yield finding(
            "disagreement",
            f"The results with and without jit differ: {how}.",
            "Most often the body is impure, reads a global that has changed, or indexes out of range; an "
            "unstable computation can also amplify rounding. Compare parts of it with `jax.disable_jit`.",
        )
        return


def _numbers(tree: Any) -> Iterator[np.ndarray]:
    for leaf in jax.tree.leaves(tree):
        number = isinstance(leaf, jax.Array | np.ndarray | np.generic | int | float | complex)
        if number and not str(getattr(leaf, "dtype", "")).startswith("key<"):
            value = np.asarray(leaf)
            yield value.astype(complex if value.dtype.kind == "c" else float)
