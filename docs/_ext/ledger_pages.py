"""The directives that show what was recorded: all claims, one claim, the changes between releases."""

from __future__ import annotations

import ast
import html
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

from . import claims, ledger
from .ledger_nodes import LedgerDirective, prose, prose_of, raw, section, spans, table

_TUTORIALS = "reference/five-tutorials"

# Topics whose file name makes no title.
TOPICS = {
    "apis gone": "APIs that are gone",
    "silent": "No error at all",
    "pytrees": "Arguments with structure",
}
TOPICS |= {
    "async and results": "Results, and waiting for them",
    "jaxpr": "Jaxprs",
    "in place": "Updates in place",
}


class claim_links(nodes.General, nodes.Element):  # noqa: N801 -- docutils names nodes in lower case
    """Stands for the pages that cite a claim until all are known."""


class ClaimsTable(LedgerDirective):
    """All claims, a section for each topic, each with its experiment folded away."""

    def run(self) -> list[nodes.Node]:
        """Return the sections between two tags that the filter looks for."""
        topics: dict[str, list[claims.Claim]] = {}
        for claim in self.env.app.guide_claims.values():
            topics.setdefault(claim.topic, []).append(claim)
        self.watch(claims.FOLDER, ledger.CLAIMS, *{c.path for found in topics.values() for c in found})
        releases = html.escape(" ".join(self.env.app.guide_recording.releases))
        opening = raw(f'<div class="claims-ledger" data-releases="{releases}"></div>')
        return [self._releases(), opening, *(self._topic(topic, topics[topic]) for topic in sorted(topics))]

    def _releases(self) -> nodes.table:
        recording = self.env.app.guide_recording
        rows = []
        for i, release in enumerate(recording.releases):
            count = Counter(row[i] for row in recording.verdicts.values())
            cells = [release, *recording.beside[release], *(str(count[short]) for short in ledger.WORDS)]
            rows.append([[nodes.Text(cell)] for cell in cells])
        verdicts = (f"{ledger.MARKS[short]} {word}" for short, word in ledger.WORDS.items())
        return table(["JAX", "Python", "NumPy", *verdicts], rows, (1, 1, 1, 1, 1, 1))

    def _topic(self, topic: str, found: list[claims.Claim]) -> nodes.section:
        topical = section(TOPICS.get(topic, topic.capitalize()), f"topic-{topic}")
        for path in sorted({claim.path for claim in found}):
            shared = _shared(path)
            topical += self._fold(f"What the experiments in {path.name} share", shared)
        for claim in found:
            topical += self._claim(claim)
        return topical

    def _fold(self, summary: str, code: str, *children: nodes.Node) -> list[nodes.Node]:
        block = nodes.literal_block(code, code, language="python")
        opening = raw(f"<details><summary>{html.escape(summary)}</summary>")
        return [opening, *children, block, raw("</details>")]

    def _claim(self, claim: claims.Claim) -> list[nodes.Node]:
        recording = self.env.app.guide_recording
        row = recording.verdicts.get(claim.id, "")
        mixed = len(set(row)) > 1 or row.startswith("0")
        mark = "✓" if set(row) == {"+"} else "◐" if row else "?"
        seen = nodes.paragraph("", f"{mark} {recording.seen(claim.id)}", classes=["claim-seen"])
        links = claim_links(claim=claim.id, seeds=claim.seeds)
        return [
            raw(f'<div class="claim-row" id="claim-{claim.id}" data-verdicts="{row}">'),
            nodes.paragraph("", "", *prose(claim.sentence), classes=["claim-sentence"]),
            seen,
            *([spans(recording, claim.id)] if mixed else []),
            *self._fold("Experiment", claim.code, links),
            raw("</div>"),
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


class Recorded(LedgerDirective):
    """The verdicts on one claim, release by release."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the sentence with its mark, and a table of the releases."""
        name, recording = self.arguments[0], self.env.app.guide_recording
        mark = self.mark(name)
        if not mark:
            return []
        sentence = nodes.paragraph("", "", *prose(self.env.app.guide_claims[name].sentence), *mark)
        return [nodes.container("", sentence, spans(recording, name), classes=["recorded"])]


class Changes(LedgerDirective):
    """Every change between neighbouring releases, a section for each release, newest first."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        self.watch(ledger.CLAIMS)
        found: dict[tuple[str, str], list[ledger.Flip]] = {}
        for flip in self.env.app.guide_recording.flips():
            if flip.claim in self.env.app.guide_claims:
                found.setdefault((flip.since, flip.before), []).append(flip)
        return [
            section(f"JAX {since}, compared with {before}", f"jax-{since}", self._table(flips))
            for (since, before), flips in reversed(found.items())
        ]

    def _table(self, flips: list[ledger.Flip]) -> nodes.table:
        rows = [
            [
                [*prose(self.env.app.guide_claims[f.claim].sentence), *self.mark(f.claim)],
                [nodes.Text(f"{ledger.MARKS[f.old]} {ledger.WORDS[f.old]}")],
                [nodes.Text(f"{ledger.MARKS[f.new]} {ledger.WORDS[f.new]}")],
                prose_of(f.reason),
            ]
            for f in flips
        ]
        return table(["Sentence", "Before", "Since", "Seen where it does not hold"], rows, (4, 1, 1, 3))


def _resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for node in list(doctree.findall(claim_links)):
        node.replace_self(_claim_links(app, docname, node["claim"], node["seeds"]))


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
    for name, directive in {
        "claims-table": ClaimsTable,
        "recorded": Recorded,
        "changes": Changes,
    }.items():
        app.add_directive(name, directive)
    app.add_css_file("ledger.css")
    app.add_js_file("ledger.js", loading_method="defer")
    app.connect("doctree-resolved", _resolve)
    app.setup_extension("_ext.ledger_tutorials")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
