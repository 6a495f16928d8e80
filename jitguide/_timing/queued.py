"""What a call costs where calls follow each other without a wait between them."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter

import jax
import numpy as np

from jitguide._arguments import Arguments
from jitguide._timing.engine import Call, Measured
from jitguide._timing.inputs import FirstCalls

_LONGEST = 1e-3  # seconds of a call: of longer ones, the wait is a small part
_CALLS, _BURST = 10, 2e-3  # the fewest calls of a burst, and its seconds
_BURSTS, _SHARE = 3, 0.1  # the fewest bursts of each function, and their share of its budget


def time_queued(
    calls: Mapping[str, Sequence[Call]], first: FirstCalls, measured: Measured, budget: float
) -> dict[str, float | None]:
    """Return the seconds per call in bursts that wait once, at their end; None for functions whose calls are long.

    Args:
        calls: The functions, as they were measured; bursts of the first place of each alternate.
        first: What the first calls told: whether results can be waited for, and how arguments are made.
        measured: What a call takes that is waited for.
        budget: Seconds that each function was measured for.
    """
    if not first.waited or first.most_calls < _CALLS:
        return {}
    seconds = dict(zip(calls, map(np.median, measured.seconds), strict=True))
    counts = {
        name: min(max(_CALLS, math.ceil(_BURST / one)), first.most_calls)
        for name, one in seconds.items()
        if one < _LONGEST
    }
    taken: list[dict[str, float]] = []
    end = perf_counter() + _SHARE * budget * len(counts)
    while len(taken) < _BURSTS or perf_counter() < end:
        taken.append({name: _burst(calls[name][0], first.fresh, count) for name, count in counts.items()})
    return {name: median(burst[name] for burst in taken) for name in counts}


def _burst(call: Call, fresh: Callable[[], Arguments], count: int) -> float:
    arguments, result = [fresh() for _ in range(count)], None
    start = perf_counter()
    for args, kwargs in arguments:
        result = call(*args, **kwargs)
    # A device runs them in order. To keep all results would take fresh memory for each, which costs time of its own.
    jax.block_until_ready(result)
    return (perf_counter() - start) / count
