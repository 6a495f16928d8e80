"""The signatures that JAX's caches hold for a function, as far as watched calls tell."""

import functools
import re
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jitguide._callables import closure_of, layers
from jitguide._files import owner
from jitguide._text import show
from jitguide._watch.reasons import COMPILE, FAST, TRACE, Reason, reason
from jitguide._watch.signature import Signature
from jitguide._watch.signature_diff import reason_for, same_call
from jitguide._watch.static_diff import parts, same

# Comparing with one takes about 20 µs. A function with more kinds of calls has a problem that no list solves.
_MAX_KNOWN = 100
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class _Made:
    """A function and its history, which may both be gone, and the plain values that it captured."""

    fun: weakref.ref[Any]
    history: weakref.ref[Any]
    captured: dict[str, Any]


# Where functions were made -> the functions made there.
_places: dict[tuple[Any, ...], list[_Made]] = {}
_places_lock = threading.Lock()


@dataclass(frozen=True)
class Work:
    """A call that was not a hit, and what was known about its function when it began."""

    name: str  # of the function
    now: Signature
    layer: str  # how deep it went
    since: int  # `History.count` when the call began
    slow: bool = False  # whether calls of this kind never take the fast path
    first: bool = False  # whether it is the first of its watcher to do any work
    met: bool = False  # whether there were calls before it that are not known here
    busy: bool = False  # whether another thread worked on the function during the call


class History:
    """What is known about the calls of the function object `fun`; shared by all its watchers.

    `others` are functions that the same code made before.
    """

    def __init__(self, fun: weakref.ref[Any] | None = None, others: Sequence[_Made] = ()) -> None:
        self.count = 0  # how many kinds of calls were ever learned
        self.has_slow = False  # whether there are kinds of calls that never take the fast path
        # Of calls while there are slow kinds: why they took no fast path, None if they did.
        self.outlines: dict[tuple[Any, ...], Reason | None] = {}
        self._fun, self._others = fun, others
        self.captured = _captured(fun()) if fun else {}  # now, because a trace may change it
        self._lock = threading.RLock()
        self._known: list[Signature] = []
        self._forgotten: list[Signature] = []
        self._slow: list[Signature] = []
        self._failed: list[Signature] = []
        self._raised = False

    def forget(self) -> None:
        """Note that the caches were cleared."""
        with self._lock:
            self._forgotten = [*self._forgotten, *self._known][-_MAX_KNOWN:]
            self._known, self._slow, self._failed, self.has_slow = [], [], [], False
            self.outlines = {}

    def note(self, now: Signature) -> None:
        """Remember a call for which a program is there."""
        with self._lock:
            if not _is_among(self._known, now):
                self.count += 1
                self._known.append(now)
                del self._known[:-_MAX_KNOWN]

    def note_error(self, now: Signature, *, kept: bool, grown: bool) -> None:
        """Remember a call that raised.

        `kept` is whether its program is kept, `grown` whether it left an entry: JAX never gives that a fast path.
        """
        with self._lock:
            self._raised = True
            if kept:
                self.note(now)
            if grown and len(self._failed) < _MAX_KNOWN and not _is_among(self._failed, now):
                self._failed.append(now)
                self.has_slow = True

    def mark(self, outline: tuple[Any, ...], why: Reason | None) -> None:
        """Remember for calls of an outline why they take no fast path, or that they do."""
        if len(self.outlines) >= _MAX_KNOWN:
            self.outlines = {}
        self.outlines[outline] = why

    def is_slow(self, now: Signature) -> bool:
        """Return whether this kind of call never takes the fast path."""
        return _is_among(self._slow, now) or _is_among(self._failed, now)

    def learn(self, work: Work) -> Reason:
        """Remember a call that was not a hit, and return why it was not."""
        with self._lock:
            if work.slow and not _is_among(self._slow, work.now):
                self._slow.append(work.now)
                self.has_slow = True
            learned_meanwhile = self.count - work.since  # by other threads
            known = self._known[: max(len(self._known) - learned_meanwhile, 0)]
            found = self._reason(work, known)
            self.note(work.now)
        return found

    def _reason(self, work: Work, known: list[Signature]) -> Reason:
        """Return the first kind of reason that fits, or what differs from the nearest earlier call."""
        now, fast = work.now, work.layer == FAST
        unknown_before = not (known or self._forgotten)
        new = unknown_before and not work.met and not self._raised and work.layer == TRACE
        if new and (remade := self._remade(work.name)):
            return remade
        if fast and _is_among(self._slow, now):
            kind = "no fast path"
        elif fast and _is_among(self._failed, now):
            kind = "failed first call"
        elif _is_among(known, now):
            kind = "options" if work.first and work.layer == COMPILE else "unknown"
        elif fast and work.busy:
            kind = "other thread"
        elif _is_among(self._forgotten, now):
            kind = "caches cleared"
        elif work.met and unknown_before:
            kind = "not watched then"
        else:
            return reason_for(work.name, now, known or self._forgotten, work.layer, raised=self._raised)
        return reason(kind, work.name)

    def _remade(self, name: str) -> Reason | None:
        """Return the reason if the same code made another function before; None if that is meant to be another."""
        if not self._others or self._fun is None:
            return None
        fun, earlier = self._fun(), [made.fun() for made in self._others]
        alike = any(other is not None and _are_alike(other, fun) for other in earlier)
        before, now = self._others[-1].captured, self.captured
        changed = [key for key in now if key in before and not same(before[key], now[key])]
        if changed and not alike:
            words = (f"{changed[0]}={show(values[changed[0]])}" for values in (before, now))
            return reason("captured value", name, *words)
        if alike or None in earlier:
            return reason("new function object", name)
        # Around another function, as a decorator or `vmap` makes it, it is meant to be another.
        code = getattr(fun, "__code__", None)
        found = [] if code and owner(code.co_filename) == "jax" else parts(earlier[-1], fun)
        part = next((part for part in found if not part.path or not callable(part.old)), None)
        if part is None:
            return None
        if not part.path:
            return reason("new function object", name)
        label = re.sub(r"^\((\w+)\)|^\.", r"\1", part.path).replace("__self__", "self")
        return reason("captured value", name, f"{label}={part.before or 'one object'}", f"{label}={part.now}")


def _are_alike(old: Any, new: Any) -> bool:
    """Return whether one function is the other made again: by its code, and by what it holds."""
    return not any(part.path or part.kind == "value" for part in parts(old, new))


def _place_of(fun: Callable[..., Any]) -> tuple[Any, ...]:
    """Return where a function comes from: its code, and that of the functions it wraps."""
    codes = [one.__code__ for one in layers(fun) if hasattr(one, "__code__")]
    return tuple((code.co_filename, code.co_firstlineno, hash(code)) for code in codes)


def _captured(fun: Any) -> dict[str, Any]:
    """Return the numbers and texts that a function, or one that it wraps, holds in its closure or as a partial."""
    found: dict[str, Any] = {}
    for one in layers(fun):
        if isinstance(one, functools.partial):
            found |= one.keywords
        elif isinstance(one, types.FunctionType):
            found |= closure_of(one)
    return {name: value for name, value in found.items() if isinstance(value, _PLAIN)}


def _is_among(signatures: list[Signature], now: Signature) -> bool:
    return any(same_call(other, now) for other in reversed(signatures))


def history_of(fun: Callable[..., Any]) -> History:
    """Return the history of a function object; a new one if it is not watched now."""
    place, this = _place_of(fun), weakref.ref(fun)
    with _places_lock:
        made = _places.get(place, [])
        mine = [one for one in made if one.fun() is fun]
        history = mine[0].history() if mine else None
        if history is None:
            others = [one for one in made if one.fun() is not fun]
            gone = [one for one in others if one.fun() is None]
            kept = [one for one in others if one not in gone[:-1]]
            history = History(this, others if place and not mine else ())
            _places[place] = [*kept[-_MAX_KNOWN:], _Made(this, weakref.ref(history), history.captured)]
    return history
