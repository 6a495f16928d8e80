"""The jaxpr as text, one line after the other, each with its equations."""

import re
from collections.abc import Callable
from typing import Any

from jitguide._jaxprs import text_of
from jitguide._stages.model import Line
from jitguide._stages.tags import tags

_COMMENT = re.compile(r"\s*# \[(.*)\]\s*$")
_OPERATION = re.compile(r"= ([\w.\-]+)")


def jaxpr_lines(tagged: Any, find: Callable[[tuple[int, ...]], frozenset[int]]) -> list[Line]:
    """Return the lines of a tagged jaxpr, printed by JAX and stripped of the tags, whose equations `find` gives.

    An equation that JAX prints on several lines owns them all, up to the body that it contains.
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
        deepest = indent if row.lstrip().startswith("]") else indent - 1  # of what the row can be a part of
        while unfinished and unfinished[-1][0] > deepest:
            unfinished.pop()
        lines.append(_line(row, unfinished[-1][1] if unfinished else frozenset()))
    return lines


def _line(text: str, equations: frozenset[int], op: str = "") -> Line:
    return Line(text, equations, "exact" if equations else None, op=op)
