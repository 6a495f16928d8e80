"""How the statements before a cell depend on each other: bindings, mutations, and calls that functions remember."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Sequence

from . import global_effects
from .statements import Statement


def needed(target: Sequence[Statement]) -> set[str]:
    """Return the names that a cell needs from outside."""
    found: set[str] = set()
    bound: set[str] = set()
    for s in target:
        found |= (s.reads | s.later) - bound
        bound |= s.binds
    return found


class Dependencies:
    """How the statements of a page depend on each other.

    Args:
        before: The statements, in order; each depends on earlier ones alone.
        with_history: Whether earlier calls count that a cache, a counter or a donated buffer remembers.
    """

    def __init__(self, before: list[Statement], *, with_history: bool):
        self.before, self.with_history = before, with_history
        self.imported: dict[str, str] = {}
        for s in before:
            for node in s.nodes:
                self.imported |= global_effects.imports(node)
        self._close = functools.cache(self._closure)
        self.groups = [self._group(s, i) for i, s in enumerate(before)]
        self.effects = [self._effect(s, i) for i, s in enumerate(before)]
        self.files, self.ambient = self._files(), [self._is_ambient(s) for s in before]
        if with_history:
            self._add_listeners()

    def _files(self) -> dict[int, list[str]]:
        """Return the files that a statement writes, for those that do nothing else."""
        found = {}
        for i, s in enumerate(self.before):
            written = [file for n in s.nodes if (file := global_effects.written_file(n, self.imported))]
            if len(written) == len(s.nodes):
                found[i] = written
        return found

    def _is_ambient(self, s: Statement) -> bool:
        return not s.shown and any(global_effects.is_ambient(n, self.imported) for n in s.nodes)

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
            if self.with_history and donates:
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

    def choose(self, target: list[Statement], end: int | None = None) -> list[Statement]:
        """Return what the statements of a cell need of the first `end` ones, or of all."""
        keeping = _Keeping(self, len(self.before) if end is None else end)
        for i in range(keeping.end):
            if self.ambient[i] and i not in self.files:
                keeping.keep(i)
        names = needed(target)
        for name in names:
            keeping.need(name, keeping.end, keeping.end)
        if self.with_history:
            keeping.follow_history(self._functions(self.closure(names, keeping.end)))
        keeping.keep_files(target)
        return [self.before[i] for i in sorted(keeping.kept)]


class _Keeping:
    """The statements kept so far, and what follows from them."""

    def __init__(self, dependencies: Dependencies, end: int):
        self.dependencies, self.end = dependencies, end
        self.kept: set[int] = set()
        self.asked: set[tuple[str, int, int]] = set()

    def keep(self, i: int) -> None:
        """Keep a statement with all that it needs: now, and in its functions until the end."""
        if i in self.kept:
            return
        self.kept.add(i)
        s, end = self.dependencies.before[i], self.end
        for name in s.reads:
            self.need(name, i, end if self.dependencies.with_history else i)
        for name in s.later:
            self.need(name, i, end)
            for j in range(i + 1, end):  # a function may be called before and after a global is bound again
                if name in self.dependencies.before[j].binds | self.dependencies.before[j].maybe:
                    self.keep(j)
                    self.need(name, j + 1, end)
        # A function that calls itself, or one defined later, is found by the loop above.

    def need(self, name: str, at: int, until: int) -> None:
        """Keep what binds a name that is read at a place, and the changes to its object up to another."""
        places = self.dependencies.bindings(name, at)
        if not places or (name, places[0], until) in self.asked:
            return
        self.asked.add((name, places[0], until))
        for i in places:
            self.keep(i)
        for i in range(min(places) + 1, until):
            if name in self.dependencies.before[i].binds and i > places[0]:
                break
            if name in self.dependencies.effects[i]:
                self.keep(i)

    def follow_history(self, wanted: frozenset[int]) -> None:
        """Keep each call that adds to the history of the functions."""
        for i, s in enumerate(self.dependencies.before[: self.end]):
            if s.calls and self.dependencies.groups[i] & wanted:
                self.keep(i)

    def keep_files(self, target: list[Statement]) -> None:
        """Keep what writes a file that a kept statement or the cell names."""
        count = -1
        while count != len(self.kept):
            count = len(self.kept)
            for i, names in self.dependencies.files.items():
                if i >= self.end:
                    break
                others = [*target, *(self.dependencies.before[j] for j in self.kept if j != i)]
                texts = [text for s in others for text in s.texts]
                if any(name in text for name in names for text in texts):
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
