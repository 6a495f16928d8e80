"""The directive `five-tutorials`: every row of docs/_data/sources.json, with its verdict and its place here."""

from __future__ import annotations

from collections import Counter

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

from _ext.nodes import inline, section, table

from . import recording
from .tables import ClaimsDirective

_log = logging.getLogger(__name__)

# The order of the verdicts on a tutorial's row, each with a mark, so that no verdict is shown by color alone.
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


class place_link(nodes.Inline, nodes.Element):  # noqa: N801 -- docutils names nodes in lower case
    """Stands for the link to a heading until all pages are known."""


class FiveTutorials(ClaimsDirective):
    """Each tutorial with the count of its verdicts and a table of all its rows."""

    def run(self) -> list[nodes.Node]:
        """Return a summary and a section for each tutorial."""
        rows = recording.rows(self.data(recording.SOURCES))
        found = {source: [row for row in rows if row.id.startswith(source)] for source in TITLES}
        return [self._summary(found), *(self._tutorial(source, rows) for source, rows in found.items())]

    def _summary(self, found: dict[str, list[recording.Row]]) -> nodes.table:
        counts = {source: Counter(row.verdict for row in rows) for source, rows in found.items()}
        total = sum(counts.values(), Counter[str]())
        lines = [(TITLES[source][0], counts[source]) for source in found] + [("All five", total)]
        rows = [[title, *(str(count[verdict]) for verdict in VERDICTS)] for title, count in lines]
        head = ["Tutorial", *(f"{mark} {verdict}" for verdict, mark in VERDICTS.items())]
        return table(head, rows, (4, *(1 for _ in VERDICTS)), "ledger-table")

    def _tutorial(self, source: str, rows: list[recording.Row]) -> nodes.section:
        title, era = TITLES[source]
        body = [
            (
                [nodes.strong("", row.id, ids=[f"row-{row.id}"]), nodes.Text(" "), *inline(row.restated)],
                f"{VERDICTS[row.verdict]} {row.verdict}",
                [*inline(row.evidence), *(node for name in row.claims for node in self.mark(name))],
                [place_link(row=row.id, page=row.page, heading=row.heading)],
            )
            for row in rows
        ]
        head = ["What it says, in our words", "Verdict", "What we saw", "In this guide"]
        anchor = nodes.make_id(f"tutorial-{source}")
        return section(
            title, anchor, nodes.paragraph(text=era), table(head, body, (4, 1, 5, 2), "ledger-table")
        )


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace the nodes that stand for links to headings."""
    for node in list(doctree.findall(place_link)):
        page, heading = node["page"], node["heading"]
        anchor = _headings(app, page).get(heading)
        if anchor is None:
            text = "row %s of sources.json: there is no heading %r in %r."
            _log.warning(text, node["row"], heading, page, location=docname)
        label = nodes.Text(heading)
        node.replace_self(
            make_refnode(app.builder, docname, page, anchor, label) if anchor is not None else label
        )


def _headings(app: Sphinx, page: str) -> dict[str, str]:
    """Return the headings of a page, each with its anchor; nothing where there is no such page."""
    toc = app.env.tocs.get(page)
    links = toc.findall(nodes.reference) if toc else ()
    return {link.astext(): link["anchorname"].removeprefix("#") for link in links}
