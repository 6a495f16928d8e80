"""Which names a statement needs from outside, and which it leaves bound."""

# ruff: noqa: N815 -- the visitors and their names are ast's

from __future__ import annotations

import ast
from collections.abc import Iterable

# The parts of a node in the order in which Python runs them, where that is not the order of its fields.
_IN_ORDER: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Assign: ("value", "targets"),
    ast.AugAssign: ("value", "target"),
    ast.NamedExpr: ("value", "target"),
    ast.For: ("iter", "target", "body", "orelse"),
    ast.AsyncFor: ("iter", "target", "body", "orelse"),
    ast.Lambda: ("args",),  # the body of a function runs later
    ast.FunctionDef: ("decorator_list", "args", "returns"),
    ast.AsyncFunctionDef: ("decorator_list", "args", "returns"),
}


class DefUse(ast.NodeVisitor):
    r"""Follows a statement in the order in which Python runs it; bodies of functions are left out.

    Attributes:
        reads: Names read before the statement itself has bound them.
        bound: Names bound in any case.
        maybe: Names bound under a condition, or in a loop that may run zero times.

    Example:
        >>> flow = DefUse()
        >>> flow.visit(ast.parse("for x in xs:\n    y = x + z"))
        >>> sorted(flow.reads), sorted(flow.bound), sorted(flow.maybe)
        (['xs', 'z'], [], ['x', 'y'])
    """

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.bound: set[str] = set()
        self.maybe: set[str] = set()

    def generic_visit(self, node: ast.AST) -> None:
        for field in _IN_ORDER.get(type(node), node._fields):
            part = getattr(node, field, None)
            self._each(part if isinstance(part, list) else [part])

    def _each(self, nodes: Iterable[object]) -> None:
        for node in nodes:
            if isinstance(node, ast.AST):
                self.visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
        elif node.id not in self.bound:
            self.reads.add(node.id)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._each([node.annotation, node.value, node.target if node.value else None])

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and node.target.id not in self.bound:
            self.reads.add(node.target.id)  # `x += 1` reads `x` first
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.bound |= {alias.asname or alias.name.split(".")[0] for alias in node.names}

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.generic_visit(node)
        self.bound.add(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._each([*node.decorator_list, *node.bases, *node.keywords])
        self._inside(node.body)
        self.bound.add(node.name)

    def _inside(self, body: Iterable[object]) -> None:
        """Visit what binds names that are gone afterwards."""
        bound, maybe = set(self.bound), set(self.maybe)
        self._each(body)
        self.bound, self.maybe = bound, maybe

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        clauses = [part for g in node.generators for part in (g.iter, g.target, *g.ifs)]
        self._inside([*clauses, *([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])])

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def _perhaps(self, node: ast.AST) -> None:
        """Visit a statement whose parts may not run, or expression: what it binds may be bound."""
        before = set(self.bound)
        self.generic_visit(node)
        self.maybe |= self.bound - before
        self.bound = before

    visit_If = visit_IfExp = visit_For = visit_AsyncFor = visit_While = visit_Match = _perhaps
    visit_Try = visit_TryStar = _perhaps

    def _pattern(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.bound.add(name)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = _pattern
