"""Which line of whose source an equation comes from, and the lines to show."""

from __future__ import annotations

import ast
import inspect
import linecache
import sysconfig
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from jitguide._jaxprs import definition, lines_of
from jitguide._stages.model import Line
from jitguide._stages.tags import Nodes

_BUILD = str(Path(__file__).parent / "build.py")  # the frame that calls `trace`
_JAX = Path(jax.__file__).parent
_INSTALLED = tuple({sysconfig.get_path(key) for key in ("purelib", "platlib", "stdlib", "platstdlib")})
_MOST_LINES = 400  # a page shows functions, not modules


class Place(NamedTuple):
    """A line of a file. The name of the file serves look-ups only; it is never shown."""

    file: str
    line: int


def frames(equation: Any) -> list[Place]:
    """Return the lines that made this equation, outermost first, from the call of `stages` inwards."""
    places = [Place(*line) for line in lines_of(equation)]
    calls = [i for i, place in enumerate(places) if place.file == _BUILD]
    return places[calls[-1] + 1 :] if calls else places


class Origins:
    """Finds the user's line of each equation; `home` is the file of the function looked at."""

    def __init__(self, home: str) -> None:
        self.home = home
        self._readers: dict[str, bool] = {}  # thousands of frames name a handful of files

    def readers(self, file: str) -> bool:
        """Return whether a file is the user's own: not JAX, nor an installed package."""
        if file not in self._readers:
            path = Path(file)
            beside = path.parent == Path(self.home).parent
            self._readers[file] = _JAX not in path.parents and (beside or not file.startswith(_INSTALLED))
        return self._readers[file]

    def innermost(self, places: Sequence[Place]) -> Place | None:
        """Return the deepest of these lines that is the user's own."""
        return next((place for place in reversed(places) if self.readers(place.file)), None)

    def places(self, nodes: Nodes) -> list[tuple[Place | None, str]]:
        """Return for each node its line, and the library function whose body it is part of, or ""."""
        found: list[tuple[Place | None, str]] = []
        for node in nodes.all:
            equation = nodes.sites[node.site].equation
            parent = node.ancestors[-1] if node.ancestors else None
            name, file = definition(node.body) if parent is not None else ("", "")
            called = parent is not None and nodes.primitive(parent) in ("jit", "pjit")
            # The frames in a cached body are those of its first trace: of them only the function's own line
            # counts, and the body of a library function has none.
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
    return None if inspect.isclass(fn) or not callable(fn) else type(fn).__call__


class Panel(NamedTuple):
    """Consecutive lines of one file."""

    file: str
    first: int
    last: int


def _panel(place: Place, name: str = "") -> Panel | None:
    """Return the smallest function around a line, else statement; `name` asks for one that starts there."""
    lines = linecache.getlines(place.file)
    if not 0 < place.line <= len(lines):
        return None
    alone = Panel(place.file, place.line, place.line)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:  # a notebook's magics, say
        return alone
    functions, statements = list[Panel](), list[Panel]()
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
    """Return what to show: the function itself first, then the user's functions that it went through."""
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
    """Return the lines of the panels, and the number (from 1) under which each stands.

    Common indentation is cut. Of a docstring only the first line is shown.
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
    return texts, numbers


def _docstrings(text: str) -> dict[int, tuple[int, str]]:
    """Return for the first line of each docstring of several lines its last line and its quotes."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # part of a statement
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, clean=False):
            constant: Any = node.body[0]
            if constant.end_lineno > constant.lineno:
                found[constant.lineno] = (
                    constant.end_lineno,
                    text.split("\n")[constant.end_lineno - 1].rstrip()[-3:],
                )
    return found


class Shown:
    """The source as shown, and where in it each equation comes from.

    Attributes:
        texts: The lines, as many as are shown.
        left_out: How many more there are.
        origin: For each equation the number of its line or None, and the library function it is inside or "".
    """

    def __init__(self, code: Any, nodes: Nodes) -> None:
        self._origins = Origins(code.co_filename if code else "")
        places = self._origins.places(nodes)
        chosen = panels(code, [place for place, _ in places], self._origins.readers)
        texts, numbers = shown_lines(chosen)
        self.texts, self.left_out = texts[:_MOST_LINES], max(0, len(texts) - _MOST_LINES)
        self._numbers = {place: n for place, n in numbers.items() if n <= _MOST_LINES}
        self.origin = [(self._numbers.get(place) if place else None, inside) for place, inside in places]
        self._owners: dict[int, set[int]] = {}
        for equation, (number, _) in enumerate(self.origin):
            if number is not None:
                self._owners.setdefault(number, set()).add(equation)

    def lines(self) -> list[Line]:
        """Return the source as lines with their equations."""
        owners = {n: frozenset(found) for n, found in self._owners.items()}
        return [
            Line(text, owners.get(n, frozenset()), "exact" if n in owners else None, (n,))
            for n, text in enumerate(self.texts, 1)
        ]

    def lines_of(self, equations: frozenset[int]) -> tuple[int, ...]:
        """Return the numbers of the lines that these equations come from."""
        return tuple(sorted({line for e in equations if (line := self.origin[e][0]) is not None}))
