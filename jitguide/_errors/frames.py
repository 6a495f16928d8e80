"""Which line of the user's own source an exception came from."""

import linecache
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import PurePath
from types import FrameType

from jitguide._text import in_cell

# Frames of these packages are how an error arose, not where the user can fix it.
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_OWN_DIRECTORY = str(PurePath(__file__).parent)
_LIBRARIES = frozenset({"jax", "jaxlib", "numpy"}) | sys.stdlib_module_names


@dataclass(frozen=True)
class SourceLine:
    """A line of source with the part that failed."""

    file: str  # its name without the directory, or "<cell>" in a notebook
    number: int  # from 1
    function: str  # name of the enclosing function, or "<module>"
    text: str  # the line without its indentation
    start: int | None = (
        None  # index in `text` where the failing part begins, None where Python does not know it
    )
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
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    summaries = traceback.extract_tb(error.__traceback__)
    found = [s for frame, s in zip(frames, summaries, strict=False) if not _in_library(frame)]
    own = [s for s in found if not _INSTALLED.search(s.filename)]
    return _source_line((own or found)[-1]) if found else None


def _in_library(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _LIBRARIES or frame.f_code.co_filename.startswith(_OWN_DIRECTORY)


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
