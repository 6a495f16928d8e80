"""Which line of whose source an equation comes from, and the lines to show."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import re
import sysconfig
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend import source_info_util

from jitguide._stages.model import Line
from jitguide._stages.tags import Nodes, open_jaxpr

_FRAME = re.compile(r"^(.*):(\d+):\d+ \((.*)\)$")
_DEFINED = re.compile(r"^(.*) at (.*):(\d+)$")
_HERE = os.path.dirname(__file__)
_JAX = os.path.dirname(jax.__file__)
_INSTALLED = tuple({sysconfig.get_path(key) for key in ("purelib", "platlib", "stdlib", "platstdlib")})
_MOST_LINES = 400  # a page shows functions, not modules


class Place(NamedTuple):
    """A line of a file. The name of the file serves look-ups only; it is never shown."""

    file: str
    line: int


def frames(equation: Any) -> list[Place]:
    """Return the lines that made this equation, outermost first, from the call of `stages` inwards."""
    try:
        text = source_info_util.summarize(equation.source_info, num_frames=50)
    except Exception:  # an undocumented attribute: without it there are no lines, and the view says so
        return []
    places: list[Place] = []
    for row in text.splitlines():
        match = _FRAME.match(row)
        if match and os.path.dirname(match[1]) == _HERE:
            places = []
        elif match:
            places.append(Place(match[1], int(match[2])))
    return places


def definition(jaxpr: Any) -> tuple[str, str]:
    """Return the name and the file of the function that a jaxpr was traced from, or two empty strings."""
    info = getattr(open_jaxpr(jaxpr), "debug_info", None)
    match = _DEFINED.match(getattr(info, "func_src_info", None) or "")
    return (match[1], match[2]) if match else ("", "")


class Origins:
    """Finds the reader's line of each equation; `home` is the file of the function looked at."""

    def __init__(self, home: str) -> None:
        self.home = home

    def readers(self, file: str) -> bool:
        """Return whether a file is the reader's own: not JAX, not the standard library, not an installed package."""
        if file.startswith(_JAX + os.sep):
            return False
        return os.path.dirname(file) == os.path.dirname(self.home) or not file.startswith(_INSTALLED)

    def innermost(self, places: Sequence[Place]) -> Place | None:
        """Return the deepest of these lines that is the reader's own."""
        return next((place for place in reversed(places) if self.readers(place.file)), None)

    def places(self, nodes: Nodes) -> list[tuple[Place | None, str]]:
        """Return for each node its line, and the name of the library function whose body it is part of, or ""."""
        found: list[tuple[Place | None, str]] = []
        for node in nodes.all:
            equation = nodes.sites[node.site].equation
            parent = node.ancestors[-1] if node.ancestors else None
            name, file = definition(node.body) if parent is not None else ("", "")
            called = parent is not None and nodes.sites[nodes.all[parent].site].equation.primitive.name in (
                "jit",
                "pjit",
            )
            # The frames in a cached body are those of its first trace: of them only the function's own line counts,
            # and the body of a library function has none.
            own = None if called and file and not self.readers(file) else self.innermost(frames(equation))
            if own is None and parent is not None:
                found.append((found[parent][0], found[parent][1] or name.lstrip("_")))
            else:
                found.append((own, ""))
        return found


def code_of(fn: Any) -> Any:
    """Return the code object behind a function, method, partial, callable object or wrapper, or None."""
    for _ in range(20):  # wrappers around wrappers; a chain that points at itself must end
        if code := getattr(fn, "__code__", None):
            wrapped = getattr(fn, "__wrapped__", None)
            if wrapped is None:
                return code
            fn = wrapped
        else:
            fn = _inside(fn)
    return None


def _inside(fn: Any) -> Any:
    for name in ("__wrapped__", "func", "__func__"):
        if (inner := getattr(fn, name, None)) is not None:
            return inner
    return getattr(type(fn), "__call__", None) if not inspect.isclass(fn) else None


class Panel(NamedTuple):
    """Consecutive lines of one file."""

    file: str
    first: int
    last: int


def _panel(place: Place, name: str = "") -> Panel | None:
    """Return the smallest function around a line, else the smallest statement; `name` asks for one that starts there."""
    lines = linecache.getlines(place.file)
    if not 0 < place.line <= len(lines):
        return None
    alone = Panel(place.file, place.line, place.line)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:  # a notebook's magics, say
        return alone
    functions, statements = [], []
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.Lambda)):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            panel = Panel(place.file, first, node.end_lineno or first)
            wanted = first == place.line and name in ("<lambda>", getattr(node, "name", None))
            if first <= place.line <= panel.last and (wanted or not name):
                is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
                (functions if is_function else statements).append(panel)
    around = functions or [s for s in statements if s.last - s.first < _MOST_LINES]
    return min(around, key=lambda p: p.last - p.first, default=alone)


def panels(code: Any, places: Sequence[Place | None], readers: Callable[[str], bool]) -> list[Panel]:
    """Return what to show: the function itself first, then every function of the reader's that it went through."""
    chosen: list[Panel] = []
    if code and readers(code.co_filename):
        home = _panel(Place(code.co_filename, code.co_firstlineno), code.co_name)
        chosen += [home] if home else []
    for place in dict.fromkeys(place for place in places if place is not None):
        if any(p.file == place.file and p.first <= place.line <= p.last for p in chosen):
            continue
        if panel := _panel(place):
            inner = [
                p for p in chosen if p.file == panel.file and panel.first <= p.first and p.last <= panel.last
            ]
            at = chosen.index(inner[0]) if inner else len(chosen)
            chosen = [p for p in chosen if p not in inner]
            chosen.insert(at, panel)
    return chosen


def shown_lines(chosen: Sequence[Panel]) -> tuple[list[str], dict[Place, int]]:
    """Return the lines of the panels without common indentation, and the number (from 1) under which each stands.

    Of a docstring only the first line is shown.
    """
    texts: list[str] = []
    numbers: dict[Place, int] = {}
    for panel in chosen:
        if texts:
            texts.append("")
        raw = [line.rstrip("\n") for line in linecache.getlines(panel.file)[panel.first - 1 : panel.last]]
        rows = textwrap.dedent("\n".join(raw).expandtabs(4)).split("\n")
        endings = _docstrings("\n".join(rows))
        hidden = {n for first, (last, _) in endings.items() for n in range(first + 1, last + 1)}
        for offset, text in enumerate(rows):
            if offset + 1 not in hidden:
                texts.append(text + (" …" + endings[offset + 1][1] if offset + 1 in endings else ""))
                numbers[Place(panel.file, panel.first + offset)] = len(texts)
    return texts[:_MOST_LINES], {place: n for place, n in numbers.items() if n <= _MOST_LINES}


def _docstrings(text: str) -> dict[int, tuple[int, str]]:
    """Return for the first line of each docstring of several lines its last line and its quotes."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # part of a statement
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, clean=False):
            constant = node.body[0].value
            if constant.end_lineno > constant.lineno:
                found[constant.lineno] = (
                    constant.end_lineno,
                    text.split("\n")[constant.end_lineno - 1].rstrip()[-3:],
                )
    return found


def source_lines(texts: Sequence[str], origin: Sequence[int | None]) -> list[Line]:
    """Return the source as lines; `origin[i]` is the number of the line that equation i comes from."""
    owners: dict[int, set[int]] = {}
    for equation, number in enumerate(origin):
        if number is not None:
            owners.setdefault(number, set()).add(equation)
    return [
        Line(text, frozenset(owners.get(n, ())), "exact" if n in owners else None, (n,))
        for n, text in enumerate(texts, 1)
    ]
