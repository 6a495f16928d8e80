"""What `compare` returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jitguide._display import AsData, Displayed, Table, duration, span
from jitguide._timing.statistics import Ratio, between_copies, judge, paired_ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Half a core of other work moves times visibly; less hides in the noise.
_BUSY = 0.5
# From here on the clock of a GPU counts as changed. Under full load it moves by some percent all the time.
_CLOCK_CHANGED = 1.1
# Below this share of the time with a wait, the time without one is told.
_QUEUED = 0.8
_HEADER = ("variant", "time (10–90 %)", "speedup (95 %)", "verdict")


@dataclass(frozen=True)
class Timing(AsData):
    """How long one variant takes.

    Attributes:
        name: The variant's key.
        seconds: Seconds per call of each block, in the order of the rounds and of the places in a round.
        calls_per_block: Number of calls in a block.
        first_call: Seconds of the first call, which traces and compiles what was not compiled before.
        places: How many blocks of the variant each round holds.
        copies: 2 if the second of them is that of a second compiled copy.
        queued: Seconds of a call among many that are waited for once, at their end; None where a call takes 1 ms or
            more, or cannot be waited for.
    """

    name: str
    seconds: tuple[float, ...] = field(repr=False)
    calls_per_block: int
    first_call: float
    places: int = 1
    copies: int = 1
    queued: float | None = None
    _derived: ClassVar = ("median", "low", "high", "n")

    @cached_property
    def median(self) -> float:
        """Seconds of a typical call."""
        return float(np.median(self.seconds))

    @cached_property
    def low(self) -> float:
        """Seconds of a fast call, which a tenth of the blocks undercut."""
        return float(np.quantile(self.seconds, 0.1))

    @cached_property
    def high(self) -> float:
        """Seconds of a slow call, which a tenth of the blocks exceed."""
        return float(np.quantile(self.seconds, 0.9))

    @property
    def n(self) -> int:
        """Number of rounds."""
        return len(self.seconds) // self.places

    @cached_property
    def apart(self) -> Ratio | None:
        """Ratio of the times of its first place to those of its second; None if it has one place only."""
        return paired_ratio(*self.blocks.T) if self.places > 1 else None

    @property
    def blocks(self) -> np.ndarray[Any, Any]:
        """The seconds by round and place."""
        return np.reshape(self.seconds, (self.n, self.places))

    def __str__(self) -> str:
        return f"{duration(self.median)} ({span(duration(self.low), duration(self.high))})"

    def to_dict(self) -> dict[str, Any]:
        """Return the summary, without the seconds of each block, as data that `json.dumps` accepts."""
        data = super().to_dict()
        del data["seconds"]
        return data


class Note(str):
    """A sentence of `notes` with its kind, so that code need not read its words."""

    kind: str

    def __new__(cls, sentence: str, kind: str = "") -> Note:
        note = super().__new__(cls, sentence)
        note.kind = kind
        return note


CALL_OVERHEAD, SYSTEM_LOAD, COPIES, QUEUED = "call overhead", "system load", "copies", "queued"


def load_notes(cores: float | None, bound: str = "") -> list[Note]:
    """Return a note if other programs used many cores; `bound` stands before their number."""
    if cores is None or cores < _BUSY:
        return []
    text = f"Other programs kept {bound}{cores:.1f} cores busy: trust the ratios more than the times."
    return [Note(text, SYSTEM_LOAD)]


def clock_notes(clocks: tuple[int, ...]) -> list[Note]:
    """Return a note if the clock of the GPU changed while something was measured."""
    if not clocks or max(clocks) < _CLOCK_CHANGED * min(clocks):
        return []
    text = f"The GPU's clock went from {clocks[0]} to {clocks[-1]} MHz: trust the ratios more than the times."
    return [Note(text, SYSTEM_LOAD)]


def queued_notes(timings: tuple[Timing, ...]) -> list[Note]:
    """Return a note on the time of a call without a wait after each, where that is clearly shorter."""
    if not any(t.queued and t.queued < _QUEUED * t.median for t in timings):
        return []
    (name, seconds), *others = ((t.name, t.queued) for t in timings if t.queued)
    more = "".join(f", {other!r} {duration(its)}" for other, its in others)
    text = f"With one wait after many calls, {name!r} takes {duration(seconds)} a call{more}."
    return [Note(text, QUEUED)]


@dataclass(frozen=True, repr=False)
class Comparison(Displayed, AsData):
    """Times of several variants, taken side by side.

    Trust the ratios: both of their times come from the same moments. Times move with what else the machine
    does, so they are shown to two digits, with the range of the middle 80 % of the blocks.

    Attributes:
        timings: One `Timing` for each variant, in the order given.
        baseline: Name of the variant that the others are compared with.
        control: Ratio of the baseline to a second compiled copy of it, or to itself where it is not a jitted
            function: should be 1. None if left out.
        device: Kind of the device that held the results, as its backend calls it.
        busy_cores: Cores that other programs used meanwhile; None where the system does not tell.
        notes: Sentences on what to bear in mind.
        clocks: Clock of an NVIDIA GPU in MHz, before and after; empty on other devices.
    """

    timings: tuple[Timing, ...]
    baseline: str
    control: Ratio | None
    device: str
    busy_cores: float | None = None
    notes: tuple[str, ...] = ()
    _method: tuple[str, ...] = ("after warm-up", "interleaved", "each result waited for")
    clocks: tuple[int, ...] = ()

    def __getitem__(self, name: str) -> Timing:
        named = {timing.name: timing for timing in self.timings}
        if name not in named:
            raise KeyError(f"There is no variant called {name!r}. Use one of {', '.join(map(repr, named))}.")
        return named[name]

    def speedup(self, name: str, over: str | None = None) -> Ratio:
        """Return the speedup of a variant over the baseline, with a 95 % interval.

        The interval holds what the ratio did while it was measured, and what two compiled copies of one function
        differ by, as far as the copies that were timed show it.

        Args:
            name: The variant.
            over: Another variant to compare it with, in place of the baseline.

        Raises:
            KeyError: There is no variant of that name.
        """
        variant, other = self[name], self[self.baseline if over is None else over]
        if variant is other:
            return Ratio(1.0, 1.0, 1.0)
        gaps = [math.log(t.apart.value) for t in self.timings if t.apart and t.copies > 1]
        found = paired_ratio(other.blocks, variant.blocks)
        return found.widened(between_copies(gaps, (other.copies, variant.copies)))

    def verdict(self, name: str, over: str | None = None) -> str:
        """Return "faster", "slower", "same" or "cannot tell".

        A winner is named when the whole interval of the speedup is more than 2 % away from 1 and the fastest
        tenth of the blocks does not contradict; "same" is said when the interval lies within 5 % of 1.
        """
        found, contradicted = self._judged(name, over)
        return "cannot tell" if contradicted else found

    def _judged(self, name: str, over: str | None = None) -> tuple[str, bool]:
        """Return what the medians say, and whether the fastest tenth of the blocks contradicts."""
        found = judge(self.speedup(name, over))
        fast = self[self.baseline if over is None else over].low / self[name].low
        return found, (found, fast < 1) in (("faster", True), ("slower", False))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the speedups with their intervals; needs matplotlib."""
        from jitguide._timing.plots import plot_comparison

        speedups = {timing.name: self.speedup(timing.name) for timing in self.timings}
        return plot_comparison(speedups, self.baseline, ax)

    def _table(self) -> Table:
        rows = [
            (timing.name, str(timing), "×1", "baseline")
            if timing.name == self.baseline
            else (timing.name, str(timing), str(self.speedup(timing.name)), self.verdict(timing.name))
            for timing in self.timings
        ]
        whom = "a second compiled copy" if self[self.baseline].copies > 1 else "itself"
        control = f"; baseline against {whom} {self.control.value:.3f} (should be 1)" if self.control else ""
        found = {timing.name: self._judged(timing.name) for timing in self.timings}
        doubts = [
            f"By its typical block {name!r} is {judged} than {self.baseline!r}, by its fastest tenth it is not."
            for name, (judged, contradicted) in found.items()
            if contradicted
        ]
        notes = [*self.notes, *doubts, ", ".join([*self._method, f"{self.timings[0].n} rounds{control}"])]
        return Table(_HEADER, rows, notes=notes, fit=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as data that `json.dumps` accepts.

        Its "records" are one flat dictionary for each variant: `pandas.DataFrame(result.to_dict()["records"])`.
        """
        data = super().to_dict()
        data["records"] = [self._record(**timing) for timing in data.pop("timings")]
        return data

    def _record(self, name: str, **timing: Any) -> dict[str, Any]:
        ratio = self.speedup(name)
        speedup = {"speedup": ratio.value, "speedup_low": ratio.low, "speedup_high": ratio.high}
        return {"variant": name, **timing, **speedup, "verdict": self.verdict(name)}


def copy_notes(timings: tuple[Timing, ...]) -> list[Note]:
    """Return a note for each variant of which two compiled copies differ clearly."""
    apart = {t.name: t.apart for t in timings if t.apart and t.copies > 1}
    return [
        Note(
            f"Two compiled copies of {name!r} differ by {max(ratio.value, 1 / ratio.value) - 1:.0%}, so two "
            "variants may differ as much by chance. The intervals allow for it.",
            COPIES,
        )
        for name, ratio in apart.items()
        if judge(ratio) in ("faster", "slower")
    ]
