"""Which cells of a page measure time: nothing else runs while they do.

More is found than measures, never less: a name counts that is a clock or an instrument of `jitguide`, and whatever
the page, `jitguide.demos` or an example makes of one: functions that use it, variables that hold it. So does a
string that reads like a program that measures.
"""

from __future__ import annotations

import ast
import functools
import re
import threading
from collections.abc import Iterator, Set

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from _ext import ROOT

from . import notebooks

_CLOCKS = frozenset({"time", "timeit", "cProfile", "profile"})
_HARMLESS = frozenset({"sleep", "strftime", "gmtime", "localtime"})  # of these modules
_OTHER_PROCESSES = frozenset({"subprocess", "multiprocessing"})
_INSTRUMENTS = frozenset({"compare", "phases", "scaling", "peaks", "roofline", "record"})
# Attributes that measure, on objects of any kind.
_ATTRIBUTES = frozenset({"profiler", "run_line_magic", "run_cell_magic", "ru_utime", "ru_stime"})
_IN_TEXT = re.compile(r"perf_counter|monotonic|process_time|timeit")
_PARSING = threading.Lock()  # Python 3.11 counts the depth of parsing for all threads together
_OF_MODULES: dict[str, Set[str]] = {}
_DEFERRED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def cells(notebook: NotebookNode) -> list[bool]:
    """Return for each code cell of the page whether it measures.

    On a page with `measures: true` it also measures to start another process, whose program cannot be seen here, unless
    the cell says `measures: false`, and to call a watched function where the page reads the seconds of calls.
    """
    code = notebooks.code_cells(notebook)
    says = tuple(bool(cell.metadata.get("measures", True)) for cell in code)
    return list(_cells(tuple(cell.source for cell in code), bool(notebook.metadata.get("measures")), says))


@functools.cache  # a build asks several times
def _cells(sources: tuple[str, ...], marked: bool, says: tuple[bool, ...]) -> list[bool]:
    parts = [_parse(source) for source in sources]
    if not marked:
        return _Names(_CLOCKS).read(parts)
    watching = {"watch"} if any(".seconds" in source for source in sources) else set()
    found = _Names(_CLOCKS | _OTHER_PROCESSES, watching).read(parts)
    if all(says):
        return found
    itself = _Names(_CLOCKS, watching).read(parts)
    return [one or (other and said) for one, other, said in zip(itself, found, says, strict=True)]


def check(notebook: NotebookNode) -> None:
    """Refuse a page that measures without saying so.

    Raises:
        PageError: A cell measures, and the front matter lacks `measures: true`.
    """
    if notebook.metadata.get("measures"):
        return
    for cell, measures in zip(notebooks.code_cells(notebook), cells(notebook), strict=True):
        if measures:
            message = "the cell measures time: say `measures: true` in the front matter of the page."
            raise notebooks.PageError(message, notebooks.line_of(notebook, cell))


def _parse(source: str) -> ast.Module:
    try:
        with _PARSING:
            return ast.parse(TransformerManager().transform_cell(source))
    except SyntaxError:  # the cell runs nothing: it shows Python's message
        return ast.Module([], [])


def _of_module(name: str) -> Set[str]:
    """Return the names of a module of `jitguide.demos` or of an example that measure."""
    if name not in _OF_MODULES:
        path = (
            ROOT.joinpath(*name.split(".")) if name.startswith("jitguide.demos") else ROOT / "examples" / name
        )
        file = next((f for f in (path.with_suffix(".py"), path / "__init__.py") if name and f.exists()), None)
        names = _Names(_CLOCKS)
        _OF_MODULES[name] = names.known  # before it is read: a package may import from itself
        if file:
            names.read([ast.parse(file.read_text("utf-8"))])
    return _OF_MODULES[name]


class _Names:
    """The names that measure, or from which something can be had that does."""

    def __init__(self, clocks: Set[str], watching: Set[str] = frozenset()):
        self._clocks, self._watching = clocks, watching
        self._modules: dict[str, str] = {}  # what stands behind the name of a module
        self._makers: set[str] = set()  # whose results measure when they are called, not only they themselves
        self.known: set[str] = set()

    def read(self, parts: list[ast.Module]) -> list[bool]:
        """Return which parts measure; a function may use what comes later, so it reads until nothing is new."""
        while True:
            before = len(self.known) + len(self._makers)
            found = [sum(map(self._statement, part.body)) > 0 for part in parts]
            if len(self.known) + len(self._makers) == before:
                return found

    def _statement(self, statement: ast.stmt) -> bool:
        """Note what a statement binds; return whether running it measures."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._define(node)
            elif (value := _bound(node)) and {"kept", "later"} & set(self._uses(value)):
                self.known |= set(_changed(node)) - self._modules.keys()
        return bool({"run", "kept"} & set(self._uses(statement)))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            if isinstance(node, ast.Import):
                self._modules[name] = alias.name if alias.asname else name
                measures = False
            else:
                module = node.module or ""
                named = module == "jitguide" and alias.name in _INSTRUMENTS | self._watching
                if named and alias.name in self._watching:
                    self._makers.add(name)
                clock = module in self._clocks and alias.name not in _HARMLESS
                measures = named or clock or alias.name in _of_module(module)
                if module == "jitguide.demos":
                    self._modules[name] = f"{module}.{alias.name}"
            if measures:
                self.known.add(name)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        if any(self._uses(node)):
            self.known.add(node.name)
            inner = (n for part in node.body for n in ast.walk(part) if isinstance(n, _DEFERRED))
            if isinstance(node, ast.ClassDef) or any(use for n in inner for use in self._uses(n)):
                self._makers.add(node.name)

    def _uses(self, node: ast.AST) -> Iterator[str]:
        """Yield how the code uses what measures: run (called), kept (named), or later (in a function's body)."""
        parts: list[ast.AST] = list(ast.iter_child_nodes(node))
        if isinstance(node, _DEFERRED):
            body = node.body if isinstance(node.body, list) else [node.body]
            yield from ("later" for part in body for _ in self._uses(part))
            parts = [part for part in parts if part not in body]
        elif isinstance(node, ast.Call) and self._measures(node.func):
            yield "kept" if isinstance(node.func, ast.Name) and node.func.id in self._makers else "run"
            parts.remove(node.func)
        elif self._measures(node):
            yield "kept"
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in self._modules
        ):
            return  # the module itself is not what is used
        for part in parts:
            yield from self._uses(part)

    def _measures(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and bool(_IN_TEXT.search(node.value))
        if isinstance(node, ast.Name):
            return isinstance(node.ctx, ast.Load) and (
                node.id in self.known or self._is_measuring_module(node.id)
            )
        if not isinstance(node, ast.Attribute):
            return False
        if node.attr in _ATTRIBUTES:
            return True
        module = self._modules.get(node.value.id, "") if isinstance(node.value, ast.Name) else ""
        if module == "jitguide":
            return node.attr in _INSTRUMENTS | self._watching
        return (module in self._clocks and node.attr not in _HARMLESS) or node.attr in _of_module(module)

    def _is_measuring_module(self, name: str) -> bool:
        return self._modules.get(name) in {"jitguide", *self._clocks}


def _bound(node: ast.AST) -> ast.AST | None:
    """Return what a node binds to names, if it binds something."""
    if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        return node.iter
    if isinstance(node, ast.withitem):
        return node.context_expr
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.Expr):
        return node.value
    return None


def _changed(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds, and those whose objects it may change."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.value, ast.Name):
            # Both `a.b = ...` and `a.append(...)` change `a`.
            changes = isinstance(part.ctx, ast.Store) or isinstance(node, ast.Expr)
            yield from [part.value.id] if changes else []
