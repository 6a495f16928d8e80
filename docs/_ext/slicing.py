"""Chooses the earlier statements of a page that a cell depends on.

There are three rungs, and the build takes the first whose program behaves as the page did:

1. the names that the cell needs, the changes made to their objects, and the settings of Python and JAX;
2. these, and the history of the functions in it: earlier calls that a cache, a counter or a donated buffer
   remembers;
3. everything before the cell, less what raised.

No rung keeps a statement that raised, nor anything of a removed cell.

A program need not be minimal, and nothing here has to be certain: the build runs what it made.
"""

# ruff: noqa: SIM905 -- a list of words reads better so

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import ambient
from .statements import SliceError, Statement, parse

RUNGS = (1, 2, 3)
# Words in a cell whose text tells of earlier calls.
_READS_HISTORY = set(
    "_cache_size cache_info watch clear_cache clear_caches is_deleted monitoring compare phases scaling "
    "perf_counter live_arrays memory_stats".split()
)


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
        history = _History(self._before(target), rung)
        if rung == RUNGS[-1]:
            return [s for s in history.before if not _is_text(s)]
        return history.choose(self.parsed[target])

    def first_rung(self, target: int) -> int:
        """Return the rung to begin with: equal text can hide a lost warm-up, so some cells keep their history."""
        history = _History(self._before(target), 1)
        names = _needed(self.parsed[target])
        words = set().union(*(s.mentions for s in self.parsed[target]))
        for i in history.closure(names, len(history.before)):
            if "watch" in history.before[i].mentions and not history.before[i].is_import:
                words.add("watch")
        return 2 if words & _READS_HISTORY else 1

    def _before(self, target: int) -> list[Statement]:
        found = []
        for number, statements in enumerate(self.parsed[:target]):
            cell = self.cells[number]
            if not cell.hidden:  # a cell that raises, raises in its last statement
                found += statements[:-1] if cell.raised else statements
        return found


def _needed(target: Sequence[Statement]) -> set[str]:
    """Return the names that a cell needs from outside."""
    found: set[str] = set()
    bound: set[str] = set()
    for s in target:
        found |= (s.reads | s.later) - bound
        bound |= s.binds
    return found


def _is_text(statement: Statement) -> bool:
    return all(isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) for n in statement.nodes)


class _History:
    """What the statements before a cell do to each other."""

    def __init__(self, before: list[Statement], rung: int):
        self.before, self.rung = before, rung
        self.imported: dict[str, str] = {}
        for s in before:
            for node in s.nodes:
                self.imported |= ambient.imports(node)
        self._close = functools.cache(self._closure)
        self.groups = [self._group(s, i) for i, s in enumerate(before)]
        self.effects = [self._effect(s, i) for i, s in enumerate(before)]
        if rung > 1:
            self._add_listeners()

    def bindings(self, name: str, end: int) -> list[int]:
        """Return where a name may have been bound that is read at `end`, the last place first."""
        found = []
        for i in range(end - 1, -1, -1):
            s = self.before[i]
            if name in s.binds or name in s.maybe:
                found.append(i)
                if name in s.binds and not _binds_part_of_package(s, name):
                    break
        return found

    def closure(self, names: Iterable[str], end: int) -> frozenset[int]:
        """Return every statement that what the names mean at `end` was made from."""
        return frozenset().union(*(self._close(name, end) for name in names))

    def _closure(self, name: str, end: int) -> frozenset[int]:
        found, todo = set(), [(name, end)]
        while todo:
            for i in self.bindings(*todo.pop()):
                if i not in found:
                    found.add(i)
                    todo += [(n, i) for n in self.before[i].reads] + [(n, end) for n in self.before[i].later]
        return frozenset(found)

    def _group(self, s: Statement, i: int) -> frozenset[int]:
        """Return the functions in a statement whose history its calls make longer."""
        return self._functions(self.closure(s.reads | s.later, i) | {i})

    def _functions(self, made_of: frozenset[int]) -> frozenset[int]:
        remembering = {j for j in made_of if self.before[j].makes_history and not self.before[j].is_import}
        if not remembering:
            return frozenset()
        return frozenset(remembering | {j for j in made_of if _defines(self.before[j])})

    def _effect(self, s: Statement, i: int) -> set[str]:
        """Return the names whose objects a statement changes, itself or through what it calls."""
        found = set(s.changes)
        if s.calls:
            made_of = [self.before[j] for j in self.closure(s.reads, i)]
            found |= s.changes_later.union(*(m.changes_later for m in made_of))
            donates = any(w.startswith("donate") for m in [*made_of, s] for w in m.mentions)
            if self.rung > 1 and donates:
                found |= s.reads
        return found - set(self.imported)

    def _add_listeners(self) -> None:
        """What a registered callback owns is changed by every call that JAX hears of."""
        owned: set[str] = set()
        for i, s in enumerate(self.before):
            if owned and self.groups[i]:
                self.effects[i] |= owned
            if any("register" in word for word in s.mentions):
                for j in self.closure(s.reads, i):
                    owned |= self.before[j].changes_later

    def choose(self, target: list[Statement]) -> list[Statement]:
        """Return what the statements of a cell need."""
        keeping = _Keeping(self)
        for i, s in enumerate(self.before):
            if not s.shown and any(ambient.is_ambient(n, self.imported) for n in s.nodes):
                keeping.keep(i)
        names, end = _needed(target), len(self.before)
        for name in names:
            keeping.need(name, end)
        if self.rung > 1:
            keeping.follow_history(self._functions(self.closure(names, end)))
        return [self.before[i] for i in sorted(keeping.kept)]


class _Keeping:
    """The statements kept so far, and what follows from them."""

    def __init__(self, history: _History):
        self.history = history
        self.kept: set[int] = set()
        self.asked: set[tuple[str, int]] = set()

    def keep(self, i: int) -> None:
        """Keep a statement with all that it needs: now, and in its functions until the end."""
        if i in self.kept:
            return
        self.kept.add(i)
        s, end = self.history.before[i], len(self.history.before)
        for name in s.reads:
            self.need(name, i)
        for name in s.later:
            self.need(name, i)
            for j in range(i + 1, end):  # a function may be called before and after a global is bound again
                if name in self.history.before[j].binds | self.history.before[j].maybe:
                    self.keep(j)
                    self.need(name, j + 1)
        # A function that calls itself, or one defined later, is found by the loop above.

    def need(self, name: str, at: int) -> None:
        """Keep what binds a name that is read at a place, and every change to its object."""
        places = self.history.bindings(name, at)
        if not places or (name, places[0]) in self.asked:
            return
        self.asked.add((name, places[0]))
        for i in places:
            self.keep(i)
        for i in range(min(places) + 1, len(self.history.before)):
            if name in self.history.before[i].binds and i > places[0]:
                break
            if name in self.history.effects[i]:
                self.keep(i)

    def follow_history(self, wanted: frozenset[int]) -> None:
        """Keep each call that adds to the history of a function in use, until nothing is added."""
        before, groups = self.history.before, self.history.groups
        count = -1
        while count != len(self.kept):
            count = len(self.kept)
            wanted = wanted.union(*(groups[i] for i in self.kept))
            for i, s in enumerate(before):
                if s.calls and groups[i] & wanted:
                    self.keep(i)


def _defines(s: Statement) -> bool:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return any(isinstance(n, kinds) for n in s.nodes) or any(
        isinstance(part, ast.Lambda) for n in s.nodes for part in ast.walk(n)
    )


def _binds_part_of_package(s: Statement, name: str) -> bool:
    """Return whether the statement is `import a.b`, which adds to what `import a` bound."""
    return any(
        isinstance(n, ast.Import) and any(a.asname is None and a.name.startswith(f"{name}.") for a in n.names)
        for n in s.nodes
    )
