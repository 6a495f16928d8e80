"""Chooses the earlier statements of a page that a cell depends on.

There are four rungs, and the build takes the first whose program behaves as the page did:

1. the names that the cell needs, the changes made to their objects, and the settings of Python and JAX;
2. these, and the history of the cell's functions: earlier calls that a cache, a counter or a donated buffer
   remembers;
3. these, and the history of all functions that came along;
4. everything before the cell, less what raised.

No rung keeps a statement that raised, nor anything of a removed cell.

A program need not be minimal, and nothing here has to be certain: the build runs what it made.
"""

# ruff: noqa: SIM905 -- a list of words reads better so

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from .history import History
from .statements import SliceError, Statement, parse

RUNGS = (1, 2, 3, 4)
# Words in a cell whose outcome tells of earlier calls and may be a measured number, which is not compared.
# `compare` and its like are not among them, as they warm up or start anew themselves; nor is `watch`, which
# says in words what it saw.
_READS_HISTORY = set("_cache_size cache_info is_deleted monitoring perf_counter memory_stats".split())


@dataclass(frozen=True)
class Cell:
    """A code cell of an executed page.

    Attributes:
        source: Its text.
        raised: Class of the error that it ended in, as the page shows it.
        shown: Whether the page shows the value of its last expression.
        draws: Whether it drew a figure.
        hidden: Whether the page leaves its code out.
    """

    source: str
    raised: str | None = None
    shown: bool = False
    draws: bool = False
    hidden: bool = False


class Page:
    """The statements of a page, from which slices are chosen.

    Raises:
        SliceError: A cell holds what no program can; its argument `cell` tells which.

    Example:
        >>> page = Page([Cell("x = 1"), Cell("y = 2"), Cell("print(x)")])
        >>> [(s.cell, s.first) for s in page.choose(2, rung=1)]
        [(0, 1)]
    """

    def __init__(self, cells: Sequence[Cell]):
        self.cells = cells
        self.parsed: list[list[Statement]] = []
        for number, cell in enumerate(cells):
            try:
                self.parsed.append(parse(cell.source, number))
            except SliceError as error:
                error.cell = number
                raise
            if self.parsed[-1]:
                self.parsed[-1][-1].shown = cell.shown
        self._refuse_hidden_names()

    def _refuse_hidden_names(self) -> None:
        seen, hidden = set(), set()
        for number, (cell, statements) in enumerate(zip(self.cells, self.parsed, strict=True)):
            for s in statements:
                if not cell.hidden and (lost := (s.reads | s.later) & hidden - seen - s.binds):
                    error = SliceError(
                        f"the cell needs {', '.join(sorted(lost))!r}, which only a removed cell binds.",
                        s.first,
                    )
                    error.cell = number
                    raise error
                (hidden if cell.hidden else seen).update(s.binds | s.maybe)

    def choose(self, target: int, rung: int) -> list[Statement]:
        """Return the earlier statements that the program of a cell consists of, in order."""
        history = History(self._before(target), rung)
        if rung == RUNGS[-1]:
            return [s for s in history.before if not _is_text(s)]
        return history.choose(self.parsed[target])

    def first_rung(self, target: int) -> int:
        """Return the rung to begin with: equal text can hide a lost warm-up, so some cells keep their history."""
        words = set().union(*(s.mentions for s in self.parsed[target]))
        return 2 if words & _READS_HISTORY else 1

    def _before(self, target: int) -> list[Statement]:
        found = []
        for number, statements in enumerate(self.parsed[:target]):
            cell = self.cells[number]
            if not cell.hidden:  # a cell that raises, raises in its last statement
                found += statements[:-1] if cell.raised else statements
        return found


def _is_text(statement: Statement) -> bool:
    return all(isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) for n in statement.nodes)
