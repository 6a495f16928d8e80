"""A `Stages` result as plain text."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from jitguide import _display

_WIDEST_SOURCE = 32
_WIDEST_CELL, _WIDEST_ENDING = 19, 22
_MOST_NAMES = 3


def summary(stages: Any) -> str:
    """Return for each source line its equations and where they ended up; then counts."""
    rows: list[list[object]] = []
    for number, line in enumerate(stages.source.lines, 1):
        if line.equations or number == 1:
            own = [stages.equations[e] for e in sorted(line.equations)]
            rows.append([number, _display.cut(line.text, _WIDEST_SOURCE), *_cells(own)])
        elif rows[-1][1] != "…":
            rows.append(["", "…", "", ""])  # lines without an operation
    orphans = [e for e in stages.equations if e.line is None]
    if orphans:
        rows.append(["", "(no line shown)", *_cells(orphans)])
    title = f"stages of {stages.name}"
    header = ["line", "source", "jaxpr", "ended up in"]
    table = _display.Table(header, rows, numeric=[0], title=title, fit=True)
    below = [line for text in (*counts(stages), *stages.notes) for line in _display.wrapped(text, rest="")]
    return "\n".join([table.text() if rows else title, "", *below])


def counts(stages: Any) -> list[str]:
    """Return the counts, cost, memory, constants and donations as lines."""
    names = ("jaxpr equation", "StableHLO operation", "HLO instruction", "fusion")
    jaxpr, stablehlo, hlo, fusions = (
        f"{'not available' if number is None else number} {_display.plural(name, number)}"
        for name, number in zip(names, stages.operations.values(), strict=True)
    )
    lines = [f"{jaxpr} → {stablehlo} → {hlo}, {fusions}"]
    lines.append("cost: " + ", ".join(f"{k} {_number(v, k)}" for k, v in stages.cost.items()))
    lines.append("memory: " + ", ".join(f"{k} {_display.size(v)}" for k, v in stages.memory.items()))
    captured = [f"{c.type} ({_display.size(c.bytes)})" for c in stages.constants]
    for name, texts in (("captured", captured), ("donated", list(stages.donated))):
        if texts:
            more = f" and {len(texts) - _MOST_NAMES} more" if len(texts) > _MOST_NAMES else ""
            lines.append(f"{name}: {', '.join(texts[:_MOST_NAMES])}{more}")
    return lines


def _number(value: float | None, name: str) -> str:
    if name.startswith("bytes"):
        return _display.size(value)
    return "not available" if value is None else f"{value:,.0f}"


def _cells(own: list[Any]) -> list[str]:
    inside = {e.parent for e in own}
    leaves = [e for e in own if e.id not in inside]
    counted = Counter(e.primitive for e in leaves)
    made = [f"{n} × {name}" if n > 1 else name for name, n in counted.items()]
    return [_clip(made, _WIDEST_CELL), _ending(leaves)]


def _ending(equations: list[Any]) -> str:
    names = dict.fromkeys(name for e in equations for name in e.fusions)
    # The reason "why not" matters for a line that is gone as a whole.
    whole = {e.status for e in equations} == {"unused"}
    gone = dict.fromkeys(e.detail if whole else e.detail.split(":")[0] for e in equations)
    return _clip(list(names or gone), _WIDEST_ENDING)


def _clip(parts: list[str], most: int) -> str:
    """Return as many of the parts as fit, and how many more there are."""
    text = ", ".join(parts)
    for shown in range(len(parts) - 1, 0, -1):
        if len(text) <= most:
            break
        text = f"{', '.join(parts[:shown])}, +{len(parts) - shown}"
    return _display.cut(text, most)


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
