"""Make the PDF of the cheat sheet, with Typst, whose compiler comes as a Python package.

What is printed is the page itself: `typst_of` turns its doctree into Typst's markup, and the layout is docs/_templates/cheat-sheet.typ.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import typst
from docutils import nodes
from sphinx.application import Sphinx

from _ext import DOCS, build

PAGE = "reference/cheat-sheet"
_LAYOUT = DOCS / "_templates" / "cheat-sheet.typ"


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
    head = _LAYOUT.read_text("utf-8").format(title=_string(title), footer=_string(footer))
    # A left-out mark leaves a gap.
    body = re.sub(r' +";(?=\s*(?:#"[.,;:]|$))', '";', typst_of(doctree))
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
