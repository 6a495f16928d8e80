"""A `Stages` result as HTML: one column per text, linked without a script.

The view works on its own: a source line's colour and number run through all columns, pointing at a line
or following a number's link lights what belongs to it (CSS alone), and each text folds. Every line names its
equations in `data-eq`, and those that contain them in `data-in`, for a page's script to be more precise.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jitguide._render import escape
from jitguide._stages.model import Line
from jitguide._stages.view import counts

_NUMBER = itertools.count(
    1
)  # HTML ids must differ between the views of a page, also of one result shown twice

_STRUCK = {"unused", "not lowered"}
_FADED = {"folded", "merged", "moves data"}
_INFERRED = "XLA gave no label; deduced from the operations that use it"
_LONG = {True: 10, False: 40}  # lines of a library's body, and of any body, beyond which it is folded

_STYLE = (
    "<style>.jgs{font-size:.8rem;margin:.5em 0;container-type:inline-size}"
    ".jgs-cols{display:grid;gap:.6em;grid-template-columns:repeat(auto-fit,minmax(min(100%,max(21rem,34%)),1fr))}"
    "@container (min-width:88rem){.jgs-cols{grid-template-columns:repeat(var(--n),minmax(0,1fr))}}"
    ".jgs-cols>details{min-width:0;border:1px solid color-mix(in srgb,currentColor 25%,transparent);border-radius:.4em}"
    ".jgs summary{cursor:pointer;padding:.2em .6em}.jgs-cols>details>summary{font-weight:600}"
    ".jgs-t{max-height:26rem;overflow:auto;font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;"
    "line-height:1.5;padding-bottom:.4em}"
    ".jgs-r{display:block;width:max-content;min-width:100%;white-space:pre;padding-right:1em;box-sizing:border-box;"
    "border-left:.25em solid hsl(var(--h,0) 65% 50%/var(--b,0));background:hsl(var(--h,0) 75% 50%/var(--a,0))}"
    ".jgs-r[data-eq]{--a:.1;--b:.9}.jgs-r.m[data-eq]{--h:0!important;--a:0;border-left-style:double}"
    ".jgs-r.i{border-left-style:dashed}.jgs-r.x,.jgs-k{color:color-mix(in srgb,currentColor 72%,transparent)}"
    ".jgs-r.f{text-decoration:underline dotted;text-underline-offset:.2em}"
    ".jgs-r i{display:inline-block;width:4.2em;padding-right:.6em;margin-right:.5em;box-sizing:border-box;"
    "text-align:right;font-style:normal;user-select:none}.jgs-r i a{color:inherit;padding:0 .1em}"
    ".jgs-r.on,.jgs-r.on.m[data-eq]{--a:.45;font-weight:600}.jgs-r.near{--a:.25}"
    ".jgs p{margin:.3em .2em}</style>"
)


def columns(stages: Any, names: Sequence[str]) -> str:
    """Return the chosen texts side by side; on a narrow screen they stack."""
    view = f"jgs{next(_NUMBER)}"
    shown = [number for number, line in enumerate(stages.source.lines, 1) if line.equations]
    targets = set(shown) if "source" in names else set()
    parts = [_column(stages, getattr(stages, name), view, targets) for name in names]
    below = [*counts(stages), *stages.notes]
    text = "".join(f"<p>{escape(note)}</p>" for note in below)
    return (
        f'{_STYLE}<style>{"".join(_rules(view, shown))}</style><div class="jgs" id="{view}">'
        f"<p><strong>stages of {escape(stages.name)}</strong></p>"
        f'<div class="jgs-cols" style="--n:{len(names)}">{"".join(parts)}</div>{_legend()}{text}</div>'
    )


def _rules(view: str, numbers: Iterable[int]) -> Iterator[str]:
    """Yield per source line its hue, and how it lights up; a page's script takes that over (`live`)."""
    for n in numbers:
        hue = round(n * 137.508) % 360  # the golden angle keeps neighbours apart
        lit = f"#{view}:not(.live):has(.s{n}:is(:hover,:focus-within,:target)) .s{n}"
        yield f"#{view} .s{n}{{--h:{hue}}}{lit}{{--a:.4}}"


def _column(stages: Any, stage: Any, view: str, targets: set[int]) -> str:
    rows = [_row(stages, line, stage.name, view, targets) for line in stage.lines]
    body = "".join(_folded(stages, stage.lines, rows)) or '<span class="jgs-r">not available</span>'
    title = escape(stage.title)
    return (
        f'<details open class="jgs-{stage.name}"><summary>{title}</summary>'
        f'<div class="jgs-t" tabindex="0" role="region" aria-label="{title}">{body}</div></details>'
    )


def _row(stages: Any, line: Line, stage: str, view: str, targets: set[int]) -> str:
    lines = [n for n in line.source if n in targets or stage != "source"]
    marks, hint = _marks(stages, line, stage)
    if len(line.source) > 1:
        marks.append("m")
    classes = " ".join(["jgs-r", *marks, *(f"s{n}" for n in lines if line.equations)])
    own = f' id="{view}-{line.source[0]}"' if stage == "source" and line.equations else ""
    text = escape(line.text)
    text = f"<s>{text}</s>" if hint and "d" in marks else text
    title = f' title="{escape(hint)}"' if hint else ""
    return f'<span class="{classes}"{own}{_data(stages, line)}{title}>{_margin(line, stage, view, targets)}{text}\n</span>'


def _marks(stages: Any, line: Line, stage: str) -> tuple[list[str], str]:
    """Return the classes that say how sure a line's link is and what became of it, and the same in words."""
    if stage == "jaxpr" and line.equations:
        found = [stages.equations[e] for e in sorted(line.equations)]
        details = "; ".join(dict.fromkeys(e.detail for e in found))
        if all(e.status in _STRUCK for e in found):
            return ["d"], details
        if all(e.status in _FADED for e in found):
            return ["f"], details
        return [], ""
    if line.note in ("made by XLA", "argument"):
        return ["x"], line.note if line.note != "argument" else ""
    marks = ["x"] if line.note == "constant" else []
    return (["i", *marks], _INFERRED if stage == "hlo" else "") if line.link == "inferred" else (marks, "")


def _data(stages: Any, line: Line) -> str:
    if not line.equations:
        return ""
    around: set[int] = set()
    for number in line.equations:
        parent = stages.equations[number].parent
        while parent is not None:
            around.add(parent)
            parent = stages.equations[parent].parent
    around -= line.equations
    inside = f' data-in="{_ids(around)}"' if around else ""
    return f' data-eq="{_ids(line.equations)}"{inside}'


def _ids(numbers: Iterable[int]) -> str:
    return " ".join(map(str, sorted(numbers)))


def _margin(line: Line, stage: str, view: str, targets: set[int]) -> str:
    """Return the numbers of the source lines; links where the source is part of the view."""
    if stage == "source" and not line.text:
        return "<i></i>"
    few = line.source if len(line.source) <= 2 else line.source[:1]
    # The source's own links are the tab stops; hundreds more in the other columns would bury the page.
    skip = "" if stage == "source" else ' tabindex="-1"'
    links = [f'<a href="#{view}-{n}"{skip}>{n}</a>' if n in targets else str(n) for n in few]
    return f"<i>{','.join(links)}{'…' if len(few) < len(line.source) else ''}</i>"


def _folded(stages: Any, lines: Sequence[Line], rows: Sequence[str]) -> Iterator[str]:
    """Yield the rows, with long bodies of other functions folded."""
    first = next((line.block for line in lines if line.block), "")
    at = 0
    for block, group in itertools.groupby(lines, key=lambda line: line.block):
        members = list(group)
        text = "".join(rows[at : at + len(members)])
        at += len(members)
        inside = [stages.equations[e].inside for line in members for e in line.equations]
        if block and block != first and len(members) > _LONG[all(inside)]:
            text = f'<details><summary class="jgs-k">{escape(block)}: {len(members)} lines</summary>{text}</details>'
        yield text


def _legend() -> str:
    return (
        '<p class="jgs-k">Numbers: the source line. Dashed edge: deduced. Grey: made by XLA. '
        "<s>Struck</s>: not in the lowered program. Dotted underline: not found under its own name in the optimized code."
        "</p>"
    )
