"""Which module may import which, and how long a module and a function may be."""

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TREES = [ROOT / "docs" / "_ext"]
LONGEST_MODULE = 280
LONGEST_FUNCTION = 40  # without its docstring


def modules(tree):
    """Return every module of a package by its dotted name."""
    names = {path: path.relative_to(tree.parent).with_suffix("").parts for path in tree.rglob("*.py")}
    return {".".join(parts).removesuffix(".__init__"): path for path, parts in names.items()}


def imported(name, path):
    """Yield what a module imports anywhere in it, for types or inside a function too: dotted names."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*parents, *([node.module] if node.module else [])])
            yield from ((module, alias.name) for alias in node.names)


def imports_inside(tree):
    """Return for each module of a package the modules of the package that it imports."""
    known = modules(tree)
    found = {}
    for name, path in known.items():
        pairs = imported(name, path)
        targets = {f"{module}.{part}" if f"{module}.{part}" in known else module for module, part in pairs}
        found[name] = targets & set(known) - {name}
    return found


def cycle(tree):
    """Return the modules of an import cycle, the first again at the end; nothing where there is none."""
    try:
        TopologicalSorter(imports_inside(tree)).prepare()
    except CycleError as error:
        return error.args[1]
    return []


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.name)
def test_no_modules_import_each_other_in_a_circle(tree):
    assert cycle(tree) == []


@pytest.mark.parametrize(
    "second",
    ["import package.one", "from . import one", "from package.one import x", "from .one import x",
     "def f():\n    from . import one", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .one import X"],
)  # fmt: skip
def test_a_circle_is_found(tmp_path, second):
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "inner/__init__": "from .. import two",
        "one": "from . import inner",
    }.items():
        (package / f"{name}.py").write_text(text)
    (package / "two.py").write_text("")
    assert cycle(package) == []
    (package / "two.py").write_text(second)
    assert set(cycle(package)) == {"package.one", "package.two", "package.inner"}


def test_the_package_imports_nothing_of_the_guide():
    allowed = {*sys.stdlib_module_names, "jitguide", "jax", "jaxlib", "numpy", "matplotlib"}
    known = modules(ROOT / "jitguide")
    found = {module.partition(".")[0] for name, path in known.items() for module, _ in imported(name, path)}
    assert found - allowed == set()


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.name)
def test_modules_and_functions_are_short(tree):
    long = []
    for name, path in modules(tree).items():
        text = path.read_text("utf-8")
        if len(text.splitlines()) > LONGEST_MODULE:
            long.append(f"{name}: {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and (lines := length(node)) > LONGEST_FUNCTION:
                long.append(f"{name}.{node.name}: {lines} lines")
    assert long == []


def length(function):
    """Return the lines of a function, decorators and docstring left out."""
    first = function.body[0]
    docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.end_lineno - function.lineno + 1 - (docstring and first.end_lineno - first.lineno + 1)
