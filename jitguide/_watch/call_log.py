"""The log of many watched calls, and how often something may happen in them."""

import itertools
import math
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from jitguide._display import Displayed, Table, duration, plural
from jitguide._text import show
from jitguide._watch.reasons import OUTCOMES, Call, Outcome, Reason, call_at

_NOT_COUNTED = (
    'Calls marked "not counted" are unknown: JAX did not report its work as expected, or other code removed '
    "the listener."
)
# More rows than this are not read; the first and the last tell what happens.
_MAX_ROWS = 40
_NEED_NO_ADVICE = ("first call", "first call without error", "raised")
_HEADER = ("call", "outcome", "time", "trace", "lower", "compile", "why")
_PHASES = (3, 4, 5)  # the columns that a narrow screen has no room for beside the reasons


class _Run(NamedTuple):
    """Calls in a row that did the same little, or one call that did more: its first and last index."""

    first: int
    last: int
    call: Call
    seconds: float

    @property
    def times(self) -> int:
        return self.last - self.first + 1


class Wanted(NamedTuple):
    """How often something may happen: exactly, or at most, a number of times."""

    number: int
    at_most: bool

    def fits(self, found: int) -> bool:
        return found <= self.number if self.at_most else found == self.number

    def __str__(self) -> str:
        return f"at most {self.number}" if self.at_most else str(self.number)


def require_count(expected: Any, at_most: Any = None) -> Wanted:
    """Return what an assertion wants; raise unless it is a number of times that something can happen."""
    if (expected is None) == (at_most is None):
        raise TypeError(
            "Give either the exact number, as in `assert_compiles(1)`, or `at_most=`, as in "
            f"`assert_compiles(at_most=3)`; got {show(expected)} and at_most={show(at_most)}."
        )
    name, count = ("expected", expected) if at_most is None else ("at_most", at_most)
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
        kind = ValueError if isinstance(count, Integral) and count < 0 else TypeError
        raise kind(
            f"`{name}` must be a whole number of at least 0, got {show(count)} of type "
            f"{type(count).__name__}. Write it first, as in `assert_compiles(1)`."
        )
    return Wanted(int(count), at_most is not None)


class CallLog(Displayed):
    """The calls of one function, with their counts, their table and assertions about them.

    A call that hits takes eight bytes, and one that always leaves the fast path sixteen: a loop of a million can be
    watched.
    """

    __name__: str
    _notes: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the calls, without the function."""
        names = ("_seconds", "_others", "_notes", "__name__")
        return CallLog, (), {name: getattr(self, name) for name in names}

    def __enter__(self) -> NoReturn:
        raise TypeError(
            "`watch(f)` is a function that records its calls: write `f = watch(f)` and call `f`. To record all calls in "
            "a block, write `with watch() as found:`, without a function."
        )

    def __exit__(self, *_: object) -> None: ...

    def _add_idle(self, seconds: float, why: Reason | None = None) -> None:
        """Note a call that was a hit or, with a reason, left the fast path."""
        with self._lock:
            self._seconds.append(seconds if why is None else -seconds)
            self._others += [] if why is None else [why]

    def _add(
        self,
        outcome: Outcome,
        seconds: float,
        phases: dict[str, float],
        why: Reason | None,
        signature: str = "",
    ) -> None:
        times = phases.get("trace"), phases.get("lower"), phases.get("compile", phases.get("read"))
        with self._lock:
            self._seconds.append(-seconds)
            self._others.append(Call(0, outcome, seconds, *times, why, signature, "compile" in phases))

    def reset(self) -> None:
        """Forget the calls so far. What JAX has in its caches stays, and so does the memory of it."""
        with self._lock:
            # Negative unless a call was a hit: what else it was stands in `_others`, in the same order. `watch` notes
            # a hit without the lock.
            self._seconds = array("d")
            self._others: list[Call | Reason] = []

    def _noted(self) -> tuple[npt.NDArray[np.float64], dict[int, Call | Reason]]:
        """Return the seconds of all calls, and what those were that did not hit, by index."""
        with self._lock:
            seconds, others = np.array(self._seconds[:]), [*self._others]
        indices = (np.flatnonzero(np.signbit(seconds)) + 1).tolist()
        return np.abs(seconds), dict(zip(indices, others, strict=True))

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls since the start or the last `reset`."""
        seconds, others = self._noted()
        return tuple(call_at(index, s, others.get(index)) for index, s in enumerate(seconds.tolist(), 1))

    @property
    def last(self) -> Call | None:
        """The last call; None before the first."""
        with self._lock:
            index, seconds = len(self._seconds), self._seconds[-1] if self._seconds else 0.0
            other = self._others[-1] if math.copysign(1, seconds) < 0 else None
        return call_at(index, abs(seconds), other) if index else None

    @property
    def counts(self) -> dict[Outcome, int]:
        """How many calls had each outcome; only those that occurred."""
        with self._lock:
            count, others = len(self._seconds), [*self._others]
        found = Counter(x.outcome if isinstance(x, Call) else "left the fast path" for x in others)
        found["hit"] += count - len(others)
        return {outcome: found[outcome] for outcome in OUTCOMES if found[outcome]}

    @property
    def traces(self) -> int:
        """How many calls traced the function."""
        return len(self._which(_has_traced))

    @property
    def compiles(self) -> int:
        """How many calls compiled, those that raised later included; a program read from the persistent cache is not compiled."""
        return len(self._which(lambda call: call.compiled))

    @property
    def hits(self) -> int:
        """How many calls were hits: they did nothing but run the program."""
        return self.counts.get("hit", 0)

    def _which(self, did: Callable[[Call], bool]) -> list[Call]:
        others = self._noted()[1].items()
        return [replace(call, index=index) for index, call in others if isinstance(call, Call) and did(call)]

    def assert_compiles(self, expected: int | None = None, *, at_most: int | None = None) -> None:
        """Fail unless exactly `expected` calls made an executable since the start or the last `reset`.

        A call that read its executable from the persistent cache counts like one that compiled it, so a test
        gives the same result with and without that cache.

        Args:
            expected: Number of calls.
            at_most: The largest number, in place of `expected`.

        Raises:
            AssertionError: Another number did; the message says which calls, with what, and why.
            TypeError: The count is not an integer, or two or no counts are given.
            ValueError: The number is negative.
        """
        __tracebackhide__ = True
        self._assert("compiled", lambda call: call.compile is not None, require_count(expected, at_most))

    def assert_traces(self, expected: int | None = None, *, at_most: int | None = None) -> None:
        """Fail unless exactly `expected` calls traced since the start or the last `reset`.

        Arguments and errors are those of `assert_compiles`.
        """
        __tracebackhide__ = True
        self._assert("traced", _has_traced, require_count(expected, at_most))

    def _assert(self, did: str, which: Callable[[Call], bool], wanted: Wanted) -> None:
        __tracebackhide__ = True
        count = len(self._seconds)
        if "not counted" in self.counts:
            raise AssertionError(f"`{self.__name__}` was called {count} times. {_NOT_COUNTED}")
        found = self._which(which)
        if not wanted.fits(len(found)):
            lines = [f"  call {call.index}: {call.signature}\n    {call.reason}" for call in found]
            raise AssertionError(
                f"`{self.__name__}` {did} in {len(found)} of {count} calls; expected: {wanted}.\n"
                + ("\n".join(lines) or f"  No call {did}: the programs were there before.")
            )

    def _runs(self) -> list[_Run]:
        """Return the calls, those in a row that did the same little as one run."""
        seconds, others = self._noted()
        kinds = np.zeros(len(seconds), int)  # 0 for a hit; calls that did more are never of one kind
        reasons: dict[Reason, int] = {}
        for index, other in others.items():
            if isinstance(other, Call):
                kinds[index - 1] = index
            else:
                kinds[index - 1] = -reasons.setdefault(other, len(reasons) + 1)
        edges = sorted({0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)})
        runs = []
        for first, last in itertools.pairwise(edges):
            call = call_at(first + 1, float(seconds[first]), others.get(first + 1))
            runs.append(_Run(first + 1, last, call, float(np.median(seconds[first:last]))))
        return runs

    def _table(self) -> Table:
        runs, count = self._runs(), len(self._seconds)
        counts = ", ".join(f"{n} {outcome}" for outcome, n in self.counts.items()) or "none yet"
        notes = [*_advices(runs), *self._notes, *([_NOT_COUNTED] if "not counted" in self.counts else [])]
        title = f"{self.__name__}: {count} {plural('call', count)} ({counts})"
        return Table(_HEADER, [*_rows(runs)], (2, *_PHASES), _PHASES, title, notes, below=6, fit=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the calls and their counts as JSON-ready data; calls in a row that did the same little are one entry."""
        calls = [{**run.call.to_dict(), "seconds": run.seconds, "count": run.times} for run in self._runs()]
        return {"function": self.__name__, "counts": self.counts, "traces": self.traces, "calls": calls}


def _has_traced(call: Call) -> bool:
    return call.trace is not None


def _rows(runs: list[_Run]) -> Iterator[list[str]]:
    """Yield the cells of a table of calls; of too many, the first and the last."""
    half = _MAX_ROWS // 2
    for number, run in enumerate(runs):
        if len(runs) <= _MAX_ROWS or not half <= number < len(runs) - half:
            yield _row(run)
        elif number == half:
            left_out = sum(run.times for run in runs[half:-half])
            yield ["…", f"{left_out} calls", "", "", "", "", "not shown; see `.calls`"]


def _row(run: _Run) -> list[str]:
    call = run.call
    phases = ["" if s is None else duration(s) for s in (call.trace, call.lower, call.compile)]
    why = call.reason.sentence if call.reason else ""
    if run.times == 1:
        return [str(run.first), call.outcome, duration(run.seconds), *phases, why]
    times = f"{call.outcome}, {run.times} times"
    return [f"{run.first}–{run.last}", times, duration(run.seconds), *phases, why or "(median)"]


def _advices(runs: list[_Run]) -> list[str]:
    """Return each advice among the reasons once, with the kind it belongs to."""
    reasons = [run.call.reason for run in runs if run.call.reason]
    return list(dict.fromkeys(f"{r.kind}: {r.advice}" for r in reasons if r.kind not in _NEED_NO_ADVICE))
