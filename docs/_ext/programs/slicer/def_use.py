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

    def _branches(self, *branches: Iterable[object]) -> None:
        """Visit parts of which one or none runs; what all of them bind is bound."""
        before, ends = set(self.bound), []
        for branch in branches:
            self.bound = set(before)
            self._each(branch)
            ends.append(self.bound)
        self.bound = set.intersection(*ends)
        self.maybe |= set.union(*ends) - self.bound

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._branches(node.body, node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self._branches([node.body], [node.orelse])

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._branches([node.target, *node.body], [])
        self._branches(node.orelse, [])

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._branches([*node.body, *node.orelse], [])

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        """Any part may be left early; the last one always runs."""
        self._branches([*node.body, *node.orelse], *(handler.body for handler in node.handlers), [])
        caught = [part for h in node.handlers if h.type for part in ast.walk(h.type)]
        self.reads |= {part.id for part in caught if isinstance(part, ast.Name)}
        self._each(node.finalbody)

    def visit_TryStar(self, node: ast.TryStar) -> None:
        self.visit_Try(node)

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        self._branches(*([case.pattern, case.guard, *case.body] for case in node.cases), [])

    def _pattern(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.bound.add(name)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = _pattern
