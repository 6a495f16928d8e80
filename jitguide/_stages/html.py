"""A `Stages` result as HTML: one column per text, linked without a script.

The view works on its own: a source line's colour and number run through all columns, pointing at a line
or following a number's link lights what belongs to it (CSS alone), and each text folds. Every line names its
equations in `data-eq`, and those that contain them in `data-in`, for a page's script to be more precise.
Where a viewer drops the style, as Jupyter does in a notebook from elsewhere, the lines are plain `pre`.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jitguide._display import escape, style
from jitguide._stages.model import Line
from jitguide._stages.text_view import counts

# HTML ids must differ between the views of a page, also of one result shown twice.
_NUMBER = itertools.count(1)

_STRUCK = {"unused", "not lowered"}
_FADED = {"folded", "merged", "moves data"}
_TAGS = {"d": "s", "f": "u"}  # struck through, underlined with dots
_MOST = 500  # lines of one text in a view; a browser slows down beyond some thousands of elements
_LONG = {True: 10, False: 40}  # lines of a library's body, and of any body, beyond which it is folded
_LEGEND = (
    '<p class="jgs-k">Numbers: the source line. ~ and a dashed edge: no label of its own, deduced from '
    "what uses it. Grey: a constant, or made by XLA. <s>Struck</s>: not in the StableHLO. "
    "<u>Dotted</u>: not found under its own name in the optimized code.</p>"
)


def columns(stages: Any, names: Sequence[str]) -> str:
    """Return the chosen texts side by side; on a narrow screen they stack."""
    view = f"jgs{next(_NUMBER)}"
    shown = [number for number, line in enumerate(stages.source.lines, 1) if line.equations]
    targets = set(shown) if "source" in names else set()
    parts = [_column(stages, getattr(stages, name), view, targets) for name in names]
    text = "".join(f"<p>{escape(note)}</p>" for note in (*counts(stages), *stages.notes))
    return (
        f'{style("_stages/view.css")}<style>{"".join(_rules(view, shown))}</style><div class="jgs" id="{view}">'
        f"<p><strong>stages of {escape(stages.name)}</strong></p>"
        f'<div class="jgs-cols" style="--n:{len(names)}">{"".join(parts)}</div>{_LEGEND}{text}</div>'
    )


def _rules(view: str, numbers: Iterable[int]) -> Iterator[str]:
    """Yield per source line its hue, and how it lights up."""
    for n in numbers:
        hue = round(n * 137.508) % 360  # the golden angle keeps neighbours apart
        lit = f"#{view}:has(.s{n}:is(:hover,:focus-within,:target)) .s{n}"
        yield f"#{view} .s{n}{{--h:{hue}}}{lit}{{--l:.3}}"


def _column(stages: Any, stage: Any, view: str, targets: set[int]) -> str:
    body = "".join(_blocks(stages, stage, view, targets)) or "<span>not available</span>"
    title = escape(stage.title)
    return (
        f'<details open class="jgs-{stage.name}"><summary>{title}</summary>'
        f'<div class="jgs-t" tabindex="0" role="group" aria-label="{title}">{body}</div></details>'
    )


def _blocks(stages: Any, stage: Any, view: str, targets: set[int]) -> Iterator[str]:
    """Yield the lines function by function; long bodies are folded, but for the first."""
    first = next((line.block for line in stage.lines if line.block), "")
    for block, members in itertools.groupby(stage.lines[:_MOST], key=lambda line: line.block):
        lines = list(members)
        text = "".join(_runs(stages, lines, stage.name, view, targets))
        inside = [stages.equations[e].inside for line in lines for e in line.equations]
        if block and block != first and len(lines) > _LONG[all(inside)]:
            head = f'<summary class="jgs-k">{escape(block)}: {len(lines)} lines</summary>'
            text = f"<details>{head}{text}</details>"
        yield text
    if len(stage) > _MOST:
        yield f"<span class=x>… {len(stage) - _MOST} more lines: print(result.{stage.name})</span>"


def _sources(line: Line) -> tuple[int, ...]:
    return line.source if line.equations else ()


def _runs(stages: Any, lines: Sequence[Line], stage: str, view: str, targets: set[int]) -> Iterator[str]:
    """Yield consecutive lines of the same source lines as one element, the first with links to these."""
    for source, members in itertools.groupby(lines, key=_sources):
        run = list(members)
        few = source if len(source) <= 2 else source[:1]
        more = "…" if len(few) < len(source) else ""
        links = ",".join(_link(n, stage, view) if n in targets else str(n) for n in few) + more
        plain = ",".join(map(str, few)) + more
        rows = [_row(stages, line, stage, plain if i else links) for i, line in enumerate(run)]
        if not run[0].equations:
            yield f"<pre>{''.join(rows)}</pre>"
            continue
        classes = " ".join([*(["m"] if len(source) > 1 else []), *(f"s{n}" for n in source)])
        own = _attribute("id", f"{view}-{source[0]}") if stage == "source" else ""
        yield f"<pre{_attribute('class', classes)}{own}>{''.join(rows)}</pre>"


def _attribute(name: str, value: str) -> str:
    """Return an attribute, or nothing for an empty value; one word needs no quotes, which saves a tenth."""
    quote = "" if re.fullmatch(r"[\w#\-]+", value) else '"'
    return f" {name}={quote}{escape(value)}{quote}" if value else ""


def _link(number: int, stage: str, view: str) -> str:
    # The source's own links are the tab stops; hundreds more in the other columns would bury the page.
    skip = "" if stage == "source" else _attribute("tabindex", "-1")
    return f"<a{_attribute('href', f'#{view}-{number}')}{skip}>{number}</a>"


def _row(stages: Any, line: Line, stage: str, margin: str) -> str:
    marks, hint = _marks(stages, line, stage)
    indent = len(line.text) - len(line.text.lstrip())
    text, tag = escape(line.text[indent:]), _TAGS.get("".join(marks))
    if tag:
        text, marks = f"<{tag}>{text}</{tag}>", []
    text = escape(line.text[:indent]) + text
    margin = f"~{margin}" if line.link == "inferred" else margin
    if stage == "source" and line.text and not line.equations:
        margin = str(line.source[0])
    attributes = _attribute("class", " ".join(marks)) + _data(stages, line) + _attribute("title", hint)
    return f"<span{attributes}><i>{margin} </i>{text}\n</span>"


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
        return ["x"], ""
    marks = ["x"] if line.note == "constant" else []
    return (["i", *marks] if line.link == "inferred" else marks), ""


def _data(stages: Any, line: Line) -> str:
    around: set[int] = set()
    for number in line.equations:
        parent = stages.equations[number].parent
        while parent is not None:
            around.add(parent)
            parent = stages.equations[parent].parent
    around -= line.equations
    return _attribute("data-eq", _ids(line.equations)) + _attribute("data-in", _ids(around))


def _ids(numbers: Iterable[int]) -> str:
    return " ".join(map(str, sorted(numbers)))
