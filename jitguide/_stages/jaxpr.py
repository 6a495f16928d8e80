"""The jaxpr as text, one line after the other, each with its equations."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from jitguide._jaxprs import text_of
from jitguide._stages.model import Line
from jitguide._stages.tags import tags

_COMMENT = re.compile(r"\s*# \[(.*)\]\s*$")
_OPERATION = re.compile(r"= ([\w.\-]+)")


def jaxpr_lines(tagged: Any, find: Callable[[tuple[int, ...]], frozenset[int]]) -> list[Line]:
    """Return the lines of a tagged jaxpr, printed by JAX and stripped of the tags.

    An equation that JAX prints on several lines owns them all, up to the body that it contains.

    Args:
        tagged: The jaxpr with its tags.
        find: Gives the equations of a tag.
    """
    text = text_of(tagged) or ""
    lines: list[Line] = []
    unfinished: list[tuple[int, frozenset[int]]] = []  # indentation and equations, outermost first
    for row in text.splitlines():
        comment = _COMMENT.search(row)
        row = row[: comment.start()] if comment else row.rstrip()
        indent = len(row) - len(row.lstrip())
        if comment:
            while unfinished and unfinished[-1][0] >= indent:
                unfinished.pop()
            # A body can be shared by several equations; its own tag is enough to find all its nodes.
            equations = find(tags(comment[1])[-1:])
            unfinished.append((indent, equations))
            operation = _OPERATION.search(row)
            lines.append(_line(row, equations, operation[1] if operation else ""))
            continue
        while unfinished and not _belongs(row, indent, unfinished[-1][0]):
            unfinished.pop()
        lines.append(_line(row, unfinished[-1][1] if unfinished else frozenset()))
    return lines


def _belongs(row: str, indent: int, owner: int) -> bool:
    return indent > owner or (indent == owner and row.lstrip().startswith("]"))


def _line(text: str, equations: frozenset[int], op: str = "") -> Line:
    return Line(text, equations, "exact" if equations else None, op=op)
