"""Every table and every HTML view of the package, in one place.

Plain text comes first: a result must read well in a terminal. HTML is the same content as a self-contained
fragment without scripts or outside resources, with every piece of text escaped. Colours come from
`currentColor`, so that a fragment is legible on a light and on a dark page.
"""

import functools
import html
import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Any, ClassVar

# What HTML allows in no text: control characters, lone surrogates, and code points without a character.
_PLANES = "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))
_FORBIDDEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_PLANES}]")

_UNIT = r" (?:[mµn]?s|[KMGT]?i?B)"
_SPREAD = rf"\([\d.,]+(?:{_UNIT})? ?– ?[\d.,]+(?:{_UNIT})?\)"
# 12 KiB, 1.2 ms (1.1–1.4 ms), ×3.1 (2.9–3.3), 1.57 (1.38–2.08), 3.8× slower (3.5–4.0)
_VALUE = re.compile(rf"(×[\d.,]+|[\d.,]+{_UNIT}|[\d.,]+(?:× slower)?(?= \())(?: ({_SPREAD}))?$")
_COLUMNS = 80
_LONGEST = 60  # letters of a name, so that a line has room for what surrounds it
_BREAKS = re.compile(r"(\s+|(?<=\])(?=\[))")  # a line may end between the keys of a path, too
_LONG_NAME = re.compile(rf"\w{{{_LONGEST + 1},}}")
_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTE_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def escape(text: object) -> str:
    """Return `text` as HTML text that can stand in an element or in a quoted attribute.

    What HTML forbids, such as most control characters, is shown as the replacement character.
    """
    return html.escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(text)), quote=True)


def plural(noun: str, number: float | None) -> str:
    return noun if number == 1 else f"{noun}s"


def duration(seconds: float | None) -> str:
    """Return a time in seconds as text with a fitting unit and two significant digits.

    Example:
        >>> duration(0.000012345), duration(2.5), duration(None)
        ('12 µs', '2.5 s', 'not available')
    """
    if seconds is None or math.isnan(seconds):
        return "not available"
    rounded = float(f"{seconds:.1e}")  # 999.7 µs is 1.0 ms
    fitting = (pair for pair in _TIME_UNITS if abs(rounded) >= pair[0] * (1 - 1e-9))
    scale, unit = next(fitting, _TIME_UNITS[-1])
    return f"{significant(seconds / scale)} {unit}"


def size(count: float | None) -> str:
    """Return a number of bytes as text with a binary unit.

    Example:
        >>> size(4096), size(12), size(None)
        ('4 KiB', '12 B', 'not available')
    """
    if count is None:
        return "not available"
    scale, unit = next((pair for pair in _BYTE_UNITS if abs(count) >= pair[0]), (1, "B"))
    amount = count / scale
    return f"{round(amount, 1 if amount >= 10 else 2):g} {unit}"


def span(low: str, high: str) -> str:
    """Return a range of two amounts with units, the unit said once where both have the same.

    Example:
        >>> span("180 GB/s", "470 GB/s"), span("900 GB/s", "1.2 TB/s")
        ('180–470 GB/s', '900 GB/s – 1.2 TB/s')
    """
    (first, unit), (second, other) = low.split(" "), high.split(" ")
    return f"{first}–{second} {other}" if unit == other else f"{first} {unit} – {second} {other}"


def significant(value: float, digits: int = 2) -> str:
    """Return `value` rounded to `digits` significant digits, never in exponent form.

    Example:
        >>> significant(1234.5), significant(0.01234), significant(9.96, 3), significant(0.996)
        ('1200', '0.012', '9.96', '1.0')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{digits - 1}e}")
    places = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{max(places, 0)}f}"


def wrapped(text: str, first: str = "", rest: str = "  ") -> list[str]:
    """Return a text in lines of at most 80 columns, which begin with `first` and `rest`; very long names are cut."""
    text = _LONG_NAME.sub(lambda name: cut(name[0], _LONGEST), text)
    wrap = textwrap.TextWrapper(_COLUMNS, first, rest, break_long_words=False, break_on_hyphens=False)
    wrap.wordsep_simple_re = _BREAKS
    return wrap.wrap(text) or [first]


@dataclass(frozen=True)
class Table:
    """A table in two forms: aligned plain text, and an HTML fragment in which all text is escaped.

    Example:
        >>> print(Table(["name", "time"], [["eager", "9 µs"], ["jit", "10 µs"]], numeric=[1]).text())
        name    time
        eager   9 µs
        jit    10 µs
        >>> "&lt;lambda&gt;" in Table(["name"], [["<lambda>"]]).html()
        True
    """

    header: Sequence[str]
    rows: Sequence[Sequence[object]]  # cells, each row as long as `header`
    numeric: Sequence[int] = ()  # columns to align on the right
    minor: Sequence[int] = ()  # columns that HTML leaves out on a narrow screen
    title: str = ""  # a line above the table
    notes: Sequence[str] = ()  # lines below it
    below: int | None = None  # a column that plain text writes below each row, on lines of its own
    fit: bool = False  # to 80 columns of plain text: notes are wrapped, long names are cut, numbers never

    def text(self) -> str:
        rows = [[_one_line(c) for c in row] for row in [self.header, *self.rows]]
        cells = [[c for i, c in enumerate(row) if i != self.below] for row in rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        if self.fit:
            widths = self._fitting(widths, cells)
            cells = [[cut(c, w) for c, w in zip(row, widths, strict=True)] for row in cells]
        indent = " " * (widths[0] + 2)

        lines = (wrapped(self.title) if self.fit else [self.title]) if self.title else []
        for number, (row, whole) in enumerate(zip(cells, rows, strict=True)):
            pairs = enumerate(zip(row, widths, strict=True))
            parts = (c.rjust(w) if i in self.numeric else c.ljust(w) for i, (c, w) in pairs)
            lines.append("  ".join(parts).rstrip())
            if number and self.below is not None and whole[self.below]:
                lines += wrapped(whole[self.below], indent, indent)
        notes = [part for note in self.notes for part in (wrapped(note) if self.fit else [note])]
        return "\n".join([*lines, *notes])

    def _fitting(self, widths: list[int], cells: Sequence[Sequence[str]]) -> list[int]:
        """Return narrower columns: the first one gives way before the others, and of these the widest."""
        least = [
            max([8, *map(len, column[1:])]) if i in self.numeric else 8  # without the header
            for i, column in enumerate(zip(*cells, strict=True))
        ]
        for _ in range(sum(widths) + 2 * len(widths) - 2 - _COLUMNS):
            spare = [width - floor for width, floor in zip(widths, least, strict=True)]
            widest = 0 if spare[0] > 0 else max(range(len(widths)), key=spare.__getitem__)
            if spare[widest] > 0:
                widths[widest] -= 1
        return widths

    def html(self) -> str:
        return panel(self.grid())

    def grid(self) -> str:
        """Return the table as HTML without the frame, for a view of several tables."""
        head = "".join(self._cell("th", i, c, ' scope="col"') for i, c in enumerate(self.header))
        body = "".join(f"<tr>{self._row(row)}</tr>" for row in self.rows)
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        below = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"

    def _row(self, row: Sequence[object]) -> str:
        first, *rest = row
        cells = (self._cell("td", i, c) for i, c in enumerate(rest, 1))
        return self._cell("th", 0, first, ' scope="row"') + "".join(cells)

    def _cell(self, tag: str, index: int, content: object, scope: str = "") -> str:
        marks = (("jg-num", self.numeric), ("jg-minor", self.minor))
        kinds = " ".join(kind for kind, columns in marks if index in columns)
        style = f' class="{kinds}"' if kinds else ""
        return f"<{tag}{scope}{style}>{_text(str(content))}</{tag}>"


class AsData:
    """A dataclass whose public fields, and the properties named in `_derived`, can be had as plain data."""

    _derived: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as data that `json.dumps` accepts; times are in seconds, sizes in bytes."""
        own = (field.name for field in fields(self) if not field.name.startswith("_"))  # type: ignore[arg-type] # a mixin of dataclasses
        return {name: as_data(getattr(self, name)) for name in (*own, *self._derived)}


def as_data(value: Any) -> Any:
    """Return a value of a result as plain data: results as dictionaries, tuples and sets as lists."""
    if isinstance(value, AsData):
        return value.to_dict()
    if isinstance(value, dict):
        return {key: as_data(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    return [as_data(item) for item in value] if isinstance(value, (tuple, list)) else value


class Displayed:
    """A result that is one table: it shows as plain text in a terminal, and as HTML in a notebook."""

    def _table(self) -> Table:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


def _one_line(content: object) -> str:
    """Return a cell's text for a terminal: on one line, and without what would control it."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", " ".join(str(content).split()))


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _text(content: str) -> str:
    """Return a cell's text as HTML; a value and its spread may stand on two lines, each unbroken."""
    value = _VALUE.match(content)
    if not value:
        return escape(content)
    return " ".join(f'<span class="jg-whole">{escape(part)}</span>' for part in value.groups() if part)


def panel(content: str) -> str:
    """Return `content`, which must already be safe HTML, in the frame that all views share."""
    return f'{style("display.css")}<div class="jg" tabindex="0">{content}</div>'


@functools.cache
def style(path: str) -> str:
    """Return a style sheet of the package as an element, without comments and the space that layout adds."""
    text = files("jitguide").joinpath(path).read_text("utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).strip()
    short = re.sub(r"\s*([{};,])\s*|(?<=:)\s+", r"\1", text)
    return f"<style>{short.replace(';}', '}')}</style>"
