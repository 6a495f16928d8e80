"""The claims of the guide: the tests in tests/claims, whose markers are read without importing them."""

from __future__ import annotations

import ast
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
    rests_on: str = ""  # a sentence about what the outcome depends on besides the release of JAX


def load(folder: Path = FOLDER) -> dict[str, Claim]:
    """Return all claims by id, in the order of their files."""
    found = {}
    for path in sorted(folder.glob("test_*.py")):
        source = path.read_text("utf-8")
        lines = source.splitlines()
        for node in ast.parse(source).body:
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
                    name, sentence, topic_of(path), code, tuple(seeds.split()), path, rests_on
                )
    return found


_RESTS_ON = {"platform": "A property of the backend {}.", "measured": "Depends on the machine: {}."}


def topic_of(path: Path) -> str:
    """Return the topic of a file of claims.

    Example:
        >>> topic_of(Path("test_pages_control_flow.py"))
        'control flow'
    """
    return path.stem.removeprefix("test_").removeprefix("pages_").replace("_", " ")


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
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not getattr(node, "name", "").startswith("test_"):
            gap = [""] if isinstance(node, ast.FunctionDef | ast.ClassDef) and kept else []
            kept += gap + lines[first - 1 : node.end_lineno]
    return "\n".join(kept)
