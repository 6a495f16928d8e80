"""A `Stages` result as plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from jitguide import _display

_WIDEST_SOURCE = 40
_WIDEST_CELL = 30


def summary(stages: Any) -> str:
    """Return for each source line its equations, StableHLO operations and where it ended up; then counts."""
    rows = [_row(stages, number, line) for number, line in enumerate(stages.source.lines, 1)]
    orphans = [e for e in stages.equations if e.line is None]
    if orphans:
        rows.append(["", "(no line shown)", *_cells(stages, orphans)])
    title = f"stages of {stages.name}"
    header = ["line", "source", "jaxpr", "StableHLO", "ended up in"]
    table = _display.Table(header, rows, numeric=[0], title=title).text() if rows else title
    return "\n".join([table, "", *counts(stages), *stages.notes])


def counts(stages: Any) -> list[str]:
    """Return the counts, cost, memory, constants and donations as lines."""
    ops = {k: "not available" if v is None else v for k, v in stages.operations.items()}
    lines = [
        f"{ops['jaxpr equations']} jaxpr equations → {ops['StableHLO operations']} StableHLO operations"
        f" → {ops['HLO instructions']} HLO instructions, {ops['HLO fusions']} fusions"
    ]
    lines.append("cost: " + ", ".join(f"{k} {_number(v, k)}" for k, v in stages.cost.items()))
    lines.append("memory: " + ", ".join(f"{k} {_display.size(v)}" for k, v in stages.memory.items()))
    if stages.constants:
        lines.append(
            "captured: " + ", ".join(f"{c.type} ({_display.size(c.bytes)})" for c in stages.constants)
        )
    if stages.donated:
        lines.append("donated: " + ", ".join(stages.donated))
    return lines


def _number(value: float | None, name: str) -> str:
    if name.startswith("bytes"):
        return _display.size(value)
    return "not available" if value is None else f"{value:,.0f}"


def _row(stages: Any, number: int, line: Any) -> list[object]:
    own = [stages.equations[e] for e in sorted(line.equations)]
    text = line.text if len(line.text) <= _WIDEST_SOURCE else line.text[: _WIDEST_SOURCE - 1] + "…"
    return [number if line.text else "", text, *_cells(stages, own)]


def _cells(stages: Any, own: list[Any]) -> list[str]:
    if not own:
        return ["", "", ""]
    ids = {e.id for e in own}
    lowered = [x.op for x in stages.stablehlo.lines if x.op and x.note != "constant" and ids & x.equations]
    inside = {e.parent for e in own}
    leaves = [e for e in own if e.id not in inside]
    return [_listed(e.primitive for e in leaves), _listed(lowered), _ending(leaves)]


def _ending(equations: list[Any]) -> str:
    names = dict.fromkeys(name for e in equations for name in e.fusions)
    # The reason "why not" matters for a line that is gone as a whole.
    gone = dict.fromkeys(e.detail if e.status == "unused" else e.detail.split(":")[0] for e in equations)
    return _clip(list(names or gone))


def _listed(items: Iterable[str]) -> str:
    return _clip([f"{n} × {name}" if n > 1 else name for name, n in Counter(items).items()])


def _clip(parts: list[str]) -> str:
    text = ""
    for i, part in enumerate(parts):
        longer = f"{text}, {part}" if text else part
        if text and len(longer) > _WIDEST_CELL:
            return f"{text}, +{len(parts) - i}"
        text = longer
    return text


def texts(stages: Any, names: Iterable[str]) -> str:
    """Return some of the texts in full; the margin names the source line, `~` where it was deduced."""
    blocks = []
    for name in names:
        stage = getattr(stages, name)
        rows = [(_margin(line), line.text) for line in stage.lines]
        width = max((len(margin) for margin, _ in rows), default=0)
        body = [f"{margin.rjust(width)}  {text}".rstrip() for margin, text in rows]
        blocks.append("\n".join([stage.title, *(body or ["(not available)"])]))
    return "\n\n".join(blocks)


def _margin(line: Any) -> str:
    if not line.source:
        return ""
    many = ",".join(map(str, line.source[:4])) + ("…" if len(line.source) > 4 else "")
    return ("~" if line.link == "inferred" else "") + many
