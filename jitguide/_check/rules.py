"""The rules of `check`: each looks for one thing that costs time or memory for nothing."""

import inspect
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from jitguide import _jaxprs
from jitguide._callables import parameters_of, static_names
from jitguide._check import jaxpr_scan
from jitguide._check.findings import WORTH_BYTES, Finding, finding
from jitguide._check.reach import Held, named
from jitguide._display import duration, significant, size
from jitguide._otherwise import otherwise
from jitguide._text import place, show
from jitguide._timing.phases import Phases
from jitguide._watch.reasons import COMPILE, TRACE, Reason
from jitguide._watch.signature import Signature
from jitguide._watch.signature_diff import differences, reason_for
from jitguide._watch.static_diff import by_identity, inside
from jitguide._watch.structure_diff import structures

# A program that needs more calls than this to earn its compile back is often a script that runs once.
MANY_CALLS, MANY_NUMBERS = 1000, 50
SMALL_CALL, CLEAR_GAIN = 100e-6, 1.2  # seconds; how many times faster jit makes a call for a gain in practice


def retraces(name: str, signatures: Sequence[Signature], passed: Sequence[Signature]) -> Iterator[Finding]:
    """Find example calls that compile again, one finding for each kind of reason, argument and advice.

    `signatures` are of what JAX gets, and `passed` of what you pass, which a library may turn into something else.
    """
    found: dict[tuple[str, str, str, str], list[Reason]] = {}
    total = len(signatures)
    pairs = [pair for pair in zip(signatures, passed, strict=True) if can_be_traced(pair[0])]
    signatures, passed = [one for one, _ in pairs], [one for _, one in pairs]
    for i, now in enumerate(signatures[1:], 1):
        earlier = signatures[:i]
        if any(not differences(before, now) for before in earlier):
            continue
        views = ((view, layer) for layer in (TRACE, COMPILE) for view in (passed, signatures))
        reasons = (reason_for(name, view[i], view[:i], layer) for view, layer in views)
        reason = next((one for one in reasons if one.kind not in ("unknown", "input kind")), None)
        if reason:
            does = "raise an error" if any(_cannot_compare(one, now) for one in earlier) else "compile again"
            found.setdefault((reason.kind, reason.argument, reason.advice, does), []).append(reason)
    for (*_, does), same in found.items():
        count = f"It makes {len(same)} of {total} example calls {does}."
        # "jit" is a name, which keeps its case.
        advice = re.sub("^(?!jit )[a-z]", lambda letter: letter[0].upper(), same[0].advice)
        yield finding("retrace", f"{same[0].sentence}.{same[0].rest} {count}", advice)


@otherwise(True)
def _cannot_compare(before: Signature, now: Signature) -> bool:
    """Return whether a static value, or the static part of a container, cannot say if it is equal, as arrays cannot."""
    for name in before.arguments.keys() & now.arguments.keys():
        old, new = before.arguments[name], now.arguments[name]
        bool((old.value, old.structure) == (new.value, new.structure))
    return False


def statics(signatures: Sequence[Signature]) -> Iterator[Finding]:
    """Find static values that cannot be hashed, or that are likely to be new on each call; of one kind, the first."""
    found: dict[tuple[str, str], Finding] = {}
    for argument in (one for signature in signatures for one in signature.arguments.values() if one.static):
        if one := _static(argument.name, argument.value):
            found.setdefault((argument.name, one.advice), one)
    yield from found.values()


def _static(name: str, value: Any) -> Finding | None:
    if not is_hashable(value):
        path, part = _unhashable(name, value)
        return finding(
            "static",
            f"Static `{path}` = {show(part)} is a {type(part).__name__}, which cannot be hashed.",
            "Pass a tuple or a frozen dataclass, or make it a traced argument.",
        )
    if isinstance(value, float):
        return finding(
            "static",
            f"Static `{name}` = {value!r} is a float: each value of it compiles again.",
            "Make it a traced argument, unless it has only a few values.",
        )
    if not callable(value) and by_identity(value):
        return finding(
            "static",
            f"Static `{name}` is a `{type(value).__name__}`, which compares by identity: an equal object "
            "compiles again, and a changed one does not.",
            "Define `__eq__` and `__hash__`, as a frozen dataclass does. If it holds arrays, make it a pytree.",
        )
    return None


def _unhashable(path: str, value: Any) -> tuple[str, Any]:
    """Return where the innermost part is that makes a value unhashable, and the part."""
    parts = inside(value, value) if getattr(type(value), "__hash__", None) else ()  # a list never has a hash
    found = next(((path + step, part) for step, part, _ in parts if not is_hashable(part)), None)
    return _unhashable(*found) if found else (path, value)


def numbers(signature: Signature) -> Iterator[Finding]:
    """Find arguments such as a long list of numbers of Python or NumPy."""
    for argument in signature.arguments.values():
        count = sum(
            leaf.origin.startswith(("Python", "NumPy")) and not leaf.shape for leaf in argument.leaves
        )
        if count >= MANY_NUMBERS:
            yield finding(
                "many numbers",
                f"`{argument.name}` contains {count} single numbers, and JAX handles each as an input of its own.",
                "Pass one array of them.",
            )


def cut_integers(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[Finding]:
    """Find traced integers of NumPy that are other numbers in JAX, because their dtype there has 32 bits."""
    static = static_names(fn, parameters_of(fn))
    given = inspect.signature(fn).bind(*args, **kwargs).arguments
    for name in (name for name in given if name not in static):
        for path, value in jax.tree_util.tree_leaves_with_path(given[name]):
            array = np.asarray(value) if isinstance(value, np.ndarray | np.integer) else np.empty(0)
            small = jax.dtypes.canonicalize_dtype(array.dtype)
            if array.dtype.kind in "iu" and (array != array.astype(small)).any():
                yield finding(
                    "truncated dtype",
                    f"`{name}{jax.tree_util.keystr(path)}` is {array.dtype} and becomes {small}, which is too "
                    "small for its numbers: they silently become others.",
                    "Subtract an offset or divide in NumPy, or set `jax_enable_x64`.",
                )


def can_be_traced(signature: Signature) -> bool:
    """Return whether all static values can be hashed: JAX refuses any other."""
    return all(is_hashable(a.value) for a in signature.arguments.values() if a.static)


@otherwise(False)
def is_hashable(value: Any) -> bool:
    return isinstance(hash(value), int)


def carries(signature: Signature, traced: Any) -> Iterator[Finding]:
    """Find a first argument that looks like the result but for a weak type or static fields: fed back, it traces again."""
    first = next((a for a in signature.arguments.values() if not a.static), None)
    if first is None:
        return
    results = traced.out_info
    for result in (results, results[0] if isinstance(results, tuple) and results else results):
        leaves, structure = jax.tree.flatten(result)
        differ = [*structures(first.name, first.structure, structure)] if structure != first.structure else []
        if differ and all(one.kind == "static field" for one in differ):
            yield finding(
                "retrace",
                f"{differ[0].sentence}, in the result: if you feed it back, the function compiles again.",
                "Make it a leaf, which is traced, or keep it as it is.",
            )
            return
        pairs = list(zip(first.leaves, leaves, strict=False))
        types = (leaf.shape == tuple(out.shape) and leaf.dtype == str(out.dtype) for leaf, out in pairs)
        if structure != first.structure or not all(types):
            continue
        for leaf, out in pairs:
            if leaf.weak and not getattr(out, "weak_type", False):
                yield finding(
                    "retrace",
                    f"`{first.name}{leaf.path}` is a weakly typed {leaf.type} ({leaf.origin}), and the "
                    "result that looks like it is strongly typed: if you feed it back, the function compiles again.",
                    f"Start from an array with a dtype, such as `jnp.asarray(0, jnp.{leaf.dtype})`.",
                )
        return


def constants(held: Held, traced: Any) -> Iterator[Finding]:
    """Find large arrays that the function captured instead of receiving them; `held` is what it holds by name."""
    found = _jaxprs.constants(traced.jaxpr)
    total = sum(c.nbytes for c in found)
    if total >= WORTH_BYTES:
        large = [c for c in found[:3] if c.nbytes >= min(WORTH_BYTES, found[0].nbytes)]
        texts = [f"{named(held, c, 'an array')} {_jaxprs.short_type(c)} ({size(c.nbytes)})" for c in large]
        rest = f" and {len(found) - len(large)} more: {size(total)} in all" if len(found) > len(large) else ""
        yield finding(
            "constant",
            f"The jaxpr contains {', '.join(texts)}{rest}.",
            "Pass it as an argument: a constant is copied into the executable, and jit ignores a new value.",
        )


def unrolled(traced: Any) -> Iterator[Finding]:
    """Find loops of Python that tracing unrolled."""
    run = jaxpr_scan.unrolled(traced.jaxpr) if jaxpr_scan.knows_places(traced.jaxpr) else None
    if run is not None:
        what = f"{run.times} copies of the same {run.body} operation{'s' if run.body > 1 else ''} in a row"
        lines = _jaxprs.lines_of(run.first)
        name = run.first.params["name"] if run.first.primitive.name == "jit" else run.first.primitive.name
        begin = f"`{name}`{f' at {place(*lines[-1])}' if lines else ''}"
        remedy = "`jax.lax.fori_loop` or `scan`" if run.chained else "`jax.vmap`: no copy needs another one"
        yield finding(
            "unrolled loop",
            f"The jaxpr contains {what}, from {begin} on: an unrolled Python loop.",
            f"Compile time grows with the copies. Try {remedy}, and measure both.",
        )


def host(calls: Sequence[tuple[str, bool]]) -> Iterator[Finding]:
    """Find calls back to Python."""
    if calls:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(name for name, _ in calls))
        loop = " At least one is in a loop." if any(in_loop for _, in_loop in calls) else ""
        yield finding(
            "host round trip",
            f"The compiled function calls Python: {names}.{loop}",
            "Python runs on the host for each, and the data is copied there and back."
            + " Remove debug callbacks." * any("debug" in name for name, _ in calls),
        )


def break_even(phases: Phases, plain: float) -> Iterator[Finding]:
    """Find a function that jit hardly makes faster, so that it pays late or never; `plain` is the seconds without jit."""
    calls = phases.break_even(plain)
    # A small function's calls cost what dispatch costs, with jit or without: which is faster says little.
    if calls < MANY_CALLS or plain < SMALL_CALL or plain > CLEAR_GAIN * phases.steady:
        return
    end = f"the compile pays off only after about {significant(calls, 1)} calls"
    if math.isinf(calls):
        end = "no clear gain, so the compile does not pay off"
    yield finding(
        "break-even",
        f"A jitted call takes {duration(phases.steady)}, a plain one {duration(plain)}: {end}.",
        "Jit a larger function, so that one call does more, or leave jit out.",
    )
