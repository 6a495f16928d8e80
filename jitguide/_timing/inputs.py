"""What `compare` accepts: its arguments checked, and the first call of every variant."""

import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import jax
import jax.stages
import numpy as np

from jitguide._arguments import Arguments, copies, deleted, refuse_deleted, refuse_tracing, require_seconds
from jitguide._callables import fresh_jit, held_in, is_jitted, is_watched, parameters_of, through
from jitguide._jaxprs import coarsest
from jitguide._timing.equality import Check, require_agreement, require_arrays, validate_check
from jitguide._timing.rounding import Rounding

# Calls of a block whose arguments are made before it, and the bytes of those.
_OWN_CALLS, _OWN_BYTES = 10, 64 * 2**20
# Results that are there when the function returns them.
_PRESENT = (np.ndarray, np.generic, bool, int, float, complex, str, bytes)

_WATCHED = "{!r} is watched, and its time includes the watching. Compare the function given to `watch`."
_CHANGES = (
    "{!r} changes a NumPy argument in place, so the next call gets other numbers. Where they matter, pass "
    "`setup=lambda: (x.copy(),)`."
)


def validate(variants: Any, baseline: Any, budget: Any, check: Any, setup: Any, arguments: Arguments) -> None:
    """Raise on arguments of `compare` that cannot work."""
    _validate_variants(variants)
    if baseline is not None and (not isinstance(baseline, str) or baseline not in variants):
        known = ", ".join(repr(name) for name in variants)
        raise ValueError(f"`baseline` is {baseline!r}, which is not among the variants. Use one of {known}.")
    require_seconds("budget", budget, "Leave it out for half a second for each variant.")
    validate_check(check)
    if setup is not None and not callable(setup):
        raise TypeError(
            "`setup` must be a function that returns the arguments of one call, got "
            f"{type(setup).__name__}. Write `setup=lambda: (x.copy(),)`."
        )
    if setup is not None and arguments[0]:
        raise ValueError(
            f"`setup` makes the positional arguments, and {len(arguments[0])} came after the mapping. Give "
            "them in one way only."
        )
    refuse_tracing("compare", arguments)


def _validate_variants(variants: Any) -> None:
    if not isinstance(variants, Mapping):
        raise TypeError(
            f"`variants` must be a mapping from names to functions, got {type(variants).__name__}. "
            'Write `compare({"plain": f, "jit": jax.jit(f)}, x)`.'
        )
    if not variants:
        raise ValueError("`variants` is empty, so there is nothing to time. Give at least one function.")
    for name, fn in variants.items():
        if not isinstance(name, str):
            raise TypeError(
                f"`variants` must have text as keys, got {name!r} of type {type(name).__name__}. Write "
                f"{str(name)!r} in its place."
            )
        if not callable(fn):
            raise TypeError(
                f"`variants[{name!r}]` must be a function, got {type(fn).__name__}, which cannot be "
                "called. Give the function itself, without calling it, and its arguments after the mapping."
            )


@dataclass(frozen=True)
class FirstCalls:
    """What the first calls of all variants tell."""

    seconds: dict[str, float]  # of each call
    device: str  # kind of the device that holds the results
    notes: tuple[str, ...]
    waited: bool  # whether the result of every variant can be waited for
    fresh: Callable[[], Arguments]  # makes the arguments of a call
    most_calls: int  # in a block, because each has arguments of its own


def first_calls(
    variants: Mapping[str, Callable[..., Any]],
    baseline: str,
    fresh: Callable[[], Arguments],
    check: Check,
    options: Collection[str],
) -> FirstCalls:
    """Call every variant once, the baseline first, with which the others have to agree.

    `fresh` returns the arguments of a call, and `options` are the names of the options given to `compare`.
    """
    seconds, unwaited, used_up = {}, [], False
    notes = [_WATCHED.format(name) for name, fn in variants.items() if is_watched(fn)]
    given = fresh()
    refuse_deleted(given, "Make it again, or pass `setup`, which makes fresh ones for every call.")
    once = fresh() is not given
    for name in sorted(variants, key=lambda name: name != baseline):
        # A copy, because a function that donates an argument must not delete what the caller passed.
        arguments = copies(fresh())
        leaves, before = jax.tree.leaves(arguments), _numpy_bytes(arguments)
        hints = _option_hints(name, variants[name], arguments, options)
        seconds[name], result = _first_call(name, variants[name], arguments, hints)
        if check is not None and not callable(check):
            require_arrays(name, result)
        if name == baseline:
            trusted = result
            rounding = Rounding(variants[name], lambda: copies(fresh()), result)
        else:
            both = [variants[baseline], variants[name]]
            inside = functools.cache(functools.partial(_coarsest, [] if "check" in options else both, fresh))
            notes += require_agreement(check, (baseline, trusted), (name, result), rounding, inside)
        notes += hints
        unwaited += _unwaited_notes(name, result)
        used_up |= _used_up(leaves, arguments)
        # With `setup`, every call has arguments of its own, which it may change.
        if not once and before != _numpy_bytes(arguments):
            notes.append(_CHANGES.format(name))
    makes = (lambda: copies(fresh())) if used_up else fresh
    most = own_arguments(given) if once or used_up else sys.maxsize
    return FirstCalls(seconds, _device_of(trusted), (*unwaited, *notes), not unwaited, makes, most)


def _coarsest(functions: list[Callable[..., Any]], fresh: Callable[[], Arguments]) -> tuple[float, str]:
    """Return rounding and name of the coarsest dtype inside of functions; 0 and "" where JAX cannot trace them."""

    def jaxpr(fn: Any, args: Any, kwargs: Any) -> Any:
        return (fn.trace if is_jitted(fn) else jax.make_jaxpr(fn))(*args, **kwargs).jaxpr

    found = [(0.0, "")]
    for fn in functions:
        with contextlib.suppress(Exception):  # its own code may want numbers
            found.append(coarsest(through(fn, *fresh(), jaxpr)))
    return max(found)


def _refuse_unstarted(name: str, result: Any) -> None:
    """Raise if the body of a variant has not run, as that of an `async def` or of a function with `yield`."""
    if inspect.iscoroutine(result):
        result.close()  # or Python warns that it was never awaited
        write = "lambda *args: asyncio.run(f(*args))"
    elif inspect.isgenerator(result):
        write = "lambda *args: list(f(*args))"
    else:
        return
    raise TypeError(
        f"The variant {name!r} returns a {type(result).__name__}, so its body did not run. Compare `{write}`."
    )


def _used_up(leaves: list[Any], arguments: Arguments) -> bool:
    """Return whether a call donated an argument, or put other arrays in its place, as `nnx.jit` does."""
    after = jax.tree.leaves(arguments)
    return deleted(arguments) is not None or [*map(id, leaves)] != [*map(id, after)]


def own_arguments(arguments: Arguments) -> int:
    """Return how many calls a block may hold if each has arguments of its own, which all lie in memory."""
    nbytes = sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree.leaves(arguments))
    return max(1, min(_OWN_CALLS, _OWN_BYTES // max(nbytes, 1)))


def another_copy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return another compiled copy of a jitted function; what is not one, or is watched, as it is."""
    if type(fn) is functools.partial:
        inner = another_copy(fn.func)
        return fn if inner is fn.func else functools.partial(inner, *fn.args, **fn.keywords)
    if inspect.ismethod(fn):
        inner = another_copy(fn.__func__)
        return fn if inner is fn.__func__ else types.MethodType(inner, fn.__self__)
    is_jitted = held_in(fn) or isinstance(fn, jax.stages.Wrapped)
    return fresh_jit(fn)[0] if is_jitted and not is_watched(fn) else fn


def _option_hints(
    name: str, fn: Callable[..., Any], arguments: Arguments, options: Collection[str]
) -> list[str]:
    """Return a hint for each option of `compare` that was meant for the variant, by its parameters."""
    open_ones = parameters_of(fn)[len(arguments[0]) :]
    takes = {p.name for p in open_ones if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return [
        f"`{option}` is an option of `compare`, and {name!r}, which has a parameter of that name, was called "
        f"without it. To pass it on, write `lambda *args: f(*args, {option}=...)`."
        for option in options
        if option in takes
    ]


def _unwaited_notes(name: str, result: Any) -> list[str]:
    """Return a note if there is nothing in `result` to wait for, or something that JAX cannot look into."""
    leaves = jax.tree.leaves(result)
    hidden = [
        leaf
        for leaf in leaves
        if not (isinstance(leaf, _PRESENT) or hasattr(leaf, "block_until_ready") or callable(leaf))
    ]
    if leaves and not hidden:
        return []
    what = f"`{type(hidden[0]).__name__}`, which JAX cannot look into" if hidden else "nothing to wait for"
    return [
        f"{name!r} returns {what}: unless it waits itself, its time may be that of starting the work only. "
        "Return the arrays, or wait inside the variant with `jax.block_until_ready`."
    ]


def _numpy_bytes(arguments: Arguments) -> list[bytes]:
    return [leaf.tobytes() for leaf in jax.tree.leaves(arguments) if isinstance(leaf, np.ndarray)]


def _first_call(
    name: str, fn: Callable[..., Any], arguments: Arguments, hints: list[str]
) -> tuple[float, Any]:
    start = perf_counter()
    try:
        result = fn(*arguments[0], **arguments[1])
        _refuse_unstarted(name, result)
        jax.block_until_ready(result)
    except Exception as error:
        # Notes keep the error's own class and text, which say what is wrong.
        error.add_note(
            f"The variant {name!r} raised this in its first call. Call it alone with the same arguments "
            "until it works, then compare."
        )
        for hint in hints:
            error.add_note(hint)
        raise
    return perf_counter() - start, result


def _device_of(result: Any) -> str:
    arrays = [leaf for leaf in jax.tree.leaves(result) if isinstance(leaf, jax.Array)]
    devices = {device for array in arrays for device in array.devices()} or {jax.devices()[0]}
    return ", ".join(sorted({device.device_kind for device in devices}))
