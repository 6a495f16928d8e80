"""The signatures that JAX's caches hold for a function, as far as watched calls tell."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable

from jitguide._differences import differences, explain
from jitguide._reasons import COMPILE, FAST, TRACE, Reason, reason
from jitguide._signature import Signature

# Comparing with one takes about 20 µs. A function with more kinds of calls has a problem that no list solves.
_MAX_KNOWN = 100
# Where functions were made -> the last function made there, and its history; both may be gone.
_places: dict[tuple, tuple[weakref.ref, weakref.ref]] = {}
_places_lock = threading.Lock()


class History:
    """What is known about the calls of one function object; shared by all its watchers.

    Attributes:
        remade: Whether another function object came from the same place in the code before.
    """

    def __init__(self, remade: bool = False) -> None:
        self.remade = remade
        self._lock = threading.Lock()
        self._known: list[Signature] = []
        self._forgotten: list[Signature] = []
        self._slow: list[Signature] = []
        self._failed: list[Signature] = []

    def forget(self) -> None:
        """Note that the caches were cleared."""
        with self._lock:
            self._forgotten = [*self._forgotten, *self._known][-_MAX_KNOWN:]
            self._known, self._failed = [], []

    def note_failure(self, now: Signature) -> None:
        """Remember a call that raised and left an entry: JAX never gives that entry a fast path."""
        with self._lock:
            if len(self._failed) < _MAX_KNOWN and not _is_among(self._failed, now):
                self._failed.append(now)

    @property
    def has_slow(self) -> bool:
        """Whether some kind of call never takes the fast path."""
        return bool(self._slow or self._failed)

    @property
    def is_empty(self) -> bool:
        """Whether no call is known yet."""
        return not (self._known or self._forgotten)

    def is_slow(self, now: Signature) -> bool:
        """Return whether this kind of call never takes the fast path."""
        return _is_among(self._slow, now) or _is_among(self._failed, now)

    def learn(
        self, name: str, now: Signature, layer: str, *, slow: bool, first: bool, met: bool = False
    ) -> Reason:
        """Remember a call that was not a hit, and return why it was not.

        Args:
            name: Name of the function.
            now: Signature of the call.
            layer: How deep it went.
            slow: Whether calls of this kind never take the fast path.
            first: Whether it is the first of its watcher to do any work.
            met: Whether its watcher saw calls before it that only ran a program.
        """
        with self._lock:
            if slow and not _is_among(self._slow, now):
                self._slow.append(now)
            found = self._explain(name, now, layer, first, met)
            if found.kind not in ("unknown", "options", "no fast path", "failed first call"):
                self._known.append(now)
                del self._known[:-_MAX_KNOWN]
        return found

    def _explain(self, name: str, now: Signature, layer: str, first: bool, met: bool) -> Reason:
        if not self._known and not self._forgotten and self.remade and layer == TRACE:
            return reason("new function object", name)
        if layer == FAST and _is_among(self._slow, now):
            return reason("no fast path", name)
        if layer == FAST and _is_among(self._failed, now):
            return reason("failed first call", name)
        if _is_among(self._known, now):
            return reason("options" if first and layer == COMPILE else "unknown", name)
        if _is_among(self._forgotten, now):
            return reason("caches cleared", name)
        if met and self.is_empty:  # compiled before it was watched, for unseen calls
            return reason("not watched then", name)
        return explain(name, now, self._known or self._forgotten, layer)


def _is_among(signatures: list[Signature], now: Signature) -> bool:
    return any(not differences(other, now) for other in signatures)


def history_of(fun: Callable) -> History:
    """Return the history of a function object; a new one if it was never watched."""
    place = _place(fun)
    try:
        this = weakref.ref(fun)
    except TypeError:  # a few callables of C
        return History()
    with _places_lock:
        last_fun, last_history = _places.get(place, (None, None))
        same = last_fun is not None and last_fun() is fun
        history = last_history() if same else None
        if history is None:
            history = History(remade=bool(place) and last_fun is not None and not same)
            _places[place] = (this, weakref.ref(history))
    return history


def _place(fun: Callable) -> tuple:
    """Return where a function comes from: its code, and that of the functions it wraps."""
    codes = []
    for _ in range(8):  # deeper than any chain of wrappers worth telling apart
        code = getattr(fun, "__code__", None) or getattr(type(fun).__call__, "__code__", None)
        if code is not None:
            codes.append((code.co_filename, code.co_firstlineno, hash(code)))
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif hasattr(fun, "__wrapped__"):
            fun = fun.__wrapped__
        else:
            break
    return tuple(codes)
