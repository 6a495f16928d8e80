"""Which module may import which, and how long a module and a function may be."""

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TREES = [ROOT / "docs" / "_ext", ROOT / "jitguide"]
# What an instrument's folder may import besides its own modules and those at the top of the package.
MAY_IMPORT = {
    "_timing": set(),
    "_watch": set(),
    "_stages": set(),
    "_errors": set(),
    "_hardware": {"_timing"},  # `roofline` is one more comparison, and `peaks` refuse what `compare` refuses
    "_recording": {"_timing", "_hardware", "demos"},  # it measures with them
    "_check": {"_timing", "_watch"},  # it asks the other instruments
}
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


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_an_instrument_imports_no_other(folder):
    found = imports_inside(ROOT / "jitguide")
    own = {target for name, targets in found.items() if f".{folder}" in name for target in targets}
    folders = {target.split(".")[1] for target in own if target.count(".") > 1}
    assert folders - {folder} <= MAY_IMPORT[folder]


def test_no_module_at_the_top_imports_an_instrument():
    found = imports_inside(ROOT / "jitguide")
    top = [name for name in found if name.startswith("jitguide._") and name.count(".") == 1]
    assert [
        (name, t) for name in top for t in found[name] if t.count(".") > 1 and "__main__" not in name
    ] == []


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
