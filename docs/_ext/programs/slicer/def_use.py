"""Which names a statement needs from outside, and which it leaves bound."""

# ruff: noqa: N815 -- the names of visitors are ast's

from __future__ import annotations

import ast
from collections.abc import Iterable


class DefUse(ast.NodeVisitor):
    r"""Follows a statement in the order in which Python runs it; bodies of functions are left out.

    Attributes:
        reads: Names read before the statement itself has bound them.
        bound: Names bound in any case.
        maybe: Names bound under a condition, or in a loop that may run no time.

    Example:
        >>> flow = DefUse()
        >>> flow.visit(ast.parse("for x in xs:\n    y = x + z"))
        >>> sorted(flow.reads), sorted(flow.bound), sorted(flow.maybe)
        (['xs', 'z'], [], ['x', 'y'])
    """

    def __init__(self):
        self.reads: set[str] = set()
        self.bound: set[str] = set()
        self.maybe: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        """Note a name that is read, bound or deleted."""
        if isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
        elif node.id not in self.bound:
            self.reads.add(node.id)

    def _each(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """The value comes before the targets."""
        self._each([node.value, *node.targets])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """An annotation without a value binds nothing."""
        self._each([node.annotation, node.value, node.target if node.value else None])

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """`x += 1` reads `x` first."""
        if isinstance(node.target, ast.Name) and node.target.id not in self.bound:
            self.reads.add(node.target.id)
        self._each([node.value, node.target])

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """The value comes before the name."""
        self._each([node.value, node.target])

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        """`import a.b` binds `a`."""
        self.bound |= {alias.asname or alias.name.split(".")[0] for alias in node.names}

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Decorators, defaults and annotations run now, the body does not."""
        self._each(node.decorator_list)
        self._arguments(node.args)
        self._each([node.returns])
        self.bound.add(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Only the defaults run now."""
        self._arguments(node.args)

    def _arguments(self, arguments: ast.arguments) -> None:
        self._each([*arguments.defaults, *arguments.kw_defaults])
        every = [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ]
        self._each(a.annotation for a in every if a is not None)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """The body of a class runs now, but binds names of its own."""
        self._each([*node.decorator_list, *node.bases, *node.keywords])
        self._inside(node.body)
        self.bound.add(node.name)

    def _inside(self, body: Iterable[ast.AST]) -> None:
        """Visit what binds names that are gone afterwards."""
        bound, maybe = set(self.bound), set(self.maybe)
        self._each(body)
        self.bound, self.maybe = bound, maybe

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        parts: list[ast.AST] = []
        for generator in node.generators:
            parts += [generator.iter, generator.target, *generator.ifs]
        parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._inside(parts)

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def _branches(self, *branches: Iterable[ast.AST]) -> None:
        """Visit parts of which one or none runs; what all of them bind is bound."""
        before, ends = set(self.bound), []
        for branch in branches:
            self.bound = set(before)
            self._each(branch)
            ends.append(self.bound)
        self.bound = set.intersection(*ends)
        self.maybe |= set.union(*ends) - self.bound

    def visit_If(self, node: ast.If) -> None:
        """What both branches bind is bound."""
        self.visit(node.test)
        self._branches(node.body, node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """An expression can bind too."""
        self.visit(node.test)
        self._branches([node.body], [node.orelse])

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        """The loop may run no time."""
        self.visit(node.iter)
        self._branches([node.target, *node.body], [])
        self._branches(node.orelse, [])

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        """The loop may run no time."""
        self.visit(node.test)
        self._branches([*node.body, *node.orelse], [])

    def visit_Try(self, node: ast.Try) -> None:
        """Any part may be left early; the last one always runs."""
        self._branches([*node.body, *node.orelse], *([*h.body] for h in node.handlers), [])
        self.reads |= {
            n.id for h in node.handlers if h.type for n in ast.walk(h.type) if isinstance(n, ast.Name)
        }
        self._each(node.finalbody)

    visit_TryStar = visit_Try

    def visit_Match(self, node: ast.Match) -> None:
        """No case may fit."""
        self.visit(node.subject)
        self._branches(
            *([case.pattern, *([case.guard] if case.guard else []), *case.body] for case in node.cases), []
        )

    def _pattern(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.bound.add(name)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = _pattern
