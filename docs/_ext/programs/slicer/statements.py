"""What each statement of a page reads, binds and changes: the facts that the slicer decides on.

A statement is one at the top level of a cell, with its decorators and the comment block that touches it.
Names are followed by reading the syntax tree alone; nothing is imported or run here.
"""

from __future__ import annotations

import ast
import symtable
from dataclasses import dataclass, field

from . import mutations
from .def_use import DefUse

_MAKES_HISTORY = {
    "jit",
    "pmap",
    "shard_map",
    "checkpoint",
    "remat",
    "cache",
    "lru_cache",
    "cached_property",
    "watch",
}


class SliceError(Exception):
    """What a page contains that a program cannot, in which line of the cell (counted from 1), and in which cell."""

    def __init__(self, message: str, line: int = 1, cell: int = 0):
        super().__init__(message)
        self.line, self.cell = line, cell


@dataclass
class Statement:
    """One statement of a cell, or several that share a line.

    Attributes:
        cell: Number of its cell.
        first: First line in the cell, comments and decorators included, counted from 1.
        last: Last line in the cell.
        nodes: Its syntax.
        reads: Names read when it runs, and not bound by itself before.
        later: Names that its functions read whenever they are called.
        binds: Names that it binds in any case.
        maybe: Names that it binds under a condition.
        changes: Names whose objects it changes when it runs.
        changes_later: Names whose objects its functions change when they are called.
        mentions: Every identifier and attribute in it.
        texts: Every string in it.
        calls: Whether it calls anything.
        is_import: Whether it only imports.
        shown: Whether it is the last expression of its cell and the page shows its value.
    """

    cell: int
    first: int
    last: int
    nodes: list[ast.stmt]
    reads: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    binds: set[str] = field(default_factory=set)
    maybe: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    changes_later: set[str] = field(default_factory=set)
    mentions: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    calls: bool = False
    is_import: bool = False
    shown: bool = False

    @property
    def makes_history(self) -> bool:
        """Whether what it defines remembers earlier calls."""
        return (
            bool(self.mentions & _MAKES_HISTORY)
            or bool(self.changes_later)
            or mutations.stores_on_self(self.nodes)
        )


def parse(source: str, cell: int = 0) -> list[Statement]:
    r"""Return the statements of a cell.

    Raises:
        SliceError: The cell is not plain Python, or imports names that cannot be listed.

    Example:
        >>> [(s.first, s.last, sorted(s.binds)) for s in parse("# twice two\nx = 2 * 2\n\nprint(x)")]
        [(1, 2, ['x']), (4, 4, [])]
    """
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        text = "is not plain Python: a program cannot contain magics or shell lines"
        raise SliceError(f"the cell {text} ({error.msg}).", error.lineno or 1) from None
    lines = source.splitlines()
    found: list[Statement] = []
    for node in body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        if found and first <= found[-1].last:  # a = 1; b = 2
            found[-1].nodes.append(node)
            found[-1].last = node.end_lineno or node.lineno
            continue
        while first > 1 and lines[first - 2].startswith("#"):
            first -= 1
        found.append(Statement(cell, first, node.end_lineno or node.lineno, [node]))
    for statement in found:
        _study(statement)
    return found


def _study(statement: Statement) -> None:
    flow = DefUse()
    for node in statement.nodes:
        flow.visit(node)
        table = symtable.symtable(ast.unparse(node), "cell", "exec")
        statement.later |= _globals_of_functions(table)
    statement.reads, statement.binds, statement.maybe = flow.reads, flow.bound, flow.maybe
    if any(isinstance(node, ast.For | ast.With) for node in statement.nodes):
        statement.later -= flow.bound | flow.maybe  # a lambda in a loop reads what the loop has bound by then
    for node in statement.nodes:
        now, later = mutations.changes(node)
        statement.changes |= now
        statement.changes_later |= later
        for part in ast.walk(node):
            _mention(statement, part)
    statement.is_import = all(isinstance(n, ast.Import | ast.ImportFrom) for n in statement.nodes)


def _mention(statement: Statement, part: ast.AST) -> None:
    match part:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
            statement.mentions.add(name)
        case ast.Call():
            statement.calls = True
        case ast.Constant(value=str(text)):
            statement.texts.add(text)
        case ast.ImportFrom(module=module, names=[ast.alias(name="*")]):
            raise SliceError(
                f"`from {module} import *`: the names that it brings are unknown; name them.", part.lineno
            )


def _globals_of_functions(table: symtable.SymbolTable, inside: bool = False) -> set[str]:
    """Return the global names that the functions in a table read or bind, at any depth."""
    found = set()
    for child in table.get_children():
        # A comprehension is a function to Python 3.11; outside functions it runs at once, and DefUse follows it.
        at_once = child.get_name() in ("listcomp", "setcomp", "dictcomp", "genexpr") and not inside
        called = child.get_type() == "function" and not at_once
        if called:
            found |= {s.get_name() for s in child.get_symbols() if s.is_global()}
        found |= _globals_of_functions(child, inside or called)
    return found
