"""Which function is faster, by how much, and how sure is that? `compare` answers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jitguide import _monitoring
from jitguide._arguments import Arguments, deleted
from jitguide._display import duration
from jitguide._timing.comparison import CALL_OVERHEAD, Comparison, Note, Timing, load_notes
from jitguide._timing.engine import BLOCK, ROUNDS, Bench, Measured, measure
from jitguide._timing.equality import Check
from jitguide._timing.inputs import first_calls, validate
from jitguide._timing.statistics import paired_ratio
from jitguide._timing.system_load import Busy

# The clocks of an accelerator take longer to rise than a processor's caches take to fill.
_WARM_UP, _WARM_UP_ACCELERATOR = 0.02, 0.15
# Within this factor of a call that does nothing, the call itself is a good part of what is measured.
_NEAR_NOTHING = 5
# Seconds for timing a call that does nothing: some twenty blocks.
_NOTHING_BUDGET = 0.002
# With a control, every variant stands in each round twice, and the baseline's two places are compared. Were
# the baseline alone to run twice as often, branch predictors and caches would know it better: equal functions
# were seen to differ by 12 %.
_PLACES = 2
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
    """Time functions side by side on the same arguments, and say which is faster, or that it cannot be told.

    The results are compared first. Then every variant is called in short blocks (about 100 µs), one block of
    each in a new random order every round, and each result is waited for. Speed-ups are medians of the ratios
    within rounds, so what slows the whole machine cancels. Every variant has two places in a round: the ratio
    of the baseline's two shows what this machine can tell apart now.

    It ends early, after 0.2 s for each variant, when all intervals are within 1 %, and takes up to twice the
    budget when they are not and no clear winner shows. Slow functions get 15 rounds, but never more than ten
    times the budget, unless three rounds take that long.

    Args:
        variants: Names and functions. They are called with `args` and `kwargs`.
        *args: Positional arguments of every variant.
        baseline: Name of the variant to compare with; the first if left out.
        budget: Seconds for each variant.
        check: How closely the results have to agree with the baseline's: a relative tolerance; or a function
            of two results that returns False or raises `AssertionError` if they disagree; or None for none.
            Results that are no arrays or numbers need one of the last two, and have to be waited for inside
            the variants.
        control: Whether to run every variant twice a round, and the baseline against itself.
        setup: Returns fresh positional arguments, a tuple of them or a single one (such as a named tuple),
            for every call, outside the timed part: for functions that donate or change their arguments. A
            block is then one call.
        seed: Of the random order.
        **kwargs: Keyword arguments of every variant, save those that have the name of an option above: write
            `lambda x: f(x, seed=7)` to pass one of these on.

    Returns:
        A `Comparison`; times are in seconds.

    Raises:
        TypeError: An argument is of the wrong type, or a variant returns something that is no array.
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
    fresh = _fresh(setup, (args, kwargs))
    first = first_calls(variants, baseline, fresh, check, given)
    order = sorted(variants, key=lambda name: name != baseline)  # the engine takes ratios over its first
    places = _PLACES if control else 1
    busy = Busy.now()
    calls = [variants[name] for name in order for _ in range(places)]
    measured = _measure(calls, fresh, setup is not None, budget, seed)
    cores = busy.cores_since()
    timings = tuple(
        _timing(name, order.index(name) * places, places, measured, first.seconds) for name in variants
    )
    return Comparison(
        timings,
        baseline,
        paired_ratio(*measured.seconds[:2]) if control else None,
        first.device,
        cores,
        (*first.notes, *_compile_notes(order, places, measured), *_notes(timings, cores)),
        _method(timings, setup is not None, first.waited),
    )


def _given(**options: Any) -> list[str]:
    """Return the names of the options that differ from their defaults."""
    defaults = compare.__kwdefaults__ or {}
    return [name for name, value in options.items() if value != defaults[name]]


def _timing(name: str, at: int, places: int, measured: Measured, first: dict[str, float]) -> Timing:
    """Return the times of the variant whose places in the rounds begin at `at`: one a round."""
    logs = np.log(np.asarray(measured.seconds[at : at + places]))
    return Timing(name, tuple(np.exp(logs.mean(axis=0)).tolist()), measured.calls_per_block[at], first[name])


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
    calls: list[Callable[..., Any]], fresh: Callable[[], Arguments], once: bool, budget: float, seed: int = 0
) -> Measured:
    """Run the engine with the real instruments."""
    budget *= _budget_scale()
    _monitoring.ensure_listening()
    with _monitoring.recording() as events:
        bench = Bench(
            calls,
            fresh,
            once,
            budget,
            seed,
            warm_up=min(_WARM_UP if jax.default_backend() == "cpu" else _WARM_UP_ACCELERATOR, budget),
            clock=perf_counter,
            wait=jax.block_until_ready,
            compiles=lambda: sum(event.phase in ("compile", "read") for event in events),
        )
        return measure(bench)


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


def _compile_notes(order: list[str], places: int, measured: Measured) -> list[str]:
    counts = {name: sum(measured.compiled[i * places : (i + 1) * places]) for i, name in enumerate(order)}
    return [
        f"{name!r} compiled {count} programs inside the measured blocks, so its time includes compiling. "
        "Find out why with `jitguide.watch`."
        for name, count in counts.items()
        if count
    ]


def _notes(timings: tuple[Timing, ...], cores: float | None) -> list[str]:
    notes, nothing = list[str](), _seconds_of_nothing()
    near = [repr(timing.name) for timing in timings if timing.median < _NEAR_NOTHING * nothing]
    if near:
        text = f"{', '.join(near)}: a jitted call that does nothing takes {duration(nothing)} here."
        notes.append(Note(text, CALL_OVERHEAD))
    if timings[0].n < ROUNDS:
        notes.append(
            f"Only {timings[0].n} rounds fitted, so intervals are wide. A larger `budget` gives more."
        )
    if jax.config.jax_disable_jit:
        notes.append("`jax_disable_jit` is on: jitted variants run one operation at a time.")
    return [*notes, *load_notes(cores)]


_nothing = jax.jit(lambda x: x)


def _seconds_of_nothing() -> float:
    """Return the seconds of a jitted call that returns its argument, with the wait: the price of any call."""
    with jax.transfer_guard("allow"):  # a guard is about what the variants do, and this is not their doing
        arguments: Arguments = ((jax.block_until_ready(jnp.float32(0)),), {})
    return time_alone(_nothing, lambda: arguments, once=False, budget=_NOTHING_BUDGET)


def time_alone(fn: Callable[..., Any], fresh: Callable[[], Arguments], once: bool, budget: float) -> float:
    """Return the median seconds of a call, warm and with the wait.

    Args:
        fn: The function.
        fresh: Returns positional and keyword arguments.
        once: Whether arguments serve one call only.
        budget: Seconds to spend.
    """
    return float(np.median(_measure([fn], fresh, once, budget).seconds[0]))


def _method(timings: tuple[Timing, ...], has_setup: bool, waited: bool) -> tuple[str, ...]:
    if has_setup:
        blocks = "fresh arguments for every call"
    elif all(timing.calls_per_block == 1 for timing in timings):
        blocks = "one call a block"
    else:
        blocks = f"{BLOCK * 1e6:.0f} µs blocks"
    return ("warm", "interleaved", *(["waits included"] if waited else []), blocks)
