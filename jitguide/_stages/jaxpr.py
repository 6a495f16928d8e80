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
    lines: list[Line] = []
    unfinished: list[tuple[int, frozenset[int]]] = []  # indentation and equations, outermost first
    for row in (text_of(tagged) or "").splitlines():
        comment, operation = _COMMENT.search(row), None
        text = row[: comment.start()] if comment else row.rstrip()
        indent = len(text) - len(text.lstrip())
        ends = not comment and text.lstrip().startswith("]")
        while unfinished and unfinished[-1][0] >= indent + ends:  # what the row is not a part of
            unfinished.pop()
        if comment:
            # A body can be shared by several equations; its own tag is enough to find all its nodes.
            unfinished.append((indent, find(tags(comment[1])[-1:])))
            operation = _OPERATION.search(text)
        equations = unfinished[-1][1] if unfinished else frozenset[int]()
        op = operation[1] if operation else ""
        lines.append(Line(text, equations, "exact" if equations else None, op=op))
    return lines
