"""Choose the earlier statements of a page that a cell depends on.

There are three levels, and the build takes the first whose program behaves as the page did:

1. the names that the cell needs, the changes made to their objects, and the settings of Python and JAX;
2. these, and the history of the cell's functions: earlier calls that a cache, a counter or a donated buffer
   remembers;
3. everything before the cell, less what raised.

No level keeps a statement that raised, nor anything of a removed cell.

A program need not be minimal, and nothing here has to be certain: the build runs what it made.
"""

# ruff: noqa: SIM905 -- a list of words reads better so

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from dataclasses import dataclass

from .dependencies import Dependencies
from .statements import SliceError, Statement, parse

LEVELS = (1, 2, 3)
# Words in a cell whose outcome depends on earlier calls and may be a measured number, which is not compared.
# `compare` and its like are not among them, as they warm up or start fresh themselves; nor is `watch`, which
# reports in words what happened.
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
        SliceError: A cell contains what a program cannot; the attribute `cell` of the error is its number.

    Example:
        >>> page = Page([Cell("x = 1"), Cell("y = 2"), Cell("print(x)")])
        >>> [(s.cell, s.first) for s in page.choose(2, level=1)]
        [(0, 1)]
    """

    def __init__(self, cells: Sequence[Cell]):
        self.cells = cells
        self.parsed: list[list[Statement]] = []
        for number, cell in enumerate(cells):
            try:
                self.parsed.append(parse(cell.source, number))
            except SliceError as error:
                raise SliceError(str(error), error.line, number) from None
            if self.parsed[-1]:
                self.parsed[-1][-1].shown = cell.shown
        self._refuse_hidden_names()
        self._ends: list[int] = []  # how many statements that programs may use come before each cell
        self._usable: list[Statement] = []
        for statements, cell in zip(self.parsed, cells, strict=True):
            self._ends.append(len(self._usable))
            if not cell.hidden:  # a cell that raises, raises in its last statement
                self._usable += statements[:-1] if cell.raised else statements
        self._dependencies = functools.cache(
            lambda with_history: Dependencies(self._usable, with_history=with_history)
        )

    def _refuse_hidden_names(self) -> None:
        seen: set[str] = set()
        hidden: set[str] = set()
        for number, (cell, statements) in enumerate(zip(self.cells, self.parsed, strict=True)):
            for s in statements:
                if not cell.hidden and (lost := (s.reads | s.later) & hidden - seen - s.binds):
                    names = ", ".join(sorted(lost))
                    raise SliceError(
                        f"the cell needs {names!r}, which only a removed cell binds.", s.first, number
                    )
                (hidden if cell.hidden else seen).update(s.binds | s.maybe)

    def choose(self, target: int, level: int) -> list[Statement]:
        """Return the earlier statements that the program of a cell consists of, in order."""
        end = self._ends[target]
        if level == LEVELS[-1]:
            return [s for s in self._usable[:end] if not _is_text(s)]
        return self._dependencies(level > 1).choose(self.parsed[target], end)

    def first_level(self, target: int) -> int:
        """Return the level to begin with: equal text can hide a lost warm-up, so some cells keep their history."""
        words: set[str] = set().union(*(s.mentions for s in self.parsed[target]))
        return 2 if words & _READS_HISTORY else 1


def _is_text(statement: Statement) -> bool:
    return all(isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) for n in statement.nodes)
