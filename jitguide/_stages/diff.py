"""How two `Stages` results differ: their texts line by line, and how often each operation occurs."""

import dataclasses
import difflib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from jitguide import _display
from jitguide._display import AsData
from jitguide._stages.model import NAMES, TITLES, Line, Stage

_CONTEXT = 2
_MOST = 60  # lines of one text that are shown
_NUMBERED = re.compile(r"(?<=[A-Za-z_])[._]\d+\b|(?<=%)\d+\b")  # add.17 and %12: numbers that any edit shifts
# What stands for a value or a function: %12, @f_1, add.17; not an opcode "add(" nor an attribute "kind=kLoop".
_NAME = re.compile(r"%\w+|@[\w.]+|(?<![\w.=])[A-Za-z_][\w.\-]*(?![\w.\-(=])")
# An instruction of HLO, which XLA names after an operation of the jaxpr.
_DEFINED = re.compile(r"\s*([A-Za-z_][\w.\-]*) = ")
_Names = dict[tuple[str, str], tuple[str, str]]  # computation and name, to the same of the other text
_CUT = re.compile(r"…>|…\)|\{\.\.\.\}")  # a long constant in StableHLO and HLO
_SAME = "(no difference)"
_SAME_BUT_CUT = "(no difference in what is shown; the values of long constants are not)"


@dataclasses.dataclass(frozen=True, repr=False)
class StagesDiff(AsData):
    """The difference of two results.

    Attributes:
        names: The names of the two functions.
        lines: For each stage its lines as (sign, text): "-" only in the first, "+" only in the second, " " in
            both, "…" where equal lines are left out. Empty where the texts agree, but for names that JAX or
            XLA numbered otherwise.
        operations: For each stage the operations whose counts differ, as (before, after).
        cut: Stages that do not show the values of all constants; where their lines agree, values may differ.
    """

    names: tuple[str, str]
    lines: dict[str, tuple[tuple[str, str], ...]]
    operations: dict[str, dict[str, tuple[int, int]]]
    cut: tuple[str, ...] = ()

    def __repr__(self) -> str:
        counts = self._counts()
        title = f"stages: {self.names[0]} (-) and {self.names[1]} (+)"
        blocks = [title, counts.text() if counts.rows else ""]
        for name in NAMES:
            body = [f"{sign} {text}".rstrip() for sign, text in self._shown(name)] or [self._same(name)]
            blocks.append("\n".join([TITLES[name], *body]))
        return "\n\n".join(block for block in blocks if block)

    def _shown(self, name: str) -> Sequence[tuple[str, str]]:
        lines = self.lines[name]
        rest = ("…", f"{len(lines) - _MOST} more lines: see `lines[{name!r}]`")
        return lines if len(lines) <= _MOST else (*lines[:_MOST], rest)

    def _same(self, name: str) -> str:
        return _SAME_BUT_CUT if name in self.cut else _SAME

    def _counts(self) -> _display.Table:
        rows = [
            [TITLES[name].split(":")[0], op, before, after, f"{after - before:+d}"]
            for name in NAMES
            for op, (before, after) in self.operations[name].items()
        ]
        header = ["stage", "operation", "before", "after", "change"]
        return _display.Table(header, rows, numeric=[2, 3, 4])

    def _repr_html_(self) -> str:
        title = _display.escape(f"stages: {self.names[0]} (−) and {self.names[1]} (+)")
        counts = self._counts()
        parts = [f"<p><strong>{title}</strong></p>", counts.html() if counts.rows else ""]
        for name in NAMES:
            body = "".join(_html_line(sign, text) for sign, text in self._shown(name))
            text = f"<pre>{body}</pre>" if body else f"<p>{self._same(name)}</p>"
            parts.append(f"<details open><summary>{_display.escape(TITLES[name])}</summary>{text}</details>")
        return _display.panel("".join(parts))


def _html_line(sign: str, text: str) -> str:
    shown = _display.escape(f"{sign} {text}\n")
    tag = {"-": "del", "+": "ins"}.get(sign)
    if tag is None:
        return shown
    hue = 0 if sign == "-" else 140
    return f'<{tag} style="text-decoration:none;background:hsl({hue} 75% 50%/.16)">{shown}</{tag}>'


def diff(first: Any, second: Any) -> StagesDiff:
    """Return how `second` differs from `first`.

    Raises:
        TypeError: If `second` is not a result of `stages`.
    """
    if not all(isinstance(getattr(second, name, None), Stage) for name in NAMES):
        raise TypeError(
            f"diff compares two results of stages, and `other` is of type {type(second).__name__}. "
            "Pass what stages(g, x) returned."
        )
    pairs = {name: (getattr(first, name), getattr(second, name)) for name in NAMES}
    return StagesDiff(
        (first.name, second.name),
        {name: _lines(*pair) for name, pair in pairs.items()},
        {name: _operations(*pair) for name, pair in pairs.items()},
        tuple(name for name in ("stablehlo", "hlo") if any(_CUT.search(s.text) for s in pairs[name])),
    )


def _lines(before: Stage, after: Stage) -> tuple[tuple[str, str], ...]:
    old, new = [line.text for line in before.lines], [line.text for line in after.lines]
    made: list[tuple[str, str]] = []
    end = 0
    for group in _matcher(before, after).get_grouped_opcodes(_CONTEXT):
        if group[0][1] > end:
            made.append(("…", ""))
        for tag, i, i_end, j, j_end in group:
            if tag == "equal":
                made += [(" ", text) for text in new[j:j_end]]
            else:
                made += [("-", text) for text in old[i:i_end]] + [("+", text) for text in new[j:j_end]]
        end = group[-1][2]
    if made and end < len(old):
        made.append(("…", ""))
    return tuple(made)


def _matcher(before: Stage, after: Stage) -> difflib.SequenceMatcher[str]:
    """Return what aligns the lines: blind to names that do not matter, but not to what they stand for."""
    of_reader = before.name == "source"  # the numbers in it are the user's own
    old, new = ([line.text.rstrip() for line in s.lines] if of_reader else _blind(s) for s in (before, after))
    while True:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        pairs = [(i + n, j + n) for i, j, size in matcher.get_matching_blocks() for n in range(size)]
        names: tuple[_Names, _Names] = {}, {}
        unlike = [(i, j) for i, j in pairs if not _renamed(before.lines[i], after.lines[j], *names)]
        if of_reader or not unlike:
            return matcher
        for i, j in unlike:
            old[i], new[j] = f"- {i}", f"+ {j}"  # equal to no other line


def _blind(stage: Stage) -> list[str]:
    """Return a stage's lines without the numbers in names and, in HLO, without the names of instructions."""
    hlo = [_DEFINED.match(line.text) for line in stage.lines if stage.name == "hlo"]
    defined = {found[1] for found in hlo if found}
    texts = (_NAME.sub(lambda name: "_" if name[0] in defined else name[0], s.text) for s in stage.lines)
    return [_NUMBERED.sub("", text).rstrip() for text in texts]


def _renamed(old: Line, new: Line, forward: _Names, backward: _Names) -> bool:
    """Return whether two lines differ only by renaming, one name to one, as in the lines above them."""
    same = True
    for a, b in zip(_NAME.findall(old.text), _NAME.findall(new.text), strict=False):
        # Values are numbered from 0 in each function.
        one, other = ((line.block if name[0] == "%" else "", name) for line, name in ((old, a), (new, b)))
        same &= forward.setdefault(one, other) == other and backward.setdefault(other, one) == one
    return same


def _operations(before: Stage, after: Stage) -> dict[str, tuple[int, int]]:
    old, new = (Counter(line.op for line in stage.lines if line.op) for stage in (before, after))
    return {op: (old[op], new[op]) for op in sorted({*old, *new}) if old[op] != new[op]}
