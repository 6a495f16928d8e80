"""Roughly what a jitted function costs before it runs, and per call: enough to see whether it pays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import jax
import numpy as np

from jitguide._arguments import copies
from jitguide._display import duration
from jitguide._monitoring import can_count, recording

_REPEATS = 5
# Seconds of calls: the first ones after a start can be slow, while threads wake up and memory is touched.
_ENOUGH = 0.02
# A warm call this slow needs no second one, and its reader no second wait.
_LONG = 1.0
# Quick timings of one run differ by so much on a busy machine; a smaller gain is no gain.
_CLEAR_GAIN = 0.2


@dataclass(frozen=True)
class Costs:
    """Seconds of each phase, of a jitted call and of a plain call; None where it was not measured."""

    trace: float | None = None
    lower: float | None = None
    compile: float | None = None
    jitted: float | None = None
    plain: float | None = None

    @property
    def break_even(self) -> float | None:
        """Calls until the compile is earned back; infinite without a clear gain, None if not known."""
        if None in (self.jitted, self.plain):
            return None
        saved = self.plain - self.jitted
        if saved <= _CLEAR_GAIN * self.plain:
            return math.inf  # however short the compile was
        if self.compile is None:
            return None
        return sum(part or 0.0 for part in (self.trace, self.lower, self.compile)) / saved

    def __str__(self) -> str:
        parts = {"trace": self.trace, "lower": self.lower, "compile": self.compile}
        parts |= {"a jitted call": self.jitted, "a plain call": self.plain}
        known = [f"{name} {duration(value)}" for name, value in parts.items() if value is not None]
        return f"Roughly: {', '.join(known)}." if known else ""


def compile_costs(fn: Callable, args: tuple, kwargs: Mapping[str, Any]) -> tuple[Costs, Any, Any]:
    """Return the seconds of each phase that JAX had not done before, with the traced and lowered function."""
    counted = can_count()
    with recording() as events:
        traced = fn.trace(*args, **kwargs)
        lowered = traced.lower()
        lowered.compile()
    seconds = {event.phase: event.seconds for event in events} if counted else {}
    return Costs(*(seconds.get(phase) for phase in ("trace", "lower", "compile"))), traced, lowered


def run_costs(costs: Costs, fn: Callable, args: tuple, kwargs: Mapping[str, Any], *, copy: bool) -> Costs:
    """Return `costs` with the seconds of a jitted and of a plain call.

    Args:
        costs: What is known already.
        fn: The jitted function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        copy: Whether to pass copies, because the function donates.
    """
    plain = getattr(fn, "__wrapped__", None)
    if plain is None:
        return costs
    jitted, plain = _interleaved((fn, plain), args, kwargs, copy)
    return replace(costs, jitted=jitted, plain=plain)


def _interleaved(ways: Sequence[Callable], args: tuple, kwargs: Mapping[str, Any], copy: bool) -> list[float]:
    """Return the median seconds of a call of each; the next call is always of the one with the least time."""
    for way in ways:  # the first call compiles, or fills the caches of the operations
        _once(way, args, kwargs, copy)
    taken: list[list[float]] = [[] for _ in ways]
    while unsure := [
        i
        for i, seconds in enumerate(taken)
        if not seconds or (seconds[0] < _LONG and (len(seconds) < _REPEATS or sum(seconds) < _ENOUGH))
    ]:
        i = min(unsure, key=lambda i: sum(taken[i]))
        taken[i].append(_once(ways[i], args, kwargs, copy))
    return [float(np.median(seconds)) for seconds in taken]


def _once(fn: Callable, args: tuple, kwargs: Mapping[str, Any], copy: bool) -> float:
    if copy:
        args, kwargs = copies((args, dict(kwargs)))
    start = perf_counter()
    jax.block_until_ready(fn(*args, **kwargs))
    return perf_counter() - start
