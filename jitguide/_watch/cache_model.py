"""The signatures that JAX's caches hold for a function, as far as watched calls tell."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitguide._watch.function_identity import are_alike, place_of
from jitguide._watch.reasons import COMPILE, FAST, TRACE, Reason, reason
from jitguide._watch.signature import Signature, has_outline_among
from jitguide._watch.signature_diff import differences, reason_for

# Comparing with one takes about 20 µs. A function with more kinds of calls has a problem that no list solves.
_MAX_KNOWN = 100
# Where functions were made -> the functions made there, and their histories; each may be gone.
_places: dict[tuple, list[tuple[weakref.ref, weakref.ref]]] = {}
_places_lock = threading.Lock()


class History:
    """What is known about the calls of one function object; shared by all its watchers.

    Args:
        fun: Reference to the function.
        others: References to functions that the same code made before.

    Attributes:
        count: How many kinds of calls were ever learned.
    """

    def __init__(self, fun: weakref.ref | None = None, others: Sequence[weakref.ref] = ()) -> None:
        self.count = 0
        self._fun, self._others = fun, others
        self._lock = threading.Lock()
        self._known: list[Signature] = []
        self._forgotten: list[Signature] = []
        self._slow: list[Signature] = []
        self._failed: list[Signature] = []
        self._outlines: list[tuple] = []  # of the slow and the failed ones
        self._raised = False

    def forget(self) -> None:
        """Note that the caches were cleared."""
        with self._lock:
            self._forgotten = [*self._forgotten, *self._known][-_MAX_KNOWN:]
            self._known, self._slow, self._failed, self._outlines = [], [], [], []

    def note(self, now: Signature) -> None:
        """Remember a call for which a program is there."""
        with self._lock:
            self._note(now)

    def note_error(self, now: Signature, outline: tuple, *, kept: bool, grown: bool) -> None:
        """Remember a call that raised.

        Args:
            now: Its signature.
            outline: Its outline.
            kept: Whether its program is kept.
            grown: Whether it left an entry: JAX never gives that entry a fast path.
        """
        with self._lock:
            self._raised = True
            if kept:
                self._note(now)
            if grown and len(self._failed) < _MAX_KNOWN and not _is_among(self._failed, now):
                self._failed.append(now)
                self._outlines.append(outline)

    def may_be_slow(self, args: tuple, kwargs: Mapping[str, Any]) -> bool:
        """Return whether a call may be of a kind without a fast path; quick, for it is asked at each hit."""
        return bool(self._outlines) and has_outline_among(self._outlines, args, kwargs)

    def is_slow(self, now: Signature) -> bool:
        """Return whether this kind of call never takes the fast path."""
        return _is_among(self._slow, now) or _is_among(self._failed, now)

    def learn(
        self,
        name: str,
        now: Signature,
        layer: str,
        *,
        slow: tuple | None = None,
        first: bool,
        met: bool = False,
        since: int | None = None,
        busy: bool = False,
    ) -> Reason:
        """Remember a call that was not a hit, and return why it was not.

        Args:
            name: Name of the function.
            now: Signature of the call.
            layer: How deep it went.
            slow: Outline of the call if calls of this kind never take the fast path.
            first: Whether it is the first of its watcher to do any work.
            met: Whether there were calls before it that are not known here.
            since: `count` when the call began; None if nothing was learned since.
            busy: Whether another thread worked on the function during the call.
        """
        with self._lock:
            if slow is not None and not _is_among(self._slow, now):
                self._slow.append(now)
                self._outlines.append(slow)
            meanwhile = 0 if since is None else self.count - since  # learned by other threads
            known = self._known[: max(len(self._known) - meanwhile, 0)]
            found = self._explain(name, now, layer, known, first, met, busy)
            self._note(now)
        return found

    def _note(self, now: Signature) -> None:
        if not _is_among(self._known, now):
            self.count += 1
            self._known.append(now)
            del self._known[:-_MAX_KNOWN]

    def _explain(
        self,
        name: str,
        now: Signature,
        layer: str,
        known: list[Signature],
        first: bool,
        met: bool,
        busy: bool,
    ) -> Reason:
        new = not (known or self._forgotten or met)
        if new and layer == TRACE and not self._raised and self._is_remade():
            return reason("new function object", name)
        if layer == FAST and _is_among(self._slow, now):
            return reason("no fast path", name)
        if layer == FAST and _is_among(self._failed, now):
            return reason("failed first call", name)
        if _is_among(known, now):
            return reason("options" if first and layer == COMPILE else "unknown", name)
        if layer == FAST and busy:
            return reason("other thread", name)
        if _is_among(self._forgotten, now):
            return reason("caches cleared", name)
        if met and not (known or self._forgotten):
            return reason("not watched then", name)
        return reason_for(name, now, known or self._forgotten, layer, raised=self._raised)

    def _is_remade(self) -> bool:
        """Return whether the same code made another function before that is gone, or that is like this one."""
        fun = self._fun() if self._fun else None
        return any(other() is None or are_alike(other(), fun) for other in self._others)


def _is_among(signatures: list[Signature], now: Signature) -> bool:
    return any(not differences(other, now) for other in signatures)


def history_of(fun: Callable) -> History:
    """Return the history of a function object; a new one if it is not watched now."""
    place = place_of(fun)
    try:
        this = weakref.ref(fun)
    except TypeError:  # a few callables of C
        return History()
    with _places_lock:
        made = _places.get(place, [])
        mine = [kept for other, kept in made if other() is fun]
        history = mine[0]() if mine else None
        if history is None:
            others = [pair for pair in made if pair[0]() is not fun]
            living = [pair for pair in others if pair[0]() is not None]
            gone = [pair for pair in others if pair[0]() is None]
            before = [other for other, _ in others] if place and not mine else ()
            history = History(this, before)
            _places[place] = [*gone[-1:], *living[-_MAX_KNOWN:], (this, weakref.ref(history))]
    return history
