"""Redact from outputs what belongs to the machine: paths, process ids, addresses."""

from __future__ import annotations

import re
from pathlib import Path

from nbformat import NotebookNode

from _ext import ROOT

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")  # colours, titles
_OVERWRITTEN = re.compile(r"^[^\n]*\r+(?=[^\r\n])", re.MULTILINE)  # a progress bar's earlier states
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # HTML and EPUB cannot hold these
_WORD = r"(?<![^\s\"'`(<>])[^\s\"'`(<>]*"  # from its beginning: a picture is one word of 100,000 characters
_REPLACEMENTS = (
    (re.compile(_WORD + r"ipykernel_\d+[/\\]\d+\.py"), "cell"),  # a cell's temporary file
    (re.compile(r"\b\d{6,}\.py\b"), "cell"),
    (re.compile(_WORD + r"[/\\](?:site|dist)-packages[/\\]"), ""),
    (re.compile(re.escape(str(ROOT)) + r"[/\\]?"), ""),
    (re.compile(re.escape(str(Path.home())) + r"[/\\]"), "~/")
    if str(Path.home()) not in ("/", "")
    else (re.compile("$^"), ""),
    (re.compile(r"\b0x[0-9a-f]{6,16}\b"), "0x…"),  # addresses of objects
)
# Where a traceback in IPython's "Plain" mode passes through a cell: the line's number and text.
_CELL_FRAME = re.compile(r"Cell In\[\d+\], line (\d+)[^\n]*\n([^\n]*)")
# JAX appends this note to tracebacks whose frames it removed; the pages show no frames at all.
_FRAMES_NOTE = re.compile(r"\n?-{20,}\nFor simplicity, JAX has removed.*?(?=\n\n|\Z)", re.DOTALL)


def plain(text: str) -> str:
    r"""Return `text` as a terminal would show it, without colours.

    Example:
        >>> plain("\x1b[31m10 %\r100 %\x1b[0m done\x07\r\n")
        '100 % done\n'
    """
    return _CONTROL.sub("", _OVERWRITTEN.sub("", _ANSI.sub("", text)))


def clean_text(text: str) -> str:
    """Return `text` without traces of the machine.

    Example:
        >>> clean_text("function f at /tmp/ipykernel_12/345.py:2 is <f at 0x7f12ab34cd56>")
        'function f at cell:2 is <f at 0x…>'
    """
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return text


def clean_outputs(cell: NotebookNode) -> None:
    """Clean every text of the cell's outputs, and shorten a traceback to the error's own words."""
    for output in cell.outputs:
        if output.output_type == "stream":
            output.text = clean_text(plain(output.text))
        elif output.output_type == "error":
            _shorten(output)
        else:
            for kind, content in output.data.items():
                if kind.startswith("text/") and isinstance(content, str):
                    output.data[kind] = clean_text(plain(content))
    cell.metadata.pop("execution", None)


def _shorten(error: NotebookNode) -> None:
    """Keep of a traceback the deepest line of a cell, the class and the message."""
    frames = cell_frames(error)
    message = _FRAMES_NOTE.sub("", clean_text(plain(error.evalue))).rstrip()
    where = [f"line {frames[-1][0]}: {frames[-1][1]}", ""] if frames else []
    error.evalue = message
    error.traceback = ["\n".join([*where, f"{error.ename}: {message}"])]


def cell_frames(error: NotebookNode) -> list[tuple[int, str]]:
    """Return number and text of each line of a cell that the traceback passes through, outermost first."""
    frames = _CELL_FRAME.findall(plain("\n".join(error.traceback)))
    return [(int(number), text.strip()) for number, text in frames]
