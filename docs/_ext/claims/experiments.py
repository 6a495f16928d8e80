"""The claims of the guide: the tests in tests/claims, whose markers are read without importing them."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from pathlib import Path

from _ext import ROOT

FOLDER = ROOT / "tests" / "claims"


@dataclass(frozen=True)
class Claim:
    """One sentence, the test that proves it, and the rows of the five tutorials that it settles."""

    id: str
    sentence: str
    topic: str
    code: str
    seeds: tuple[str, ...]
    path: Path
    shown: str = ""  # the code for one who reads it alone: with the helpers of its file, and what it is given
    rests_on: str = ""  # a sentence about what the outcome depends on besides the release of JAX


def load(folder: Path = FOLDER) -> dict[str, Claim]:
    """Return all claims by id, in the order of their files."""
    found = {}
    for path in sorted(folder.glob("test_*.py")):
        source = path.read_text("utf-8")
        lines = source.splitlines()
        body = ast.parse(source).body
        for node in body:
            if isinstance(node, ast.FunctionDef) and "claim" in (markers := _markers(node)):
                name, sentence, seeds = markers["claim"]
                parts: list[ast.expr | ast.stmt] = [
                    d
                    for d in node.decorator_list
                    if not lines[d.lineno - 1].startswith("@pytest.mark.claim(")
                ]
                parts.append(node)
                rests_on = " ".join(
                    words.format(*markers[kind]) for kind, words in _RESTS_ON.items() if kind in markers
                )
                code = "\n".join(line for part in parts for line in lines[part.lineno - 1 : part.end_lineno])
                found[name] = Claim(
                    name,
                    sentence,
                    topic_of(path),
                    code,
                    tuple(seeds.split()),
                    path,
                    _shown(node, body, lines),
                    rests_on,
                )
    return found


def _shown(test: ast.FunctionDef, body: list[ast.stmt], lines: list[str]) -> str:
    """Return a test after what it uses of its file, without the marks that only pytest reads."""
    shared = {
        name: node
        for node in body
        if node is not test and not getattr(node, "name", "").startswith("test_")
        for name in _defines(node)
    }
    used: list[ast.stmt] = []
    waiting: list[ast.AST] = [test]
    while waiting:
        names = [node.id for node in ast.walk(waiting.pop()) if isinstance(node, ast.Name)]
        new = [shared[name] for name in names if name in shared and shared[name] not in used]
        used += dict.fromkeys(new)
        waiting += new
    helpers = [_code(node, lines) for node in body if node in used]
    given = [
        f"# {argument.arg}{_GIVEN[argument.arg]}" for argument in test.args.args if argument.arg in _GIVEN
    ]
    whole = "\n\n\n".join([*helpers, "\n".join(lines[test.lineno - 1 : test.end_lineno])])
    return "\n".join([*given, *_cases(test), whole])


# What a test is given by tests/claims/conftest.py.
_GIVEN = {
    "counted": "(): how often JAX traced, lowered and compiled since the last time",
    "child": "(code): what this code prints in a Python of its own",
}


def _defines(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def _code(node: ast.stmt, lines: list[str]) -> str:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return "\n".join(lines[first - 1 : node.end_lineno])


def _cases(test: ast.FunctionDef) -> list[str]:
    """Return a comment with the instances that a test is run with, one after the other."""
    for decorator in test.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="hostile"), args=args):
                names = ", ".join(str(ast.literal_eval(name)) for name in args)
                return textwrap.wrap(
                    f"case: a float32 vector in a plain call, and in turn {names}",
                    70,
                    initial_indent="# ",
                    subsequent_indent="#   ",
                )
    return []


_RESTS_ON = {"platform": "A property of the backend {}.", "measured": "Depends on the machine: {}."}


def topic_of(path: Path) -> str:
    """Return the topic of a file of claims.

    Example:
        >>> topic_of(Path("test_control_flow.py"))
        'control flow'
    """
    return path.stem.removeprefix("test_").replace("_", " ")


def title_of(path: Path) -> str:
    """Return what a file of claims is about: the first line of its docstring, or else its topic."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or topic_of(path).capitalize()
    return docstring.partition("\n")[0].rstrip(".")


def _markers(function: ast.FunctionDef) -> dict[str, list[str]]:
    """Return the arguments of the markers by name: of `claim(id, sentence, seeds=…)`, `platform` and `measured`."""
    found = {}
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="claim"), args=args, keywords=keywords):
                seeds = next((ast.literal_eval(k.value) for k in keywords if k.arg == "seeds"), "")
                found["claim"] = [*map(ast.literal_eval, args), seeds]
            case ast.Call(func=ast.Attribute(attr="platform" | "measured" as name), args=args):
                found[name] = [*map(ast.literal_eval, args)]
    return found


def shared_code(path: Path) -> str:
    """Return the code of a file of claims outside its tests: imports, data and helpers."""
    source = path.read_text("utf-8")
    lines = source.splitlines()
    kept: list[str] = []
    for node in ast.parse(source).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not getattr(node, "name", "").startswith("test_"):
            gap = [""] if isinstance(node, ast.FunctionDef | ast.ClassDef) and kept else []
            kept += [*gap, _code(node, lines)]
    return "\n".join(kept)
