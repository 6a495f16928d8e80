"""Time functions side by side: one short block of each a round, in a new random order every round."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from jitguide._arguments import Arguments
from jitguide._timing.statistics import BATCHES, judge, paired_ratio

# Shorter than the time slice of a scheduler (a few ms), so that most blocks run undisturbed; long enough that
# two readings of the clock (0.15 µs each) do not count.
BLOCK = 100e-6
# A round in each batch: with fewer, an interval is wider.
ROUNDS = BATCHES
# What a function gets at least, however slow.
FEWEST_ROUNDS = 2
# A difference beyond this factor needs no more than a tenth of a second for each variant.
FAR_APART, SOONEST = 2.0, 0.1
# Times the budget: for `ROUNDS` of slow functions, and where the interval is too wide for an answer.
CAP = 4
# One call that takes longer than the budget and than this, in seconds, is all the warm-up.
SLOW = 0.1
WARM_CALLS = 3
# Of the warm-up calls, a tenth is quicker than the one that sets the length of the blocks.
QUICK = 0.1
# Seconds that the warm-up may go on because the clock of a GPU still rises, by more than this factor.
SETTLED_AFTER, RISING = 1.0, 1.02
# Functions whose times differ by less than this factor get the same number of calls in a block. Two modes
# of speed of one function were seen 7 times apart, and which of them the warm-up calls show is chance.
SIMILAR = 10
# The first call of a block follows another function, and takes 20 to 30 µs longer: where that is more than about a
# hundredth of a call, in seconds, it is made before the clock starts.
COLD = 3e-3
# A shared number of calls makes the blocks of the slower ones longer, but none longer than this: a scheduler's
# time slice is a few ms.
LONGEST = 1e-3

Call = Callable[..., Any]


@dataclass
class Bench:
    """What to time, and with which instruments; tests put in a clock of their own. Times are in seconds."""

    variants: Sequence[Sequence[Call]]  # baseline first; each has one place in a round, or two for two copies
    fresh: Callable[[], Arguments]  # makes the arguments of a call, before the clock starts
    most_calls: int  # in a block, because each has arguments of its own
    budget: float  # for each variant
    seed: int  # of the order within the rounds
    warm_up: float  # for each function, before anything is kept
    clock: Callable[[], float]
    wait: Callable[[Any], Any]  # waits for the result of a call
    compiles: Callable[[], int]  # how many programs have been compiled so far
    megahertz: Callable[[], int | None] = lambda: None  # the clock of the GPU


class Measured:
    """Seconds per call of each block, by variant, round and place; it grows as `measure` goes on."""

    def __init__(self, variants: int) -> None:
        self.calls_per_block = [1] * variants  # those that are timed; one while warming up
        self.untimed = [0] * variants  # those before
        self.seconds: list[list[list[float]]] = [[] for _ in range(variants)]
        self.compiled = [0] * variants  # programs compiled inside the blocks of each variant
        self.calls = [0] * variants
        self.megahertz: list[int] = []  # the clock of the GPU before the rounds and after them
        self.running = 0  # the variant whose turn it is

    @property
    def rounds(self) -> int:
        """The number of rounds that are complete."""
        return len(self.seconds[-1])


def measure(bench: Bench, measured: Measured) -> None:
    """Warm up, then time one block of every function a round until time is up or the answer is beyond doubt."""
    warm = _warm_all(bench, measured)
    # What is slow is called as rarely as possible.
    most_places = 1 if max(warm) > max(bench.budget, SLOW) else 2
    places = [(i, k) for i, calls in enumerate(bench.variants) for k in range(len(calls[:most_places]))]
    measured.calls_per_block[:] = _calls_per_block(warm, bench.most_calls)
    measured.untimed[:] = [int(seconds < COLD) for seconds in warm]
    measured.compiled[:] = [0] * len(warm)  # the second copies were compiled only now
    read = [bench.megahertz()]
    _rounds(bench, measured, places)
    read.append(bench.megahertz())
    measured.megahertz = [clock for clock in read if clock is not None]


def _rounds(bench: Bench, measured: Measured, places: Sequence[tuple[int, int]]) -> None:
    rng = np.random.default_rng(bench.seed)
    start, share, look_at = bench.clock(), len(bench.variants), min(SOONEST, bench.budget)
    while True:
        _round(bench, measured, [places[i] for i in rng.permutation(len(places))])
        spent = (bench.clock() - start) / share
        if measured.rounds >= FEWEST_ROUNDS and spent >= CAP * bench.budget:
            return
        if measured.rounds >= ROUNDS and spent >= look_at:
            if _far_apart(measured.seconds) or (spent >= bench.budget and not _open(measured.seconds)):
                return
            look_at = spent + bench.budget / 10
            if spent < bench.budget:
                look_at = min(look_at, bench.budget)


def _warm_all(bench: Bench, measured: Measured) -> list[float]:
    """Warm up every function, again while the clock of a GPU rises; return the seconds of a quick call of each."""
    start, last = bench.clock(), bench.megahertz()
    while True:
        warm = [_warm(bench, measured, variant) for variant in range(len(bench.variants))]
        now = bench.megahertz()
        if not last or not now or now < RISING * last or bench.clock() - start > SETTLED_AFTER:
            return warm
        last = now


def _warm(bench: Bench, measured: Measured, variant: int) -> float:
    """Call until caches, clocks and branch predictors have settled; return the seconds of a quick call."""
    taken = list[float]()
    calls = bench.variants[variant]
    for call in {id(call): call for call in calls}.values():
        start, count = bench.clock(), 0
        while count < WARM_CALLS or bench.clock() - start < bench.warm_up:
            taken.append(_block(bench, measured, variant, call))
            count += 1
            if taken[-1] > max(bench.budget, SLOW):
                return taken[-1]
    # Not the median: a function with two modes of speed would get long or short blocks by chance.
    return float(np.quantile(taken, QUICK))


def _calls_per_block(seconds: Sequence[float], most: int) -> list[int]:
    """Return how many calls of each function a block times.

    Calls that follow each other closely are quicker. Functions of similar speed therefore get blocks of the same
    number of calls: the baseline with all of similar speed, then the first of the rest with those similar to
    it, and so on.
    """
    counts = [1] * len(seconds)
    rest = list(range(len(seconds)))
    while rest:
        first = seconds[rest[0]]
        similar = [i for i in rest if first / SIMILAR <= seconds[i] <= first * SIMILAR]
        times = [seconds[i] for i in similar]
        count = max(1, min(most, int(min(BLOCK / min(times), LONGEST / max(times)))))
        for i in similar:
            counts[i] = count
        rest = [i for i in rest if i not in similar]
    return counts


def _round(bench: Bench, measured: Measured, order: Sequence[tuple[int, int]]) -> None:
    # A collection would land in whichever function happens to run, so it waits for the end of the round.
    was_on = gc.isenabled()
    gc.disable()
    try:
        taken = {(i, place): _block(bench, measured, i, bench.variants[i][place]) for i, place in order}
    finally:
        if was_on:
            gc.enable()
    for variant, rounds in enumerate(measured.seconds):
        rounds.append([taken[at] for at in sorted(taken) if at[0] == variant])


def _block(bench: Bench, measured: Measured, variant: int, call: Call) -> float:
    """Return the seconds of a call in one block, each with the arguments made for it."""
    measured.running = variant
    first, count = measured.untimed[variant], measured.calls_per_block[variant]
    arguments = [bench.fresh() for _ in range(first + count)]
    before = bench.compiles()  # only now: what making the arguments compiles is not in the seconds
    clock, wait = bench.clock, bench.wait
    for args, kwargs in arguments[:first]:
        wait(call(*args, **kwargs))
    start = clock()
    for args, kwargs in arguments[first:]:
        wait(call(*args, **kwargs))
    seconds = clock() - start
    measured.compiled[variant] += bench.compiles() - before
    measured.calls[variant] += first + count
    # A clock that stands still would make a ratio of zero and infinity.
    return max(seconds, 1e-9) / count


def _open(seconds: list[list[list[float]]]) -> bool:
    """Return whether it cannot be told yet how a variant compares with the baseline."""
    return any(judge(paired_ratio(seconds[0], other)) == "cannot tell" for other in seconds[1:])


def _far_apart(seconds: list[list[list[float]]]) -> bool:
    """Return whether each variant is clearly faster or slower than each other one, by a large factor."""
    ratios = (paired_ratio(a, b) for a, b in combinations(seconds, 2))
    return len(seconds) > 1 and all(r.low > FAR_APART or r.high < 1 / FAR_APART for r in ratios)
