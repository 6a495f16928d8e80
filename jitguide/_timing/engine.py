"""Time functions side by side: one short block of each a round, in a new random order every round."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np

from jitguide._timing.statistics import Ratio, judge, paired_ratio

# Shorter than the time slice of a scheduler (a few ms), so that most blocks run undisturbed; long enough that
# two readings of the clock (0.15 µs each) do not count.
BLOCK = 100e-6
# The rank-based interval needs about this many rounds to be of use.
ROUNDS = 15
# What a function gets at least, however slow: two values have no spread worth the name.
FEWEST_ROUNDS = 3
# An answer this sharp needs no more time, once the machine has had the time to change its mood.
SHARP, SOONEST = 0.01, 0.2
# The budget is doubled for an answer that is not sharp; slow functions get ten times as much for `ROUNDS`.
EXTENDED, CAP = 2, 10
WARM_CALLS, WARM_LIMIT = 3, 1.0
# Of the warm calls, a tenth is quicker than the one that sets the length of the blocks.
QUICK = 0.1
# Functions whose times differ by less than this factor get the same number of calls in a block. Two modes
# of speed of one function were seen 7 times apart, and which of them the warm calls show is chance.
ALIKE = 10
# A shared number of calls makes the blocks of the slower ones longer, but none longer than this: a scheduler's
# time slice is a few ms.
LONGEST = 1e-3


@dataclass
class Bench:
    """What to time, and with which instruments; tests put in a clock of their own.

    Attributes:
        calls: The functions, baseline first; each may stand in the list more than once.
        fresh: Returns the arguments of one call; called outside the timed part.
        once: Whether arguments serve one call only, so that a block is one call.
        budget: Seconds for each function, over all its places in the list.
        seed: Of the order within the rounds.
        warm_up: Seconds for each function before anything is kept.
        clock: Returns seconds.
        wait: Waits for the result of a call.
        compiles: Returns how many programs have been compiled so far.
    """

    calls: Sequence[Callable[..., Any]]
    fresh: Callable[[], tuple[Sequence[Any], dict[str, Any]]]
    once: bool
    budget: float
    seed: int
    warm_up: float
    clock: Callable[[], float]
    wait: Callable[[Any], Any]
    compiles: Callable[[], int]


@dataclass
class Measured:
    """Seconds per call of each block, by function and round."""

    calls_per_block: list[int]
    seconds: list[list[float]]
    compiled: list[int] = field(default_factory=list)  # programs compiled inside the blocks of each function

    @property
    def rounds(self) -> int:
        """The number of rounds that are complete."""
        return len(self.seconds[0])


def measure(bench: Bench) -> Measured:
    """Warm up, then time one block of every function a round until the answer is sharp or time is up."""
    warm = {id(call): _warm(bench, call) for call in bench.calls}  # a function that stands twice is one
    per_block = _calls_per_block([warm[id(call)] for call in bench.calls], bench.once)
    measured = Measured(per_block, [[] for _ in per_block], [0] * len(per_block))
    rng = np.random.default_rng(bench.seed)
    start, share = bench.clock(), len(warm)
    look_at = 0.0  # sorting all ratios after every round would cost more than the blocks
    while True:
        _round(bench, measured, rng.permutation(len(bench.calls)).tolist())
        spent = (bench.clock() - start) / share
        if measured.rounds < FEWEST_ROUNDS:
            continue
        if spent >= CAP * bench.budget or (measured.rounds >= ROUNDS and spent >= EXTENDED * bench.budget):
            return measured
        if measured.rounds >= ROUNDS and spent >= max(look_at, min(SOONEST, bench.budget)):
            if _is_settled(bench, measured.seconds, over_budget=spent >= bench.budget):
                return measured
            look_at = spent + bench.budget / 10


def _warm(bench: Bench, call: Callable[..., Any]) -> float:
    """Call until caches, clocks and branch predictors have settled; return the seconds of a quick call."""
    start, taken = bench.clock(), []
    while True:
        taken.append(_block(bench, call, 1)[0])
        spent = bench.clock() - start
        if spent >= WARM_LIMIT or (len(taken) >= WARM_CALLS and spent >= bench.warm_up):
            # Not the median: a function with two modes of speed would get long or short blocks by chance.
            return float(np.quantile(taken, QUICK))


def _calls_per_block(seconds: Sequence[float], once: bool) -> list[int]:
    """Return how often to call each function in a block.

    The first call of a block follows another function and is slower than the rest. Functions of similar
    speed therefore get blocks of the same number of calls, so that it weighs the same in all of them: the
    baseline with all that are alike to it, then the first of the rest with those alike to it, and so on.
    """
    counts = [1] * len(seconds)
    rest = [] if once else list(range(len(seconds)))
    while rest:
        first = seconds[rest[0]]
        alike = [i for i in rest if first / ALIKE <= seconds[i] <= first * ALIKE]
        times = [seconds[i] for i in alike]
        count = max(1, int(min(BLOCK / min(times), LONGEST / max(times))))
        for i in alike:
            counts[i] = count
        rest = [i for i in rest if i not in alike]
    return counts


def _round(bench: Bench, measured: Measured, order: Sequence[int]) -> None:
    # A collection would land in whichever function happens to run, so it waits for the end of the round.
    was_on = gc.isenabled()
    gc.disable()
    try:
        for index in order:
            seconds, compiled = _block(bench, bench.calls[index], measured.calls_per_block[index])
            measured.seconds[index].append(seconds)
            measured.compiled[index] += compiled
    finally:
        if was_on:
            gc.enable()


def _block(bench: Bench, call: Callable[..., Any], count: int) -> tuple[float, int]:
    """Return the seconds of a call, and how many programs were compiled meanwhile."""
    args, kwargs = bench.fresh()
    before = bench.compiles()  # only now: what making the arguments compiles is not in the seconds
    clock, wait = bench.clock, bench.wait
    start = clock()
    for _ in repeat(None, count):
        wait(call(*args, **kwargs))
    seconds = clock() - start
    # A clock that stands still would make a ratio of zero and infinity.
    return max(seconds, 1e-9) / count, bench.compiles() - before


def _is_settled(bench: Bench, seconds: list[list[float]], over_budget: bool) -> bool:
    """Return whether all ratios are sharp; once the budget is spent, a clear winner will do as well.

    The baseline's ratio to itself, which can have no winner, then only has to tell something.
    """
    ratios = [paired_ratio(seconds[0], other) for other in seconds[1:]]
    enough = [
        {"faster", "slower", "same"} if call is bench.calls[0] else {"faster", "slower"}
        for call in bench.calls[1:]
    ]
    return all(
        _is_sharp(ratio) or (over_budget and judge(ratio) in words)
        for ratio, words in zip(ratios, enough, strict=True)
    )


def _is_sharp(ratio: Ratio) -> bool:
    return ratio.low * (1 + SHARP) >= ratio.value and ratio.high <= ratio.value * (1 + SHARP)
