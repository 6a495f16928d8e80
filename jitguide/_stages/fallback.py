"""Links by source line, for a JAX on which tagging fails: the right line, often not the right equation."""

from __future__ import annotations

import re
from collections.abc import Callable

from jitguide._jaxprs import open_jaxpr, text_of
from jitguide._stages.hlo import Instruction
from jitguide._stages.model import Line
from jitguide._stages.source import Place
from jitguide._stages.stablehlo import Op

_FILE = re.compile(r'^(#loc\d*) = loc\("((?:[^"\\]|\\.)*)":(\d+):')
_NAMED = re.compile(r'^(#loc\d*) = loc\("(?:[^"\\]|\\.)*"\((#loc\d*)\)\)')
_CALL = re.compile(r"^(#loc\d*) = loc\(callsite\((#loc\d*) at (#loc\d*)\)\)")
_COMMENT = re.compile(r"\s+# ((?:[^#\s]|[^#]\S)*?):(\d+):\d+ \(.*\)\s*$")
_ANY_COMMENT = re.compile(r"\s+# .*$")

Find = Callable[[list[Place]], frozenset[int]]


def from_stablehlo(text: str, find: Find) -> Callable[[Op], frozenset[int]]:
    """Return the look-up of an operation by its location; `find` takes lines, innermost first."""
    chains: dict[str, tuple[str, ...]] = {}
    files: dict[str, Place] = {}
    for row in text.splitlines():
        if match := _FILE.match(row):
            files[match[1]] = Place(match[2], int(match[3]))
        elif match := _CALL.match(row):
            chains[match[1]] = (match[2], match[3])
        elif match := _NAMED.match(row):
            chains[match[1]] = (match[2],)

    def places(location: str) -> list[Place]:
        if location in files:
            return [files[location]]
        return [place for part in chains.get(location, ()) for place in places(part)]

    return lambda op: find(places(op.location))


def from_hlo(text: str, find: Find) -> Callable[[Instruction], frozenset[int]]:
    """Return the look-up of an instruction by the tables of frames in front of the module."""
    files = {m[1]: m[2] for m in re.finditer(r'^(\d+) "(.*)"$', _table(text, "FileNames"), re.M)}
    spots = {
        m[1]: Place(files.get(m[2], ""), int(m[3]))
        for m in re.finditer(
            r"^(\d+) \{file_name_id=(\d+).*? line=(\d+)", _table(text, "FileLocations"), re.M
        )
    }
    pattern = r"^(\d+) \{file_location_id=(\d+)(?: parent_frame_id=(\d+))?"
    frames = {
        int(m[1]): (m[2], int(m[3] or 1)) for m in re.finditer(pattern, _table(text, "StackFrames"), re.M)
    }

    def places(frame: int) -> list[Place]:
        chain = list[Place]()
        while frame in frames and len(chain) < 200:
            spot, parent = frames[frame]
            if spot in spots:
                chain.append(spots[spot])
            frame = parent - 1  # XLA counts parents from 1 for "none", frames from 1 for the first
        return chain

    return lambda instruction: find(places(instruction.frame))


def _table(text: str, title: str) -> str:
    found = re.search(rf"^{title}\n((?:\d+ .*\n)*)", text, re.M)
    return found[1] if found else ""


def jaxpr_lines(jaxpr: object, find: Find) -> list[Line]:
    """Return the lines of an untagged jaxpr, linked through the source lines that JAX prints as comments."""
    text = text_of(jaxpr, lines=True)
    if text is None:
        return [Line(row) for row in str(open_jaxpr(jaxpr)).splitlines()]
    lines = []
    for row in text.splitlines():
        match = _COMMENT.search(row)
        place = Place(match[1], int(match[2])) if match else None
        equations = find([place]) if place else frozenset()
        # The comment names a file: it goes, known or not.
        lines.append(Line(_ANY_COMMENT.sub("", row), equations, "inferred" if equations else None))
    return lines
