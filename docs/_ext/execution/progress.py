"""What a build shows while pages run: one line that changes, or where there is no terminal a line for each page."""

from __future__ import annotations

import shutil
import sys
import threading
import time

from sphinx.util import logging

_log = logging.getLogger(__name__)


class Progress:
    """The pages of a build that run.

    Args:
        expected: For each page the seconds that each of its cells is thought to take.
    """

    def __init__(self, expected: dict[str, list[float]]):
        self._expected = expected
        self._all = self._left = sum(map(sum, expected.values()))
        self._begun = time.monotonic()
        self._running: dict[str, int] = {}  # how many cells have begun
        self._ended = 0
        self._lock = threading.Lock()
        self._live = sys.stdout.isatty()
        self._width = 0

    def cell(self, page: str, number: int) -> None:
        """Note that a cell begins; it is counted from 0."""
        with self._lock:
            self._left -= sum(self._expected[page][self._running.get(page, 0) : number])
            self._running[page] = number
            if self._live:
                running = ", ".join(
                    f"{name} {i + 1}/{len(self._expected[name])}" for name, i in self._running.items()
                )
                self._show(f"{self._state()}: {running}")

    def end(self, page: str, seconds: float | None = None) -> None:
        """Note that a page has ended, with the seconds of its cells unless it failed."""
        with self._lock:
            self._left -= sum(self._expected[page][self._running.pop(page, 0) :])
            self._ended += 1
            last = self._ended == len(self._expected)
            if self._live:
                self._show(self._state(), "\n" if last or seconds is None else "")
            else:
                took = (
                    "failed" if seconds is None else f"{len(self._expected[page])} cells in {seconds:.1f} s"
                )
                _log.info("executed %s: %s (%s)", page, took, self._state())

    def _state(self) -> str:
        spent = time.monotonic() - self._begun
        text = f"{self._ended} of {len(self._expected)} pages in {spent:.0f} s"
        if self._all - self._left <= 0 or self._ended == len(self._expected):
            return text
        return f"{text}, about {spent * self._left / (self._all - self._left):.0f} s left"

    def _show(self, text: str, end: str = "") -> None:
        text = text[: shutil.get_terminal_size().columns - 1]
        _log.info("\r%s%s", text.ljust(self._width), end, nonl=True)
        self._width = len(text)
