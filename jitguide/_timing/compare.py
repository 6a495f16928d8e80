"""Which function is faster, by how much, and how sure is that? `compare` answers."""

import math
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jitguide import _monitoring
from jitguide._arguments import Arguments, deleted
from jitguide._display import duration, plural
from jitguide._timing.comparison import (
    CALL_OVERHEAD,
    Comparison,
    Note,
    Timing,
    clock_notes,
    copy_notes,
    load_notes,
    queued_notes,
)
from jitguide._timing.engine import BLOCK, FEWEST_ROUNDS, ROUNDS, Bench, Call, Measured, measure
from jitguide._timing.equality import Check
from jitguide._timing.inputs import FirstCalls, another_copy, first_calls, own_arguments, validate
from jitguide._timing.machine import Busy, megahertz
from jitguide._timing.queued import time_queued

# The clocks of an accelerator take longer to rise than a processor's caches take to fill.
_WARM_UP, _WARM_UP_ACCELERATOR = 0.02, 0.15
# Within this factor of a call that does nothing, the call itself is a good part of what is measured.
_NEAR_NOTHING = 5
# For timing a call that does nothing: seconds, some twenty blocks; and how often, as one time was seen doubled.
_NOTHING_BUDGET, _NOTHING_TIMES = 0.002, 3
_LONG_COMPILE = 2.0  # seconds of a first call
# Where results are thrown away, as in a check that a program runs, a tenth of the time serves.
_BUDGET_SCALE = "JITGUIDE_BUDGET_SCALE"


def compare(
    variants: Mapping[str, Callable[..., Any]],
    /,
    *args: Any,
    baseline: str | None = None,
    budget: float = 0.5,
    check: Check = 1e-3,
    control: bool = True,
    setup: Callable[[], Any] | None = None,
    seed: int = 0,
    **kwargs: Any,
) -> Comparison:
    """Time functions side by side on the same arguments, and report which is faster, or that it cannot be told.

    The results are compared first. Then every variant is called in short blocks (about 100 µs), in a new random
    order every round, and each result is waited for; a `Ref` that a variant writes changes each time. Speedups
    are medians of the ratios within rounds, so what slows the whole machine cancels. Their intervals are wide
    where the ratio changes during the measurement.

    A jitted variant is compiled a second time, and every round holds a block of both copies: two compiled copies
    of one function may differ in speed, and so the intervals allow for it. Other functions, such as a lambda
    that calls a jitted function, are called twice a round as they are.

    Of functions with calls below 1 ms, the time of a call among many that are waited for once is measured too.

    It takes the budget for each variant, and less where all differ by more than a factor of 2. It takes up to four
    times the budget where the answer is still open or 12 rounds need it, and no less than 2 rounds.

    Args:
        variants: Names and functions. They are called with `args` and `kwargs`.
        *args: Positional arguments of every variant.
        baseline: Name of the variant to compare with; the first if left out.
        budget: Seconds for each variant.
        check: How closely the results have to agree with the baseline's: a relative tolerance, which is looser
            if left out where a variant computes in `bfloat16` or another coarse dtype; or a function
            of two results that returns False or raises `AssertionError` if they disagree; or None for none.
            Results that aren't arrays or numbers need one of the last two, and have to be waited for inside
            the variants.
        control: Whether every variant has two places in a round, the second for another compiled copy of it.
        setup: Returns fresh positional arguments, a tuple of them or a single one (such as a named tuple),
            for every call, outside the timed part: for functions that change their arguments. Arguments that
            a variant donates are copied for every call without it.
        seed: Of the random order.
        **kwargs: Keyword arguments of every variant, except those that have the name of an option above: write
            `lambda x: f(x, seed=7)` to pass one of these on.

    Returns:
        A `Comparison`; times are in seconds.

    Raises:
        TypeError: An argument is of the wrong type, or a variant returns something that isn't an array.
        ValueError: An argument has a wrong value, was deleted, or the variants disagree.
        RuntimeError: It was called inside a trace.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jitguide import compare
        >>> def f(x):
        ...     return jnp.sin(x) ** 2 + jnp.cos(x) ** 2
        >>> result = compare({"plain": f, "jit": jax.jit(f)}, jnp.ones(10), budget=0.05)
        >>> result.verdict("jit") in ("faster", "slower", "same", "cannot tell")
        True
    """
    validate(variants, baseline, budget, check, setup, (args, kwargs))
    given = _given(baseline=baseline, budget=budget, check=check, control=control, setup=setup, seed=seed)
    baseline = next(iter(variants)) if baseline is None else baseline
    first = first_calls(variants, baseline, _fresh(setup, (args, kwargs)), check, given)
    order = sorted(variants, key=lambda name: name != baseline)  # the engine takes ratios over its first
    # With a control, every variant stands in each round twice. Were the baseline alone to run twice as often, branch
    # predictors and caches would know it better: equal functions were seen to differ by 12 %.
    calls = {
        name: _places(variants[name], first, first.seconds[name]) if control else [variants[name]]
        for name in order
    }
    measured = Measured(len(order))
    queued: dict[str, float | None] = {}
    result = partial(_comparison, measured, calls, first, list(variants), queued)
    busy = Busy.now()
    try:
        _measure(list(calls.values()), first, budget, measured, seed)
        queued |= time_queued(calls, first, measured, budget * _budget_scale())
    except Exception as error:
        name, count = order[measured.running], 1 + measured.calls[measured.running]  # with the first call
        error.add_note(f"The variant {name!r} raised this after {count} {plural('call', count)}.")
        if measured.rounds >= FEWEST_ROUNDS:
            error.add_note(f"Measured before:\n{result(None)!r}")
        raise
    return result(busy.cores_since())


def _given(**options: Any) -> list[str]:
    """Return the names of the options that differ from their defaults."""
    defaults = compare.__kwdefaults__ or {}
    return [name for name, value in options.items() if value != defaults[name]]


def _places(fn: Callable[..., Any], first: FirstCalls, first_call: float) -> list[Callable[..., Any]]:
    """Return the function, and what has the second place in a round: another compiled copy, if it is jitted."""
    # A slow first call may have been a slow compile, which is not worth a second one.
    other = fn if first_call > _LONG_COMPILE else another_copy(fn)
    if other is not fn:
        args, kwargs = first.fresh()
        jax.block_until_ready(other(*args, **kwargs))  # compiles
    return [fn, other]


def _comparison(
    measured: Measured,
    calls: Mapping[str, list[Callable[..., Any]]],
    first: FirstCalls,
    names: list[str],
    queued: Mapping[str, float | None],
    cores: float | None,
) -> Comparison:
    timings = {}
    for name, rounds, per_block in zip(calls, measured.seconds, measured.calls_per_block, strict=True):
        rounds = rounds[: measured.rounds]
        places, blocks = len(rounds[0]), tuple(chain.from_iterable(rounds))
        copies = min(places, len(set(map(id, calls[name]))))
        timing = Timing(name, blocks, per_block, first.seconds[name], places, copies, queued.get(name))
        timings[name] = timing
    compiled = dict(zip(calls, measured.compiled, strict=True))
    ordered = tuple(timings[name] for name in names)
    clocks = tuple(measured.megahertz)
    notes = (*first.notes, *_notes(ordered, compiled, cores), *clock_notes(clocks))
    baseline = next(iter(calls))
    control = timings[baseline].apart
    return Comparison(ordered, baseline, control, first.device, cores, notes, _method(ordered, first), clocks)


def _fresh(setup: Callable[..., Any] | None, arguments: Arguments) -> Callable[[], Arguments]:
    if setup is None:
        return lambda: arguments

    def fresh() -> Arguments:
        made = setup()
        made = made if type(made) is tuple else (made,)  # a named tuple is one argument
        if where := deleted((made, {})):
            raise ValueError(
                f"`setup` returned {where} deleted, most likely because an earlier call donated it. Return a copy: "
                "`setup=lambda: (x.copy(),)`."
            )
        return jax.block_until_ready(made), arguments[1]

    return fresh


def _measure(
    variants: list[list[Call]], first: FirstCalls, budget: float, measured: Measured, seed: int = 0
) -> None:
    """Run the engine with the real instruments."""
    budget *= _budget_scale()
    _monitoring.ensure_listening()
    with _monitoring.recording() as events:
        bench = Bench(
            variants,
            first.fresh,
            first.most_calls,
            budget,
            seed,
            warm_up=min(_WARM_UP if jax.default_backend() == "cpu" else _WARM_UP_ACCELERATOR, budget),
            clock=perf_counter,
            wait=jax.block_until_ready,
            compiles=lambda: sum(event.phase in ("compile", "read") for event in events),
            megahertz=megahertz if jax.default_backend() == "gpu" else lambda: None,
        )
        measure(bench, measured)


def _budget_scale() -> float:
    """Return the factor on every budget that the environment asks for, such as 0.1 for a quick check."""
    try:
        scale = float(os.environ.get(_BUDGET_SCALE, 1))
    except ValueError:
        scale = math.nan
    if not 0 < scale < math.inf:
        raise ValueError(
            f"The environment variable {_BUDGET_SCALE} must be a positive number, got "
            f"{os.environ[_BUDGET_SCALE]!r}. Unset it to measure with full budgets."
        )
    return scale


def _notes(timings: tuple[Timing, ...], compiled: Mapping[str, int], cores: float | None) -> list[str]:
    notes = [
        f"{name!r} compiled {count} times inside the measured blocks, so its time includes compiling. "
        "`jitguide.watch()` lists them."
        for name, count in compiled.items()
        if count
    ]
    notes += copy_notes(timings) + queued_notes(timings)
    nothing = seconds_of_nothing()
    near = [repr(timing.name) for timing in timings if timing.median < _NEAR_NOTHING * nothing]
    if near:
        text = f"{', '.join(near)}: a jitted call that returns its argument takes {duration(nothing)} here."
        notes.append(Note(text, CALL_OVERHEAD))
    if (rounds := timings[0].n) < ROUNDS:
        notes.append(f"Only {rounds} rounds fitted, so intervals are wide. A larger `budget` gives more.")
    if jax.config.jax_disable_jit:
        notes.append("`jax_disable_jit` is on: jitted variants run one operation at a time.")
    return [*notes, *load_notes(cores)]


_nothing = jax.jit(lambda numbers, results: numbers[:1] * results, static_argnums=1, keep_unused=True)


def seconds_of_nothing(arguments: int = 1, results: int = 1) -> float:
    """Return the seconds of a jitted call that returns an argument, with the wait: the cost of any call."""
    with jax.transfer_guard("allow"):  # a guard is about what the variants do, and this is not their doing
        number = jax.block_until_ready(jnp.float32(0))
    given: Arguments = ([number] * max(arguments, 1), results), {}
    times = [time_alone(_nothing, lambda: given, False, _NOTHING_BUDGET) for _ in range(_NOTHING_TIMES)]
    return min(times)


def time_alone(fn: Callable[..., Any], fresh: Callable[[], Arguments], once: bool, budget: float) -> float:
    """Return the median seconds of a call, warm and with the wait; `once`: arguments serve one call only."""
    measured = Measured(1)
    first = FirstCalls({}, "", (), True, fresh, own_arguments(fresh()) if once else sys.maxsize)
    _measure([[fn]], first, budget, measured)
    return float(np.median(measured.seconds[0]))


def _method(timings: tuple[Timing, ...], first: FirstCalls) -> tuple[str, ...]:
    cold = all(timing.calls_per_block == 1 for timing in timings)
    blocks = "one call per block" if cold else f"{BLOCK * 1e6:.0f} µs blocks"
    fresh = ["fresh arguments for every call"] if first.most_calls < sys.maxsize else []
    waited = ["each result waited for"] if first.waited else []
    return ("after warm-up", "interleaved", *waited, *fresh, blocks)
