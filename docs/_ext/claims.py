"""The role `claim`, which ties a sentence of the guide to the experiment that proves it.

    A static value is no tracer {claim}`static-value-is-no-tracer`.

The experiments are the tests in tests/claims; their markers are read without importing them. An unknown id is
an error of the build. The directive `claims-table` lists them all.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx.util.nodes import make_refnode

_log = logging.getLogger(__name__)
_FOLDER = Path(__file__).resolve().parents[2] / "tests" / "claims"
_LEDGER = "reference/claims"


@dataclass(frozen=True)
class Claim:
    """One sentence and the test that proves it."""

    id: str
    sentence: str
    topic: str
    code: str


def load(folder: Path = _FOLDER) -> dict[str, Claim]:
    """Return all claims by id, in the order of their files."""
    found = {}
    for path in sorted(folder.glob("test_*.py")):
        source = path.read_text("utf-8")
        topic = path.stem.removeprefix("test_").replace("_", " ")
        for node in ast.parse(source).body:
            marker = next((m for m in map(_marker, getattr(node, "decorator_list", [])) if m), None)
            if marker:
                code = "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])
                found[marker[0]] = Claim(*marker, topic, code)
    return found


def _marker(decorator: ast.expr) -> tuple[str, str] | None:
    """Return id and sentence where the decorator is `pytest.mark.claim(id, sentence)`."""
    match decorator:
        case ast.Call(func=ast.Attribute(attr="claim"), args=[first, second]):
            return ast.literal_eval(first), ast.literal_eval(second)
    return None


class ClaimRole(SphinxRole):
    """A small mark after a sentence that leads to the experiment."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a node that becomes a link when all pages are known."""
        claim = self.env.app.guide_claims.get(self.text)
        if claim is None:
            _log.warning(
                "unknown claim %r: no test in tests/claims has this id.",
                self.text,
                location=self.get_location(),
            )
            return [], []
        self.env.note_dependency(str(_FOLDER))
        return [claim_mark(claim=self.text, sentence=claim.sentence)], []


class claim_mark(nodes.Inline, nodes.Element):  # noqa: N801 -- docutils names nodes in lower case
    """Stands for the link until all pages are known."""


class ClaimsTable(SphinxDirective):
    """All claims, one section a topic, each with its experiment folded away."""

    def run(self) -> list[nodes.Node]:
        """Return a section of definitions for each topic."""
        topics: dict[str, list[Claim]] = {}
        for claim in self.env.app.guide_claims.values():
            topics.setdefault(claim.topic, []).append(claim)
            self.env.note_dependency(str(_FOLDER / f"test_{claim.topic.replace(' ', '_')}.py"))
        return [self._section(topic, claims) for topic, claims in topics.items()]

    def _section(self, topic: str, claims: list[Claim]) -> nodes.section:
        section = nodes.section(ids=[nodes.make_id(f"topic-{topic}")])
        section += nodes.title(text=topic.capitalize())
        for claim in claims:
            item = nodes.container(ids=[f"claim-{claim.id}"], classes=["claim-row"])
            item += nodes.paragraph("", "", nodes.Text(claim.sentence), classes=["claim-sentence"])
            fold = nodes.raw("", "<details><summary>Experiment</summary>", format="html")
            item += [
                fold,
                nodes.literal_block(claim.code, claim.code, language="python"),
                nodes.raw("", "</details>", format="html"),
            ]
            section += item
        return section


def _resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for mark in list(doctree.findall(claim_mark)):
        label = nodes.superscript("", "✓", classes=["claim"])
        if _LEDGER not in app.env.all_docs:
            mark.replace_self(label)
            continue
        link = make_refnode(
            app.builder, docname, _LEDGER, f"claim-{mark['claim']}", label, f"Proved: {mark['sentence']}"
        )
        link["classes"].append("claim-link")
        mark.replace_self(link)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register role and directive with Sphinx."""
    app.guide_claims = load()
    app.add_node(claim_mark)
    app.add_role("claim", ClaimRole())
    app.add_directive("claims-table", ClaimsTable)
    app.connect("doctree-resolved", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
