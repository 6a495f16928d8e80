"""The directives that show what was recorded: claims, changes between releases, the five tutorials."""

from __future__ import annotations

import ast
import html
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from . import claims, ledger

_log = logging.getLogger(__name__)
_TUTORIALS = "reference/five-tutorials"

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
    "S002": ("2023 05 16 Jax Post", "An unfinished blog post, written for JAX 0.4.8 to 0.4.10, in May 2023."),
    "S003": ("Tracing", "A page of the JAX documentation: outputs of JAX 0.7 and 0.8, around prose of 2020."),
    "S004": ("JAX-101: 02-jitting", "A notebook of the JAX documentation, with outputs of JAX 0.2.20 to 0.3."),
}  # fmt: skip


class claim_links(nodes.General, nodes.Element):  # noqa: N801 -- docutils names nodes in lower case
    """Stands for the pages that cite a claim until all are known."""


class place_link(nodes.Inline, nodes.Element):  # noqa: N801
    """Stands for the link to a heading until all pages are known."""


def prose(text: str) -> list[nodes.Node]:
    """Return the text as nodes, what stands between backticks as code."""
    parts = re.split(r"`([^`]+)`", text)
    return [nodes.literal(text=p) if i % 2 else nodes.Text(p) for i, p in enumerate(parts) if p]


def table(
    head: Sequence[str], rows: Sequence[Sequence[list[nodes.Node]]], widths: Sequence[int]
) -> nodes.table:
    """Return a table whose cells are lists of inline nodes."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in widths), cols=len(head))
    group += nodes.thead("", _row([[nodes.Text(text)] for text in head]))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group, classes=["ledger-table"])


def _row(cells: Sequence[list[nodes.Node]]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))


def _section(title: str, name: str, *children: nodes.Node) -> nodes.section:
    return nodes.section("", nodes.title("", "", *prose(title)), *children, ids=[nodes.make_id(name)])


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def _spans(recording: ledger.Recording, claim: str) -> nodes.table:
    rows = [
        [
            prose(s.releases),
            [nodes.Text(f"{ledger.MARKS[s.verdict]} {ledger.WORDS[s.verdict]}")],
            prose_of(s.reason),
        ]
        for s in recording.spans(claim)
    ]
    return table(["JAX", "Verdict", "Seen there"], rows, (2, 2, 5))


def prose_of(reason: str) -> list[nodes.Node]:
    """Return a recorded reason as nodes: the statement that failed as code, and what it gave."""
    statement, _, gave = reason.partition(" – here: ")
    if not gave:
        return [nodes.Text(reason)]
    return [nodes.literal(text=statement), nodes.Text(f" – here: {gave}")]


class _Ledger(SphinxDirective):
    """What all directives here need."""

    def _mark(self, name: str) -> list[nodes.Node]:
        mark = claims.cite(self.env, name, self.get_location())
        return [nodes.Text(" "), mark] if mark else []

    def _watch(self, *paths: Path) -> None:
        for path in paths:
            self.env.note_dependency(str(path))


class ClaimsTable(_Ledger):
    """All claims, a section for each topic, each with its experiment folded away."""

    def run(self) -> list[nodes.Node]:
        """Return the sections between two tags that the filter looks for."""
        topics: dict[str, list[claims.Claim]] = {}
        for claim in self.env.app.guide_claims.values():
            topics.setdefault(claim.topic, []).append(claim)
        self._watch(claims.FOLDER, ledger.CLAIMS, *{c.path for found in topics.values() for c in found})
        releases = html.escape(" ".join(self.env.app.guide_recording.releases))
        opening = _raw(f'<div class="claims-ledger" data-releases="{releases}"></div>')
        return [opening, *(self._topic(topic, topics[topic]) for topic in sorted(topics))]

    def _topic(self, topic: str, found: list[claims.Claim]) -> nodes.section:
        section = _section(topic.capitalize(), f"topic-{topic}")
        for path in sorted({claim.path for claim in found}):
            shared = _shared(path)
            section += self._fold(f"What the experiments in {path.name} share", shared)
        for claim in found:
            section += self._claim(claim)
        return section

    def _fold(self, summary: str, code: str, *children: nodes.Node) -> list[nodes.Node]:
        block = nodes.literal_block(code, code, language="python")
        opening = _raw(f"<details><summary>{html.escape(summary)}</summary>")
        return [opening, *children, block, _raw("</details>")]

    def _claim(self, claim: claims.Claim) -> list[nodes.Node]:
        recording = self.env.app.guide_recording
        row = recording.verdicts.get(claim.id, "")
        mixed = len(set(row)) > 1 or row.startswith("0")
        mark = "✓" if set(row) == {"+"} else "◐" if row else "?"
        seen = nodes.paragraph("", f"{mark} {recording.seen(claim.id)}", classes=["claim-seen"])
        links = claim_links(claim=claim.id, seeds=claim.seeds)
        return [
            _raw(f'<div class="claim-row" id="claim-{claim.id}" data-verdicts="{row}">'),
            nodes.paragraph("", "", *prose(claim.sentence), classes=["claim-sentence"]),
            seen,
            *([_spans(recording, claim.id)] if mixed else []),
            *self._fold("Experiment", claim.code, links),
            _raw("</div>"),
        ]


def _shared(path: Path) -> str:
    """Return what a file of claims holds beside its tests: imports, data and helpers."""
    source = path.read_text("utf-8")
    lines, kept = source.splitlines(), []
    for node in ast.parse(source).body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not getattr(node, "name", "").startswith("test_"):
            gap = [""] if isinstance(node, ast.FunctionDef | ast.ClassDef) and kept else []
            kept += gap + lines[first - 1 : node.end_lineno]
    return "\n".join(kept)


class Recorded(_Ledger):
    """The verdicts on one claim, release by release."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the sentence with its mark, and a table of the releases."""
        name, recording = self.arguments[0], self.env.app.guide_recording
        mark = self._mark(name)
        if not mark:
            return []
        sentence = nodes.paragraph("", "", *prose(self.env.app.guide_claims[name].sentence), *mark)
        return [nodes.container("", sentence, _spans(recording, name), classes=["recorded"])]


class Changes(_Ledger):
    """Every change between neighbouring releases, a section for each release, newest first."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        self._watch(ledger.CLAIMS)
        found: dict[tuple[str, str], list[ledger.Flip]] = {}
        for flip in self.env.app.guide_recording.flips():
            if flip.claim in self.env.app.guide_claims:
                found.setdefault((flip.since, flip.before), []).append(flip)
        return [
            _section(f"JAX {since}, compared with {before}", f"jax-{since}", self._table(flips))
            for (since, before), flips in reversed(found.items())
        ]

    def _table(self, flips: list[ledger.Flip]) -> nodes.table:
        rows = [
            [
                [*prose(self.env.app.guide_claims[f.claim].sentence), *self._mark(f.claim)],
                [nodes.Text(f"{ledger.MARKS[f.old]} {ledger.WORDS[f.old]}")],
                [nodes.Text(f"{ledger.MARKS[f.new]} {ledger.WORDS[f.new]}")],
                prose_of(f.reason),
            ]
            for f in flips
        ]
        return table(["Sentence", "Before", "Since", "Seen where it does not hold"], rows, (4, 1, 1, 3))


class FiveTutorials(_Ledger):
    """Each tutorial with the count of its verdicts and a table of all its rows."""

    def run(self) -> list[nodes.Node]:
        """Return a summary and a section for each tutorial."""
        self._watch(ledger.SOURCES)
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
                [*prose(row.evidence), *(node for name in row.claims for node in self._mark(name))],
                [place_link(row=row.id, page=row.page, heading=row.heading)],
            ]
            for row in rows
        ]
        head = ["What it says, in our words", "Verdict", "What we saw", "In this guide"]
        return _section(
            title, f"tutorial-{source}", nodes.paragraph(text=era), table(head, body, (4, 1, 5, 2))
        )


def _resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for node in list(doctree.findall(claim_links)):
        node.replace_self(_claim_links(app, docname, node["claim"], node["seeds"]))
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


def _claim_links(app: Sphinx, docname: str, claim: str, seeds: Sequence[str]) -> nodes.paragraph:
    pages = [name for name, cited in claims.citations(app.env).items() if claim in cited and name != docname]
    paragraph = nodes.paragraph(classes=["claim-links"])
    for i, page in enumerate(sorted(pages)):
        paragraph += nodes.Text(", " if i else "Cited in ")
        paragraph += make_refnode(app.builder, docname, page, None, nodes.Text(app.env.titles[page].astext()))
    if pages:
        paragraph += nodes.Text(". ")
    if seeds and _TUTORIALS in app.env.all_docs:
        paragraph += nodes.Text("Settles ")
        for i, seed in enumerate(seeds):
            paragraph += nodes.Text(", " if i else "")
            paragraph += make_refnode(app.builder, docname, _TUTORIALS, f"row-{seed}", nodes.Text(seed))
        paragraph += nodes.Text(" of the five tutorials.")
    return paragraph


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives with Sphinx."""
    app.add_node(claim_links)
    app.add_node(place_link)
    for name, directive in {
        "claims-table": ClaimsTable,
        "recorded": Recorded,
        "changes": Changes,
        "five-tutorials": FiveTutorials,
    }.items():
        app.add_directive(name, directive)
    app.add_css_file("ledger.css")
    app.add_js_file("ledger.js", loading_method="defer")
    app.connect("doctree-resolved", _resolve, priority=400)  # before the marks inside become links
    return {"parallel_read_safe": True, "parallel_write_safe": True}
