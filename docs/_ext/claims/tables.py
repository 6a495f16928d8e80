"""The directives that show the recorded verdicts: on all claims, on one claim, the changes between releases."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from _ext.nodes import Inline, inline, paragraph, section, table

from . import domain, experiments, recording
from .recording import MARKS, WORDS

_TUTORIALS = "about/five-tutorials"
PROOF = "claim-proof"  # what the page of all claims leaves to the pages of the topics
USUAL = "claim-usual"  # and there too: that a claim holds on each release, which goes without saying


class claim_links(nodes.General, nodes.Element):  # noqa: N801 -- docutils names nodes in lower case
    """Stands for the pages that cite a claim until all are known."""


class ClaimsDirective(SphinxDirective):
    """A directive that shows claims or their recorded verdicts."""

    @property
    def domain(self) -> domain.ClaimsDomain:
        """All claims with their verdicts."""
        return domain.of(self.env)

    def mark(self, name: str) -> list[nodes.Node]:
        """Return a space and the mark of the claim."""
        mark = domain.mark(name)
        self.set_source_info(mark)
        return [nodes.Text(" "), mark]

    def data(self, name: str) -> Path:
        """Return the path of a file of recorded data; the page is read again when it changes."""
        path = Path(self.config.guide_claims_data, name)
        self.env.note_dependency(str(path))
        return path


def anchor(topic: str) -> str:
    """Return the anchor of a topic on the page of all claims."""
    return nodes.make_id(f"topic-{topic}")


def _table(head: Sequence[str], rows: Sequence[Sequence[str | Inline]], widths: Sequence[int]) -> nodes.table:
    return table(head, rows, widths, "ledger-table")


def _verdict(short: str) -> str:
    return f"{MARKS[short]} {WORDS[short]}"


def _spans(recorded: recording.Recording, claim: str) -> nodes.table:
    """Return the verdicts on a claim, span by span."""
    rows = [(s.releases, _verdict(s.verdict), _reason(s.reason)) for s in recorded.spans(claim)]
    return _table(["JAX", "Verdict", "Seen there"], rows, (2, 2, 5))


def _reason(text: str) -> list[nodes.Node]:
    """Return a recorded reason as nodes: in words where pytest has words of its own, else the failed statement."""
    statement, _, values = text.partition(" – here: ")
    if raised := re.match(r"Failed: DID NOT RAISE (\w+)", values):
        return [nodes.Text("There it raises no "), nodes.literal(text=raised[1]), nodes.Text(".")]
    if values.startswith("Failed: DID NOT WARN"):
        return [nodes.Text("There it gives no warning.")]
    if message := re.match(r"Actual message: (.+)", values):
        return [nodes.Text(f"The message there: {message[1]}")]
    if not values:
        return [nodes.Text(text)]
    return [nodes.literal(text=statement), nodes.Text(f" – there: {values}")]


def _raw(text: str) -> nodes.raw:
    """Return a piece of HTML that other formats leave out."""
    return nodes.raw("", text, format="html")


class ClaimsTable(ClaimsDirective):
    """All claims, a section for each topic, each with its experiment folded away."""

    def run(self) -> list[nodes.Node]:
        """Return the sections between two tags that the filter looks for."""
        topics: dict[str, list[experiments.Claim]] = {}
        for claim in self.domain.claims.values():
            topics.setdefault(claim.topic, []).append(claim)
            self.env.note_dependency(str(claim.path))
        self.data(recording.CLAIMS)
        releases = html.escape(" ".join(self.domain.recording.releases))
        devices = html.escape("|".join(f"{one.name}, JAX {one.jax}" for one in self.domain.recording.devices))
        opening = _raw(
            f'<div class="claims-ledger" data-releases="{releases}" data-devices="{devices}"></div>'
        )
        sections = map(self._topic, topics.values())
        return [self._releases(), opening, *sorted(sections, key=lambda one: one[0].astext().casefold())]

    def _releases(self) -> nodes.table:
        recorded, rows = self.domain.recording, []
        for i, release in enumerate(recorded.releases):
            count = Counter(row[i] for row in recorded.verdicts.values())
            rows.append([release, *recorded.beside[release], *(str(count[short]) for short in WORDS)])
        for one in recorded.devices:
            count = Counter(found[one][0] for found in recorded.elsewhere.values() if one in found)
            rows.append([one.jax, *one.beside, one.name, *(str(count[short]) for short in WORDS)])
        head = ["JAX", "Python", "NumPy", "Devices", *map(_verdict, WORDS)]
        return _table(head, rows, [1] * len(head))

    def _topic(self, claims: list[experiments.Claim]) -> nodes.section:
        path = claims[0].path
        topical = section(experiments.title_of(path), anchor(claims[0].topic))
        shared = self._fold(f"What the experiments in {path.name} share", experiments.shared_code(path))
        topical += nodes.container("", *shared, classes=[PROOF])
        for claim in claims:
            topical += self._claim(claim)
        return topical

    def _fold(self, summary: str, code: str, *children: nodes.Node) -> list[nodes.Node]:
        block = nodes.literal_block(code, code, language="python")
        opening = _raw(f"<details><summary>{html.escape(summary)}</summary>")
        return [opening, *children, block, _raw("</details>")]

    def _claim(self, claim: experiments.Claim) -> list[nodes.Node]:
        recorded = self.domain.recording
        row = recorded.verdicts.get(claim.id, "")
        whole = len(recorded.spans(claim.id)) == 1 and row[0] in "+~"
        mark = (MARKS[row[0]] if whole else "◐") if row else "?"
        words = [recorded.in_words(claim.id), recorded.elsewhere_in_words(claim.id), claim.rests_on]
        said = " ".join([mark, *filter(None, words)])
        elsewhere = {one: short for one, (short, _) in recorded.elsewhere.get(claim.id, {}).items()}
        usual = [USUAL] if {*row, *elsewhere.values()} == {"+"} and not claim.rests_on else []
        there = "".join(elsewhere.get(one, " ") for one in recorded.devices)
        # Without one of them: it holds on all.
        verdicts = f' data-verdicts="{row}"' if not row or row.strip("+") else ""
        devices = f' data-devices="{there}"' if there.strip("+") else ""
        return [
            _raw(f'<div class="claim-row" id="claim-{claim.id}"{verdicts}{devices}>'),
            paragraph(inline(claim.sentence), "claim-sentence"),
            paragraph([nodes.Text(said)], "claim-seen", *usual),
            nodes.container(
                "",
                *([] if whole else [_spans(recorded, claim.id)]),
                *self._fold("Experiment", claim.code, claim_links(claim=claim.id, seeds=claim.seeds)),
                classes=[PROOF],
                claim=claim.id,
            ),
            _raw("</div>"),
        ]


class Recorded(ClaimsDirective):
    """The verdicts on one claim, release by release."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the sentence with its mark, and a table of the releases."""
        claim = self.domain.claims.get(self.arguments[0])
        sentence = inline(claim.sentence) if claim else []  # the mark of an unknown claim fails the build
        spans = _spans(self.domain.recording, self.arguments[0])
        return [
            nodes.container(
                "", paragraph([*sentence, *self.mark(self.arguments[0])]), spans, classes=["recorded"]
            )
        ]


class Changes(ClaimsDirective):
    """Every change between neighboring releases, a section for each release, newest first."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        self.data(recording.CLAIMS)
        found: dict[tuple[str, str], list[recording.Flip]] = {}
        for flip in self.domain.recording.flips():
            if flip.claim in self.domain.claims:
                found.setdefault((flip.since, flip.before), []).append(flip)
        return [
            section(f"JAX {since}, compared with {before}", nodes.make_id(f"jax-{since}"), self._flips(flips))
            for (since, before), flips in reversed(found.items())
        ]

    def _flips(self, flips: list[recording.Flip]) -> nodes.table:
        rows = [
            (
                [*inline(self.domain.claims[flip.claim].sentence), *self.mark(flip.claim)],
                _verdict(flip.old),
                _verdict(flip.new),
                _reason(flip.reason),
            )
            for flip in flips
        ]
        return _table(["Sentence", "Before", "Since", "Seen where it does not hold"], rows, (4, 1, 1, 3))


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace the nodes that stand for the links of each claim."""
    for node in list(doctree.findall(claim_links)):
        node.replace_self(_links(app, docname, node["claim"], node["seeds"]))


def _links(app: Sphinx, docname: str, claim: str, seeds: Sequence[str]) -> nodes.paragraph:
    def listed(links: list[nodes.reference]) -> list[nodes.Node]:
        return [part for i, link in enumerate(links) for part in (nodes.Text(", " if i else ""), link)]

    cited = domain.of(app.env).citations.items()
    pages = sorted(page for page, claims in cited if claim in claims and page != docname)
    titles = {page: nodes.Text(app.env.titles[page].astext()) for page in pages}
    found: list[nodes.Node] = []
    if pages:
        links = [make_refnode(app.builder, docname, page, None, titles[page]) for page in pages]
        found += [nodes.Text("Cited in "), *listed(links), nodes.Text(". ")]
    if seeds and _TUTORIALS in app.env.all_docs:
        links = [make_refnode(app.builder, docname, _TUTORIALS, f"row-{s}", nodes.Text(s)) for s in seeds]
        found += [nodes.Text("Settles "), *listed(links), nodes.Text(" of the five tutorials.")]
    return paragraph(found, "claim-links")
