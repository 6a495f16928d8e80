"""Which line of the user's own source an exception came from."""

import linecache
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from jitguide._errors import patterns
from jitguide._files import owner
from jitguide._text import in_cell


@dataclass(frozen=True)
class SourceLine:
    """A line of source with the part that failed."""

    file: str  # its name without the directory, or "<cell>" in a notebook
    number: int  # from 1
    function: str  # name of the enclosing function, or "<module>"
    text: str  # the line without its indentation
    start: int | None = None  # index in `text` where the failing part begins; None where it is not known
    end: int | None = None  # index after it

    def __str__(self) -> str:
        place = "" if self.function == "<module>" else f", in {self.function}"
        lines = [f"  at {self.file}:{self.number}{place}", f"    {self.text}"]
        if self.start is not None and self.end is not None:
            lines.append("    " + " " * self.start + "^" * max(self.end - self.start, 1))
        return "\n".join(lines)


def user_line(error: BaseException) -> SourceLine | None:
    """Return the innermost line of `error`'s traceback that is yours: not in an installed package.

    If all are, it is the innermost outside JAX, NumPy and the standard library; None without it or its source.
    """
    summaries = traceback.extract_tb(error.__traceback__)
    own, others = ([s for s in summaries if owner(s.filename) == whose] for whose in ("you", "library"))
    return _source_line((own or others)[-1]) if own or others else None


def _source_line(summary: traceback.FrameSummary) -> SourceLine | None:
    number = summary.lineno or 0
    raw = linecache.getline(summary.filename, number).rstrip("\n")
    if not raw.strip():
        return None
    text = raw.strip()
    start = end = None
    if summary.colno is not None and summary.end_colno is not None:
        indent = len(raw) - len(raw.lstrip())
        # Columns count bytes of UTF-8; a part that goes on below is marked to the end of its first line.
        stop = summary.end_colno if summary.end_lineno == number else len(raw.encode())
        before = (raw.encode()[:column].decode(errors="replace") for column in (summary.colno, stop))
        start, end = (len(part) - indent for part in before)
    return SourceLine(_file_name(summary.filename), number, summary.name, text, start, end)


def _file_name(path: str) -> str:
    return "<cell>" if in_cell(path) else PurePath(path).name


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that it was raised from; in place of a group, the errors in it."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, BaseExceptionGroup):
            waiting[:0] = current.exceptions
            continue
        yield current
        if cause := current.__cause__ or current.__context__:
            waiting.insert(0, cause)


def notes_of(error: BaseException) -> str:
    """Return the notes of an exception; "" if something else stands in their place."""
    notes = getattr(error, "__notes__", None)
    return " ".join(map(str, notes)) if isinstance(notes, list) else ""


def code_only(source: str) -> str:
    """Return `source` without comments and without what strings say; an f-string keeps what it computes."""
    return patterns.STRING_OR_COMMENT.sub(_computed, source)


def _computed(match: re.Match[str]) -> str:
    if match["quote"] is None:
        return ""  # a comment
    fields = patterns.FIELD.findall(match["inside"]) if "f" in (match["prefix"] or "").lower() else []
    return f'"{" ".join(map(code_only, fields))}"'
