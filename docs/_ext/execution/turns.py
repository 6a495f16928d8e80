"""Who may run a cell now: cells of several pages side by side, or one that measures, alone.

Both kinds wait for the other to end. Cells that measure are let in when the others no longer fill the cores, and
then all that wait for it run one after the other: so their pages go on side by side afterwards, and neither kind
keeps the other waiting for long. Kernels start and end beside cells of the first kind: that is mostly waiting.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Turns of threads on `cores` cores.

    Example:
        >>> turns = Turns(cores=2)
        >>> with turns.alone():
        ...     "nothing else runs"
        'nothing else runs'
    """

    def __init__(self, cores: int):
        self._cores = cores
        self._changed = threading.Condition()
        self._held = threading.local()
        self._running = 0  # side by side
        self._together = 0  # running or waiting to run side by side
        self._beside = 0  # starting or ending
        self._alone: deque[object] = deque()  # those that wait to run alone, and first the one that does
        self._batch = 0  # how many of these go before the others run again
        self._owed = 0  # how many of the others, which waited for them, go before the next ones

    @contextmanager
    def together(self) -> Iterator[None]:
        """Run beside others, as soon as a core is free; a thread that has its turn goes on."""
        if getattr(self._held, "turn", False):
            yield
            return
        with self._changed:
            self._together += 1
            self._changed.wait_for(lambda: not self._batch and self._running < self._cores)
            self._running += 1
            self._owed -= self._owed > 0
        self._held.turn = True
        try:
            yield
        finally:
            self._held.turn = False
            with self._changed:
                self._running -= 1
                self._together -= 1
                self._choose()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Run beside others, on no core of one's own, and beside nothing that measures."""
        with self._changed:
            self._changed.wait_for(lambda: not self._batch)
            self._beside += 1
        try:
            yield
        finally:
            with self._changed:
                self._beside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run while nothing else does."""
        turn = object()
        with self._changed:
            self._alone.append(turn)
            self._choose()
            self._changed.wait_for(
                lambda: self._batch and self._alone[0] is turn and not self._running + self._beside
            )
        self._held.turn = True
        try:
            yield
        finally:
            self._held.turn = False
            with self._changed:
                self._alone.popleft()
                self._batch -= 1
                self._owed = self._together
                self._choose()

    def _choose(self) -> None:
        if not self._batch and not self._owed and self._together < self._cores:
            self._batch = len(self._alone)
        self._changed.notify_all()
