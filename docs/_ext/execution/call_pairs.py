"""The chooser and the table of pairs of calls, from what `jitguide.demos.cache_key.pairs` found.

`docs/_static/pairs.js` makes the chooser; without scripts, the table shows every pair.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

from nbformat import NotebookNode

_KINDS = {
    "hit": "a hit: the compiled function runs at once",
    "path": "leaves the fast path: JAX's Python code runs once, and nothing is compiled",
    "compile": "compiles without a trace: XLA compiles the trace that is there for another placement",
    "trace": "traces and compiles again",
}


def show(cell: NotebookNode) -> None:
    """Put the site's form in place of the plain table, in each output of a cell that carries pairs of calls."""
    for output in cell.outputs:
        if pairs := output.get("metadata", {}).pop("text/html", {}).get("pairs"):
            output.data["text/html"] = _html(**pairs)


def _html(names: list[str], reasons: list[str], found: list[list[Any]]) -> str:
    head = "".join(f'<th scope="col" title="{escape(name)}">{i}</th>' for i, name in enumerate(names, 1))
    rows = ""
    for i, first in enumerate(names):
        kinds = [kind for kind, *_ in found[i * len(names) : (i + 1) * len(names)]]
        cells = "".join(f'<td class="pair-{kind}">{kind}</td>' for kind in kinds)
        rows += f'<tr><th scope="row">{i + 1}&nbsp; <code>{escape(first)}</code></th>{cells}</tr>'
    legend = "".join(f'<li><span class="pair-{k}">{k}</span> {text}</li>' for k, text in _KINDS.items())
    said = {"names": names, "reasons": reasons, "found": found}
    data = json.dumps(said, ensure_ascii=False).replace("<", "\\u003c")
    return (
        '<div class="call-pairs"><details class="pairs-all"><summary>All pairs as a table</summary>'
        f'<div class="pst-scrollable-table-container" tabindex="0"><table><thead><tr><th scope="col">first call ↓ '
        f"second call →</th>{head}</tr></thead><tbody>{rows}</tbody></table></div><ul>{legend}</ul></details>"
        f'<script type="application/json">{data}</script></div>'
    )
