"""The role `claim`, which ties a sentence of the guide to the experiment that proves it.

    A static value is no tracer {claim}`static-value-is-no-tracer`.

The experiments are the tests in tests/claims; their markers are read without importing them. Errors of the
build: an unknown id, a cited claim that was seen to fail on the JAX of the build, and a claim cited nowhere.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import jax
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

from . import ledger

_log = logging.getLogger(__name__)
FOLDER = Path(__file__).resolve().parents[2] / "tests" / "claims"
LEDGER = "reference/claims"


@dataclass(frozen=True)
class Claim:
    """One sentence, the test that proves it, and the rows of the five tutorials that it settles."""

    id: str
    sentence: str
    topic: str
    code: str
    seeds: tuple[str, ...]
    path: Path


def load(folder: Path = FOLDER) -> dict[str, Claim]:
    """Return all claims by id, in the order of their files."""
    found = {}
    for path in sorted(folder.glob("test_*.py")):
        source = path.read_text("utf-8")
        for node in ast.parse(source).body:
            marker = next((m for m in map(_marker, getattr(node, "decorator_list", [])) if m), None)
            if marker:
                name, sentence, seeds = marker
                code = "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])
                found[name] = Claim(name, sentence, topic_of(path), code, tuple(seeds.split()), path)
    return found


def topic_of(path: Path) -> str:
    """Return the topic that a file of claims is about.

    Example:
        >>> topic_of(Path("test_pages_control_flow.py"))
        'control flow'
    """
    return path.stem.removeprefix("test_").removeprefix("pages_").replace("_", " ")


def _marker(decorator: ast.expr) -> tuple[str, str, str] | None:
    """Return id, sentence and seeds where the decorator is `pytest.mark.claim(id, sentence, seeds=…)`."""
    match decorator:
        case ast.Call(func=ast.Attribute(attr="claim"), args=[first, second], keywords=keywords):
            seeds = next((ast.literal_eval(k.value) for k in keywords if k.arg == "seeds"), "")
            return ast.literal_eval(first), ast.literal_eval(second), seeds
    return None


class claim_mark(nodes.Inline, nodes.Element):  # noqa: N801 -- docutils names nodes in lower case
    """Stands for the link until all pages are known."""


class ClaimRole(SphinxRole):
    """A small mark after a sentence that leads to the experiment."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a node that becomes a link when all pages are known."""
        mark = cite(self.env, self.text, self.get_location())
        return [mark] if mark else [], []


def cite(env: BuildEnvironment, name: str, location: str) -> claim_mark | None:
    """Note that the page being read cites the claim; return its mark, or None where there is no such claim."""
    claim = env.app.guide_claims.get(name)
    if claim is None:
        _log.warning("unknown claim %r: no test in tests/claims has this id.", name, location=location)
        return None
    env.note_dependency(str(claim.path))
    env.note_dependency(str(ledger.CLAIMS))
    citations(env).setdefault(env.docname, {})[name] = location
    return claim_mark(claim=name)


def citations(env: BuildEnvironment) -> dict[str, dict[str, str]]:
    """Return the cited claims of each page, each with the place of a citation."""
    if not hasattr(env, "guide_citations"):
        env.guide_citations = {}
    return env.guide_citations


def _purge(_app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    citations(env).pop(docname, None)


def _merge(_app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
    citations(env).update({name: found for name, found in citations(other).items() if name in docnames})


def _check(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Tell of cited claims that fail here and of claims that nothing cites; have the ledger written again."""
    for cited in citations(env).values():
        for name, place in cited.items():
            if app.guide_recording.on(name, jax.__version__) == "-":
                _log.warning(
                    "the claim %r was seen to fail on JAX %s.", name, jax.__version__, location=place
                )
    if LEDGER not in env.all_docs:
        return []
    cited = set().union(*citations(env).values())
    for claim in app.guide_claims.values():
        if claim.id not in cited:
            _log.warning("no page cites the claim %r of %s.", claim.id, claim.path.name, location=LEDGER)
    return [LEDGER]


def _resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for mark in list(doctree.findall(claim_mark)):
        _bind(mark)
        claim = app.guide_claims[mark["claim"]]
        says = f"Proved: {claim.sentence} {app.guide_recording.seen(claim.id)}".replace("`", "")
        label = nodes.superscript("", "✓", classes=["claim"])
        if LEDGER in app.env.all_docs:
            link = make_refnode(app.builder, docname, LEDGER, f"claim-{claim.id}", label, says)
            link["classes"].append("claim-link")
            mark.replace_self(link)
        else:
            mark.replace_self(label)


def _bind(mark: claim_mark) -> None:
    """Take out the space before a mark, so that it never begins a line; the style sets it off."""
    place = mark.parent.index(mark)
    before = mark.parent[place - 1] if place else None
    if isinstance(before, nodes.Text):
        mark.parent[place - 1] = nodes.Text(before.astext().rstrip())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the role and its checks with Sphinx."""
    app.guide_claims = load()
    app.guide_recording = ledger.recording()
    app.add_node(claim_mark)
    app.add_role("claim", ClaimRole())
    app.connect("env-purge-doc", _purge)
    app.connect("env-merge-info", _merge)
    app.connect("env-updated", _check)
    app.connect("doctree-resolved", _resolve)
    app.setup_extension("_ext.ledger_pages")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
