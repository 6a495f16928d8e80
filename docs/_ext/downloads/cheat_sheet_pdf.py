"""Make the PDF of the cheat sheet, with Typst, whose compiler comes as a Python package.

What is printed is the page itself: `typst_of` turns its doctree into Typst's markup, and the layout is here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import typst
from docutils import nodes
from sphinx.application import Sphinx

from _ext import build

PAGE = "reference/cheat-sheet"
_LAYOUT = """\
#set document(title: {title})
#set page(paper: "a4", margin: (x: 11mm, top: 9mm, bottom: 11mm), columns: 2, footer-descent: 3mm,
  footer: text(size: 7pt, fill: luma(90))[#{footer}])
#set columns(gutter: 7mm)
#set text(font: "Libertinus Serif", size: 9.3pt, lang: "en")
#set par(leading: 0.48em, spacing: 0.72em)
#set list(indent: 0pt, body-indent: 0.4em, spacing: 0.55em)
#show table: set block(breakable: false)
#set table(stroke: none, inset: (x: 0pt, y: 2.1pt), column-gutter: 7pt, align: left + horizon)
#set table.hline(stroke: 0.4pt + luma(160))
#show raw: set text(font: "DejaVu Sans Mono", size: 0.86em)
#show raw.where(block: true): it => block(fill: luma(243), inset: 3pt, radius: 1.5pt, width: 100%, it)
#show heading: it => block(above: 0.85em, below: 0.5em, text(size: 12pt, fill: rgb("#12557a"), it.body))
#show heading.where(level: 1): it => block(below: 0.6em, text(size: 17pt, fill: rgb("#12557a"), it.body))
"""


def write(app: Sphinx, page: str, _template: str, context: dict, doctree: nodes.document | None) -> None:
    """Write the PDF beside the page of the cheat sheet, and name it to the template."""
    if page != PAGE or doctree is None or not build.is_site(app):
        return
    target = Path(app.outdir, f"{PAGE}.pdf")
    target.parent.mkdir(parents=True, exist_ok=True)
    title = f"{app.config.project}: {app.env.titles[page].astext()}"
    target.write_bytes(pdf(doctree, title, f"{title}. Every fact in it is proved in the guide."))
    context.setdefault("guide_downloads", {})["PDF, to print"] = target.name


def pdf(doctree: nodes.document, title: str, footer: str) -> bytes:
    """Return a page as a PDF on A4 paper, in two columns."""
    head = _LAYOUT.format(title=_string(title), footer=_string(footer))
    body = re.sub(
        r' +";(?=\s*(?:#"[.,;:]|$))', '";', typst_of(doctree)
    )  # the gap that a left-out mark leaves
    return typst.compile((head + body).encode(), ignore_system_fonts=True)  # the same on every machine


def typst_of(node: nodes.Node, level: int = 0) -> str:
    """Return a docutils node and all below it in Typst's markup."""
    match node:
        case nodes.Text():
            return f"#{_string(node.astext())};"
        case nodes.section():
            return _all(node, level + 1)
        case nodes.title():
            return f"\n#heading(level: {max(level, 1)})[{_all(node, level)}]\n"
        case nodes.paragraph():
            return f"\n{_all(node, level)}\n\n"
        case nodes.literal() | nodes.literal_block():
            block = str(isinstance(node, nodes.literal_block)).lower()
            return f"#raw({_string(node.astext())}, block: {block}, lang: {_string(node.get('language', 'text'))});"
        case nodes.strong() | nodes.emphasis():
            kind = "strong" if isinstance(node, nodes.strong) else "emph"
            return f"#{kind}[{_all(node, level)}];"
        case nodes.bullet_list() | nodes.enumerated_list():
            kind = "list" if isinstance(node, nodes.bullet_list) else "enum"
            return f"\n#{kind}({_each(node, level)})\n"
        case nodes.table():
            return _table(node, level)
        case nodes.term():
            return f"\n#strong[{_all(node, level)}] "
        case nodes.raw() | nodes.comment() | nodes.superscript():
            return ""
    return _all(node, level)


def _all(node: nodes.Node, level: int) -> str:
    return "".join(typst_of(child, level) for child in node.children)


def _each(node: nodes.Node, level: int) -> str:
    return "".join(f"[{_all(child, level)}], " for child in node.children)


def _table(node: nodes.table, level: int) -> str:
    """Return a table, its head in bold over a line."""
    rows = list(node.findall(nodes.row))
    cells = []
    for row in rows:
        head = isinstance(row.parent, nodes.thead)
        texts = [_all(entry, level).strip() for entry in row.children]
        cells += [f"[#strong[{text}]]" if head else f"[{text}]" for text in texts]
        if head:
            cells.append("table.hline()")
    columns = ", ".join(["auto"] + ["1fr"] * (len(rows[0].children) - 1)) if rows else "1fr"
    return f"\n#table(columns: ({columns},), {', '.join(cells)})\n"


def _string(text: str) -> str:
    """Return text as a string of Typst, whose quoting is that of JSON but for the long escapes."""
    return json.dumps(text, ensure_ascii=False)
