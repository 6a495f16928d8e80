"""One watched call, and the log of many."""

from __future__ import annotations

import threading
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np

from jitguide._display import AsData, Displayed, Table, duration
from jitguide._text import show
from jitguide._watch.reasons import Reason

# From the least to the most work; the last two say that a call cannot be placed on this scale.
Outcome = Literal[
    "hit",
    "left the fast path",
    "traced",
    "lowered",
    "read from the persistent cache",
    "compiled",
    "raised",
    "not counted",
]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_NOT_COUNTED = (
    'Calls marked "not counted" are unknown: JAX did not report its work as expected, or other code removed '
    "the listener."
)
# More rows than this are not read; the first and the last tell what happens.
_MAX_ROWS = 40
_NEED_NO_ADVICE = ("first call", "first call without error", "raised")
_HEADER = ("call", "outcome", "seconds", "trace", "lower", "compile", "why")
_NUMERIC = (2, 3, 4, 5)
_MINOR = (3, 4, 5)  # the phases: a narrow screen has room for them or for the reasons


@dataclass(frozen=True)
class Call(AsData):
    """One call of a watched function.

    Attributes:
        index: Its number, from 1.
        outcome: The deepest thing it made JAX do, or "raised"; one of `OUTCOMES`.
        seconds: Until the call returned. JAX may still be computing the result then.
        trace: Seconds of tracing; None if there was none.
        lower: Seconds of lowering to StableHLO; None if there was none.
        compile: Seconds in XLA, or of reading from the persistent cache; None if there was neither.
        compiled: Whether XLA compiled it, which a call that raised when its program ran did as well.
        reason: Why it was not a hit; None for a hit.
        signature: The call as jit sees it; empty for a hit, which is too quick to write one down.
    """

    index: int
    outcome: Outcome
    seconds: float
    trace: float | None = None
    lower: float | None = None
    compile: float | None = None
    reason: Reason | None = None
    signature: str = ""
    compiled: bool = False


class CallLog(Displayed):
    """The calls of one function, with their counts, their table and assertions about them.

    Hits take eight bytes each, so that a loop of a million calls can be watched.
    """

    __name__: str
    _notes: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def _add_hit(self, seconds: float) -> None:
        with self._lock:
            self._seconds.append(seconds)

    def _add(self, outcome: Outcome, seconds: float, **details: Any) -> None:
        with self._lock:
            self._seconds.append(seconds)
            index = len(self._seconds)
            self._work[index] = Call(index, outcome, seconds, **details)

    def reset(self) -> None:
        """Forget the calls so far. What JAX has in its caches stays, and so does the memory of it."""
        with self._lock:
            self._seconds = array("d")
            self._work: dict[int, Call] = {}

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls since the start or the last `reset`."""
        with self._lock:
            seconds, work = self._seconds[:], dict(self._work)
        return tuple(work.get(i) or Call(i, "hit", s) for i, s in enumerate(seconds, 1))

    @property
    def last(self) -> Call | None:
        """The last call; None before the first."""
        with self._lock:
            count = len(self._seconds)
            return (self._work.get(count) or Call(count, "hit", self._seconds[-1])) if count else None

    @property
    def counts(self) -> dict[Outcome, int]:
        """How many calls had each outcome; only those that occurred."""
        with self._lock:
            found: Counter[Outcome] = Counter(call.outcome for call in self._work.values())
            found["hit"] = len(self._seconds) - len(self._work)
        return {outcome: found[outcome] for outcome in OUTCOMES if found[outcome]}

    @property
    def traces(self) -> int:
        """How many calls traced the function."""
        return sum(call.trace is not None for call in list(self._work.values()))

    @property
    def compiles(self) -> int:
        """How many calls compiled, those that raised later included; a program read from the persistent cache is not compiled."""
        return sum(_has_compiled(call) for call in list(self._work.values()))

    @property
    def hits(self) -> int:
        """How many calls were hits: they did nothing but run the program."""
        return self.counts.get("hit", 0)

    def assert_compiles(self, expected: int) -> None:
        """Fail unless exactly `expected` calls compiled since the start or the last `reset`.

        Raises:
            AssertionError: Another number did; the message says which calls, and why.
            TypeError: `expected` is no number.
            ValueError: `expected` is negative.
        """
        self._assert("compiled", self.compiles, expected, _has_compiled)

    def assert_traces(self, expected: int) -> None:
        """Fail unless exactly `expected` calls traced since the start or the last `reset`.

        Raises:
            AssertionError: Another number did; the message says which calls, and why.
            TypeError: `expected` is no number.
            ValueError: `expected` is negative.
        """
        self._assert("traced", self.traces, expected, lambda call: call.trace is not None)

    def _assert(self, did: str, found: int, expected: int, which: Callable[[Call], bool]) -> None:
        require_count(expected)
        calls = self.calls
        if any(call.outcome == "not counted" for call in calls):
            raise AssertionError(f"`{self.__name__}` was called {len(calls)} times. {_NOT_COUNTED}")
        if found != expected:
            lines = [f"  call {call.index}: {call.reason}" for call in calls if which(call)]
            raise AssertionError(
                f"`{self.__name__}` {did} in {found} of {len(calls)} calls; expected: {expected}.\n"
                + ("\n".join(lines) or f"  No call {did}: the programs were there before.")
            )

    def _table(self) -> Table:
        calls = self.calls
        counts = ", ".join(f"{n} {outcome}" for outcome, n in self.counts.items()) or "none yet"
        notes = [*_advices(calls), *self._notes, *([_NOT_COUNTED] if "not counted" in self.counts else [])]
        title = f"{self.__name__}: {len(calls)} call{'s' * (len(calls) != 1)} ({counts})"
        return Table(_HEADER, _rows(calls), _NUMERIC, _MINOR, title, notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the calls and their counts as JSON-ready data."""
        calls = [call.to_dict() for call in self.calls]
        return {"function": self.__name__, "counts": self.counts, "traces": self.traces, "calls": calls}


def _has_compiled(call: Call) -> bool:
    return call.compiled or call.outcome == "compiled"


def require_count(expected: Any) -> None:
    """Raise unless `expected` is a number of times that something can happen."""
    if isinstance(expected, bool) or not isinstance(expected, Integral) or expected < 0:
        kind = ValueError if isinstance(expected, Integral) and expected < 0 else TypeError
        raise kind(
            f"`expected` must be a whole number of at least 0, got {show(expected)} of type "
            f"{type(expected).__name__}. Write it first, as in `assert_compiles(1)`."
        )


def _rows(calls: Sequence[Call]) -> list[list[str]]:
    """Return the cells of a table of calls; calls in a row that did the same little are one row."""
    runs = [list(run) for _, run in groupby(calls, key=_sameness)]
    if len(runs) <= _MAX_ROWS:
        return [_row(run) for run in runs]
    half = _MAX_ROWS // 2
    left_out = sum(len(run) for run in runs[half:-half])
    gap = ["…", f"{left_out} calls", "", "", "", "", "not shown; see `.calls`"]
    return [*map(_row, runs[:half]), gap, *map(_row, runs[-half:])]


def _sameness(call: Call) -> object:
    idle = call.outcome in ("hit", "left the fast path")
    return (call.outcome, call.reason) if idle else call.index


def _row(run: Sequence[Call]) -> list[str]:
    first, last = run[0], run[-1]
    phases = ["" if s is None else duration(s) for s in (first.trace, first.lower, first.compile)]
    seconds = duration(float(np.median([call.seconds for call in run])))
    why = first.reason.sentence if first.reason else ""
    if len(run) == 1:
        return [str(first.index), first.outcome, seconds, *phases, why]
    return [
        f"{first.index}–{last.index}",
        f"{first.outcome}, {len(run)} times",
        seconds,
        *phases,
        why or "(median)",
    ]


def _advices(calls: Sequence[Call]) -> list[str]:
    """Return each advice among the reasons once, with the kind it belongs to."""
    reasons = [call.reason for call in calls if call.reason and call.reason.kind not in _NEED_NO_ADVICE]
    return list(dict.fromkeys(f"{r.kind}: {r.advice}" for r in reasons))
