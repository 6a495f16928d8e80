"""The first call of a function that no cache of JAX knows, with the seconds of each of its steps."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import jax

from jitguide import _monitoring
from jitguide._arguments import Arguments, copies, donates_any, donates_object
from jitguide._callables import fresh_jit, reached, through
from jitguide._display import duration
from jitguide._jax import placeholders_explained
from jitguide._otherwise import otherwise

_LONG_COMPILE = 0.3  # seconds; autotuning takes longer


@dataclass(frozen=True)
class FirstCall:
    """A first call that has been made and timed."""

    seconds: dict[str, float]  # of each of its steps
    fn: Callable[..., Any]  # the jitted function with what is bound to it; its caches hold this call
    arguments: Arguments  # donated ones are still there
    donates: bool  # whether the function donates some of them
    notes: tuple[str, ...]

    def fresh(self) -> Arguments:
        """Return arguments for one more call."""
        return copies(self.arguments) if self.donates else self.arguments


def first_call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> FirstCall:
    """Make the first call of a function that no cache of JAX knows, and time its steps."""
    fn, bound, named = reached(fn)
    named = {name: value for name, value in named.items() if name not in kwargs}
    jitted, notes = fresh_jit(fn)
    seconds: dict[str, float] = {}
    without: list[float | None] = []

    def steps(inner: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        traced = _timed(seconds, "trace", lambda: inner.trace(*args, **kwargs))
        with placeholders_explained():
            lowered = _timed(seconds, "lower", lambda: traced.lower())
        _timed(seconds, "compile", lambda: lowered.compile())
        without.append(_without_autotuning(lowered, seconds["compile"]))
        return lowered.args_info

    _monitoring.ensure_listening()
    with _monitoring.recording() as events:
        args_info = through(jitted, (*bound, *args), {**named, **kwargs}, steps)
    donates = donates_any(args_info)
    if donates_object(bound, args_info[0]):
        args = (*bound, *args)
    elif bound:
        jitted = functools.partial(jitted, *bound)
    call = functools.partial(jitted, **named) if named else jitted
    found = FirstCall(seconds, call, (args, kwargs), donates, notes + _notes(events, *without))
    arguments = found.fresh()
    # The stages above have filled the caches of the function: this call traces and compiles nothing.
    _timed(seconds, "first_run", lambda: jax.block_until_ready(call(*arguments[0], **arguments[1])))
    return found


def _timed(seconds: dict[str, float], step: str, action: Callable[[], Any]) -> Any:
    start = perf_counter()
    result = action()
    seconds[step] = perf_counter() - start
    return result


@otherwise(None)  # not all releases and GPUs know the option
def _without_autotuning(lowered: Any, with_it: float) -> float | None:
    """Return the seconds of compiling again without autotuning, which JAX does not report; None if compiling is short."""
    if with_it < _LONG_COMPILE or jax.default_backend() != "gpu":
        return None
    start = perf_counter()
    lowered.compile(compiler_options={"xla_gpu_autotune_level": 0})
    return perf_counter() - start


def _notes(events: Iterable[_monitoring.Event], without: float | None) -> tuple[str, ...]:
    notes = []
    if without is not None:
        notes.append(f"Compiled again without autotuning (`xla_gpu_autotune_level=0`): {duration(without)}.")
    if any(event.phase == "read" for event in events):
        notes.append("The program came from the persistent cache: `compile` is the time of reading it.")
    if jax.config.jax_disable_jit:
        notes.append(
            "`jax_disable_jit` is on: first run and later call ran one operation at a time, without the "
            "program that was compiled."
        )
    return tuple(notes)
