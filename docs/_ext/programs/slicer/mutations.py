"""Which objects a statement changes: now, or whenever one of its functions is called."""

# ruff: noqa: N815, SIM905 -- the names of visitors are ast's; a list of words reads better so

from __future__ import annotations

import ast
from collections.abc import Sequence

MUTATORS = set(
    "append extend insert remove pop popleft appendleft clear sort reverse update setdefault popitem add discard "
    "difference_update intersection_update symmetric_difference_update write writelines writerow put get_nowait "
    "defjvp defvjp defjvps def_vmap def_partition register send rotate shuffle integers normal uniform choice random "
    "permutation standard_normal spawn".split()
)
# Methods that change nothing: as a statement of their own they wait, look, or throw a result away.
_PURE = set(
    "block_until_ready sum mean max min lower compile trace eval_shape as_text copy item tolist keys values items "
    "format join split strip count index plot show assert_compiles".split()
)
_CHANGING_FUNCTIONS = {"next", "setattr", "delattr", "heappush", "heappop", "heapify"}


def root(node: ast.AST) -> str | None:
    """Return the name that an expression starts from.

    Example:
        >>> root(ast.parse("a.b[0].c(1).d", mode="eval").body)
        'a'
    """
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def changes(node: ast.stmt) -> tuple[set[str], set[str]]:
    r"""Return the names of objects that a statement changes now, and those that its functions change.

    Example:
        >>> changes(ast.parse("seen.append(1)").body[0])
        ({'seen'}, set())
        >>> changes(ast.parse("def f(x):\n    seen.append(x)\n    own = []\n    own.append(x)").body[0])
        (set(), {'seen'})
    """
    finder = _Finder()
    finder.visit(node)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        if isinstance(function, ast.Attribute) and function.attr not in _PURE:
            finder.note(root(function))
    return finder.now, finder.later


class _Finder(ast.NodeVisitor):
    """Collects the roots of what is stored into, deleted from, or changed by a method."""

    def __init__(self) -> None:
        self.now: set[str] = set()
        self.later: set[str] = set()
        self.scopes: list[set[str]] = []  # local names of the functions around

    def note(self, name: str | None) -> None:
        if name is None or any(name in scope for scope in self.scopes):
            return
        (self.later if self.scopes else self.now).add(name)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        for decorator in getattr(node, "decorator_list", []):
            self.visit(decorator)
            if isinstance(decorator, ast.Attribute | ast.Call):
                owner = decorator.func if isinstance(decorator, ast.Call) else decorator
                if isinstance(owner, ast.Attribute):
                    self.note(root(owner))
        body: Sequence[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else node.body
        self.scopes.append(_locals(node.args, body))
        for global_names in (n.names for part in body for n in ast.walk(part) if isinstance(n, ast.Global)):
            for name in global_names:
                self.note(name)
        for part in body:
            self.visit(part)
        self.scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_Attribute(self, node: ast.Attribute | ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Store | ast.Del):
            self.note(root(node))
        self.generic_visit(node)

    visit_Subscript = visit_Attribute

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.note(root(node.target))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            self.note(root(node.func.value))
        elif isinstance(node.func, ast.Name | ast.Attribute) and node.args:
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name in _CHANGING_FUNCTIONS:
                self.note(root(node.args[0]))
        self.generic_visit(node)


def _locals(arguments: ast.arguments, body: Sequence[ast.AST]) -> set[str]:
    found = {part.arg for part in ast.walk(arguments) if isinstance(part, ast.arg)}
    shared: set[str] = set()
    for node in (n for part in body for n in ast.walk(part)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                shared |= set(names)
    return found - shared


def stores_on_self(nodes: Sequence[ast.stmt]) -> bool:
    r"""Return whether a class among the statements changes its instances after they are made.

    Example:
        >>> stores_on_self(ast.parse("class C:\n    def hit(self):\n        self.n += 1").body)
        True
    """
    methods = (
        m for n in nodes if isinstance(n, ast.ClassDef) for m in n.body if isinstance(m, ast.FunctionDef)
    )
    return any(
        m.args.args[0].arg in _changed(m.body) for m in methods if m.args.args and m.name != "__init__"
    )


def _changed(body: Sequence[ast.stmt]) -> set[str]:
    finder = _Finder()
    for statement in body:
        finder.visit(statement)
    return finder.now | finder.later
