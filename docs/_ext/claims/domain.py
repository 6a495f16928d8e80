"""The Sphinx domain of claims: the role `claim` ties a sentence of the guide to the experiment that proves it.

    A static value is not a tracer {claim}`static-value-is-no-tracer`.

Errors of the build: an unknown id, a cited claim that was recorded to fail on the JAX of the build, and a claim
that no page cites.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.domains import Domain
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.logging import get_node_location
from sphinx.util.nodes import make_refnode

from _ext import build

from . import experiments, recording

_log = logging.getLogger(__name__)
LEDGER = "about/claims"
SITE = ("html", "dirhtml")  # where each topic has a page of its own


def page(topic: str) -> str:
    """Return the page of a topic on the site.

    Example:
        >>> page("in place")
        'about/claims-in-place'
    """
    return f"{LEDGER}-{nodes.make_id(topic)}"


def address(builder: Builder, page_from: str, claim: experiments.Claim) -> str:
    """Return the address of a claim on the page of its topic, seen from another page."""
    return f"{builder.get_relative_uri(page_from, page(claim.topic))}#claim-{claim.id}"


def mark(name: str) -> pending_xref:
    """Return a node that becomes the mark of the claim, a link to its experiment."""
    # Filled in with the link, so that no text of a page contains it.
    label = nodes.superscript(classes=["claim"])
    return pending_xref("", label, refdomain="claim", reftype="claim", reftarget=name, refwarn=True)


class ClaimRole(SphinxRole):
    """A small mark after a sentence that leads to the experiment."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a node that becomes a link when all pages are known."""
        node = mark(self.text)
        self.set_source_info(node)
        return [node], []


class ClaimsDomain(Domain):
    """All claims with their recorded verdicts, and which page cites which."""

    name = "claim"
    label = "Claims"
    initial_data = {"citations": {}}  # noqa: RUF012 -- declared so by Sphinx, which copies it
    data_version = 1
    dangling_warnings = {"claim": "unknown claim %(target)r: no test in tests/claims has this id."}  # noqa: RUF012

    @cached_property
    def claims(self) -> dict[str, experiments.Claim]:
        """All claims by id."""
        return experiments.load(Path(self.env.config.guide_claims))

    @cached_property
    def recording(self) -> recording.Recording:
        """The recorded verdicts on all claims."""
        return recording.load(Path(self.env.config.guide_claims_data, recording.CLAIMS))

    @property
    def citations(self) -> dict[str, dict[str, str]]:
        """The cited claims of each page, each with the place of a citation."""
        return self.data["citations"]

    def process_doc(self, env: BuildEnvironment, docname: str, document: nodes.document) -> None:
        """Note which claims a page cites."""
        for node in document.findall(pending_xref):
            claim = self.claims.get(node["reftarget"]) if node.get("refdomain") == self.name else None
            if claim:
                self.citations.setdefault(docname, {})[claim.id] = get_node_location(node) or docname
                env.note_dependency(str(claim.path), docname=docname)
                env.note_dependency(
                    str(Path(env.config.guide_claims_data, recording.CLAIMS)), docname=docname
                )

    def clear_doc(self, docname: str) -> None:
        """Forget the citations of a page."""
        self.citations.pop(docname, None)

    def merge_domaindata(self, docnames: AbstractSet[str], otherdata: dict[str, Any]) -> None:
        """Take over what another process read."""
        self.citations.update(
            {page: cited for page, cited in otherdata["citations"].items() if page in docnames}
        )

    def resolve_xref(
        self,
        env: BuildEnvironment,
        fromdocname: str,
        builder: Builder,
        typ: str,  # noqa: ARG002 -- declared so by Sphinx
        target: str,
        node: pending_xref,
        contnode: nodes.Element,
    ) -> nodes.reference | None:
        """Return the mark of a claim as a link to its experiment."""
        if (claim := self.claims.get(target)) is None:
            return None
        _bind(node)
        contnode += nodes.Text("✓")
        if LEDGER not in env.all_docs:
            return cast(nodes.reference, contnode)
        recorded = self.recording
        there = recorded.elsewhere_in_words(claim.id) if recorded.only_elsewhere(claim.id) else ""
        words = ["Proved:", claim.sentence, recorded.in_words(claim.id), there, claim.rests_on]
        title = " ".join(filter(None, words)).replace("`", "")
        if builder.name in SITE:
            to = address(builder, fromdocname, claim)
            link = nodes.reference("", "", contnode, internal=True, refuri=to, reftitle=title)
        else:
            link = make_refnode(builder, fromdocname, LEDGER, f"claim-{claim.id}", contnode, title)
        link["classes"].append("claim-link")
        return link

    def resolve_any_xref(self, *_: object) -> list[tuple[str, nodes.reference]]:
        """Nothing: a claim is cited by its own role, never by a link that might mean anything."""
        return []

    def check_consistency(self) -> None:
        """Warn of cited claims that fail on this JAX, and of claims that no page cites."""
        for page in self.citations.values():
            for name, place in page.items():
                if self.recording.on(name, build.JAX) == "-":
                    _log.warning(
                        "the claim %r was recorded to fail on JAX %s.", name, build.JAX, location=place
                    )
        for claim in self._uncited() if LEDGER in self.env.all_docs else ():
            _log.warning("no page cites the claim %r of %s.", claim.id, claim.path.name, location=LEDGER)

    def _uncited(self) -> Iterator[experiments.Claim]:
        cited = set().union(*self.citations.values())
        return (claim for claim in self.claims.values() if claim.id not in cited)


def of(env: BuildEnvironment) -> ClaimsDomain:
    """Return the domain of claims of a build."""
    return cast(ClaimsDomain, env.get_domain("claim"))


def _bind(node: pending_xref) -> None:
    """Remove the space before a mark, so that it never begins a line; the style sets it off."""
    place = node.parent.index(node)
    before = node.parent[place - 1] if place else None
    if isinstance(before, nodes.Text):
        node.parent[place - 1] = nodes.Text(before.astext().rstrip())


def files_changed(_app: Sphinx, env: BuildEnvironment, *_changes: object) -> list[str]:
    """Have the page of all claims read again when there is another file of them: Sphinx depends on files only."""
    names = sorted(path.name for path in Path(env.config.guide_claims).glob("test_*.py"))
    before, of(env).data["files"] = of(env).data.get("files"), names
    return [LEDGER] if before != names and LEDGER in env.all_docs else []
