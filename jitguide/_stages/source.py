"""Which line of whose source an equation comes from, and the lines to show."""

import ast
import functools
import linecache
import textwrap
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from jitguide._callables import layers
from jitguide._files import owner
from jitguide._jaxprs import definition, lines_of
from jitguide._stages.model import Line
from jitguide._stages.tags import Nodes

_BUILD = str(Path(__file__).parent / "build.py")  # the frame that calls `trace`
_MOST_LINES = 400  # of a statement outside of functions, such as a class


class Place(NamedTuple):
    """A line of a file. The name of the file serves look-ups only; it is never shown."""

    file: str
    line: int


class Panel(NamedTuple):
    """Consecutive lines of one file."""

    file: str
    first: int
    last: int

    def holds(self, file: str, line: int) -> bool:
        return self.file == file and self.first <= line <= self.last


def _frames(equation: Any) -> Iterator[Place]:
    """Yield the lines that made this equation, innermost first, up to the call of `stages`."""
    places = (Place(*line) for line in reversed(lines_of(equation)))
    return takewhile(lambda place: place.file != _BUILD, places)


@functools.cache  # thousands of frames name a handful of files
def _is_yours(file: str, home: str) -> bool:
    """Return whether a file is yours, or in the folder of `home`, which has the function looked at."""
    return owner(file) == "you" or (owner(file) != "jax" and Path(file).parent == Path(home).parent)


def _origins(nodes: Nodes, home: str) -> list[tuple[Place | None, str]]:
    """Return for each node your line, and the library function whose body it is part of, or ""."""
    found: list[tuple[Place | None, str]] = []
    for node in nodes.all:
        equation = node.equation
        parent = node.ancestors[-1] if node.ancestors else None
        name, file = definition(node.body) if parent is not None else ("", "")
        called = parent is not None and nodes.all[parent].equation.primitive.name == "jit"
        own = None
        # The frames in a cached body are those of its first trace: of them only the function's own line
        # counts, and the body of a library function has none.
        if not (called and file and not _is_yours(file, home)):
            own = next((place for place in _frames(equation) if _is_yours(place.file, home)), None)
        if own is None and parent is not None:
            found.append((found[parent][0], found[parent][1] or name.lstrip("_")))
        else:
            found.append((own, ""))
    return found


def code_of(fn: Any) -> Any:
    """Return the code object behind a function, method, partial, callable object or wrapper, or None."""
    codes = [one.__code__ for one in layers(fn) if hasattr(one, "__code__")]
    return codes[-1] if codes else None


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


def panels(code: Any, places: Sequence[Place | None], home: str) -> list[Panel]:
    """Return what to show: the function itself first, then the user's functions that it went through."""
    chosen: list[Panel] = []
    if code and _is_yours(home, home):
        itself = _panel(Place(home, code.co_firstlineno), code.co_name)
        chosen += [itself] if itself else []
    for place in dict.fromkeys(place for place in places if place is not None):
        if any(panel.holds(*place) for panel in chosen):
            continue
        if panel := _panel(place):
            inner = [p for p in chosen if panel.holds(p.file, p.first) and panel.holds(p.file, p.last)]
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
        text = textwrap.dedent("\n".join(raw).expandtabs(4))
        for line, shown in _with_short_docstrings(text).items():
            texts.append(shown)
            numbers[Place(panel.file, panel.first + line)] = len(texts)
    return texts, numbers


def _with_short_docstrings(text: str) -> dict[int, str]:
    """Return the lines of a text by their index, without the second and later ones of its docstrings."""
    lines = dict(enumerate(text.split("\n")))
    try:
        tree = ast.parse(text)
    except SyntaxError:  # part of a statement
        return lines
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, clean=False):
            docstring: Any = node.body[0]
            rest = [lines.pop(line) for line in range(docstring.lineno, docstring.end_lineno)]
            if rest:
                lines[docstring.lineno - 1] += (
                    f" …{rest[-1].encode()[: docstring.end_col_offset].decode()[-3:]}"
                )
    return lines


class Shown:
    """The source as shown, and where in it each equation comes from."""

    def __init__(self, code: Any, nodes: Nodes) -> None:
        home = code.co_filename if code else ""
        places = _origins(nodes, home)
        self.texts, numbers = shown_lines(panels(code, [place for place, _ in places], home))
        # For each equation the number of its line or None, and the library function it is inside or "".
        self.origin = [(numbers.get(place) if place else None, inside) for place, inside in places]

    def lines(self) -> list[Line]:
        owners: dict[int | None, set[int]] = {}
        for equation, (number, _) in enumerate(self.origin):
            owners.setdefault(number, set()).add(equation)
        return [
            Line(text, frozenset(owners.get(n, ())), "exact" if n in owners else None, (n,))
            for n, text in enumerate(self.texts, 1)
        ]

    def lines_of(self, equations: frozenset[int]) -> tuple[int, ...]:
        """Return the numbers of the lines that these equations come from."""
        return tuple(sorted({line for e in equations if (line := self.origin[e][0]) is not None}))
