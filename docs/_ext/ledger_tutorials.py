"""The directive `five-tutorials`: every row of docs/_data/sources.json, with its verdict and its place here."""

from __future__ import annotations

from collections import Counter

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

from . import ledger
from .ledger_nodes import LedgerDirective, prose, section, table

_log = logging.getLogger(__name__)

# The order of the verdicts on a tutorial's row, each with a mark, so that no verdict is told by colour alone.
VERDICTS = {
    "holds": "✓",
    "holds in other words": "≈",
    "imprecise": "~",
    "changed since": "↻",
    "API gone": "∅",
    "was never so": "✗",
    "not testable": "?",
}
TITLES = {
    "S000": ("A personal notebook on jit", "Written for JAX 0.4.1 to 0.4.12, in 2022 and 2023."),
    "S001": ("TF_JAX tutorials, part 7", "A Kaggle notebook, written for JAX 0.2.20 and later, in 2021 and 2022."),
    "S002": ("A draft of a post on JAX", "An unfinished blog post, written for JAX 0.4.8 to 0.4.10, in May 2023."),
    "S003": ("Tracing", "A page of the JAX documentation: outputs of JAX 0.7 and 0.8, around prose of 2020."),
    "S004": ("JAX-101: 02-jitting", "A notebook of the JAX documentation, with outputs of JAX 0.2.20 to 0.3."),
}  # fmt: skip


class place_link(nodes.Inline, nodes.Element):  # noqa: N801
    """Stands for the link to a heading until all pages are known."""


class FiveTutorials(LedgerDirective):
    """Each tutorial with the count of its verdicts and a table of all its rows."""

    def run(self) -> list[nodes.Node]:
        """Return a summary and a section for each tutorial."""
        self.watch(ledger.SOURCES)
        found = {source: [row for row in ledger.rows() if row.id.startswith(source)] for source in TITLES}
        return [self._summary(found), *(self._tutorial(source, rows) for source, rows in found.items())]

    def _summary(self, found: dict[str, list[ledger.Row]]) -> nodes.table:
        counts = {source: Counter(row.verdict for row in rows) for source, rows in found.items()}
        total = sum(counts.values(), Counter())
        lines = [(TITLES[source][0], counts[source]) for source in found] + [("All five", total)]
        rows = [
            [[nodes.Text(title)], *([nodes.Text(str(count[verdict]))] for verdict in VERDICTS)]
            for title, count in lines
        ]
        head = ["Tutorial", *(f"{mark} {verdict}" for verdict, mark in VERDICTS.items())]
        return table(head, rows, (4, *(1 for _ in VERDICTS)))

    def _tutorial(self, source: str, rows: list[ledger.Row]) -> nodes.section:
        title, era = TITLES[source]
        body = [
            [
                [nodes.strong("", row.id, ids=[f"row-{row.id}"]), nodes.Text(" "), *prose(row.restated)],
                [nodes.Text(f"{VERDICTS[row.verdict]} {row.verdict}")],
                [*prose(row.evidence), *(node for name in row.claims for node in self.mark(name))],
                [place_link(row=row.id, page=row.page, heading=row.heading)],
            ]
            for row in rows
        ]
        head = ["What it says, in our words", "Verdict", "What we saw", "In this guide"]
        return section(
            title, f"tutorial-{source}", nodes.paragraph(text=era), table(head, body, (4, 1, 5, 2))
        )


def _resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    anchors: dict[str, dict[str, str]] = {}
    for node in list(doctree.findall(place_link)):
        page, heading = node["page"], node["heading"]
        if page not in anchors:
            anchors[page] = headings(app, page)
        if heading not in anchors[page]:
            _log.warning(
                "row %s of sources.json: there is no heading %r in %r.",
                node["row"],
                heading,
                page,
                location=docname,
            )
            node.replace_self(nodes.Text(heading))
            continue
        text = nodes.Text(heading)
        node.replace_self(make_refnode(app.builder, docname, page, anchors[page][heading], text))


def headings(app: Sphinx, page: str) -> dict[str, str]:
    """Return the headings of a page, each with its anchor; nothing where there is no such page."""
    toc = app.env.tocs.get(page)
    return (
        {r.astext(): r["anchorname"].removeprefix("#") for r in toc.findall(nodes.reference)} if toc else {}
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive with Sphinx."""
    app.add_node(place_link)
    app.add_directive("five-tutorials", FiveTutorials)
    app.connect("doctree-resolved", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
