"""One watched call, and the table of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from jitguide._reasons import Reason
from jitguide._render import duration

# From the least to the most work; the last two say that a call cannot be placed on this scale.
OUTCOMES = (
    "hit",
    "left the fast path",
    "traced",
    "lowered",
    "read from the persistent cache",
    "compiled",
    "raised",
    "not counted",
)
HEADER = ("call", "outcome", "seconds", "trace", "lower", "compile", "why")
NUMERIC = (2, 3, 4, 5)


@dataclass(frozen=True)
class Call:
    """One call of a watched function.

    Attributes:
        index: Its number, from 1.
        outcome: The deepest thing it made JAX do; one of `OUTCOMES`.
        seconds: Until the call returned. JAX may still be computing the result then.
        trace: Seconds of tracing; None if there was none.
        lower: Seconds of lowering to StableHLO; None if there was none.
        compile: Seconds in XLA, or of reading from the persistent cache; None if there was neither.
        reason: Why it was not a hit; None for a hit.
        signature: The call as jit sees it; empty for a hit, which is too quick to write one down.
    """

    index: int
    outcome: str
    seconds: float
    trace: float | None = None
    lower: float | None = None
    compile: float | None = None
    reason: Reason | None = None
    signature: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready data."""
        return asdict(self) | {"reason": self.reason.to_dict() if self.reason else None}


def rows(calls: Sequence[Call]) -> list[list[str]]:
    """Return the cells of a table of calls; each run of hits is one row with its median."""
    cells: list[list[str]] = []
    start = 0
    while start < len(calls):
        stop = start + 1
        while calls[start].outcome == "hit" and stop < len(calls) and calls[stop].outcome == "hit":
            stop += 1
        cells.append(_row(calls[start:stop]))
        start = stop
    return cells


def _row(run: Sequence[Call]) -> list[str]:
    first, last = run[0], run[-1]
    phases = ["" if s is None else duration(s) for s in (first.trace, first.lower, first.compile)]
    seconds = duration(median(call.seconds for call in run))
    if len(run) > 1:
        return [f"{first.index}–{last.index}", f"{len(run)} hits", seconds, *phases, "(median)"]
    why = first.reason.sentence if first.reason else ""
    return [str(first.index), first.outcome, seconds, *phases, why]


def advices(calls: Sequence[Call]) -> list[str]:
    """Return each advice among the reasons once, with the kind it belongs to, leaving out first calls."""
    reasons = [call.reason for call in calls if call.reason and call.reason.kind not in ("first call", "raised")]
    return list(dict.fromkeys(f"{r.kind}: {r.advice}" for r in reasons))
