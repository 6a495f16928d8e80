"""On the site each topic of claims has a page of its own, with the experiments; the page of all lists the sentences.

In one page they would have 70,000 elements and more than two megabytes. Other formats keep them together.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, cast

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

from _ext import build

from . import domain, tables

_whole: ContextVar[bool] = ContextVar("whole", default=False)  # whether the experiments are wanted


def shorten(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put a link in place of each experiment on the page of all claims."""
    if docname != domain.LEDGER or not build.is_site(app) or _whole.get():
        return
    claims = domain.of(app.env).claims
    for proof in list(doctree.findall(nodes.container)):
        if tables.PROOF not in proof["classes"]:
            continue
        if not (name := proof.get("claim")):
            proof.parent.remove(proof)
            continue
        address = domain.address(app.builder, docname, claims[name])
        link = nodes.reference("", "Experiment", internal=True, refuri=address, classes=["claim-link"])
        place = proof.parent.index(proof)
        sentence, seen = proof.parent[place - 2 : place]
        sentence += [nodes.Text(" "), link]
        if tables.USUAL in seen["classes"]:
            proof.parent.remove(seen)
        proof.parent.remove(proof)


def lighten(app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
    """Leave out tags around each word of code, and classes of it and of links, on the page of all claims: a sixth of it."""
    if page == domain.LEDGER and build.is_site(app):
        body = re.sub(r'<span class="pre">([^<]*)</span>', r"\1", context["body"])
        body = body.replace('"claim-link reference internal"', '"claim-link"')
        context["body"] = body.replace('"docutils literal notranslate"', '"literal notranslate"')


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each topic, where the page of all claims was written since."""
    if not build.is_site(app) or domain.LEDGER not in app.env.all_docs:
        return
    builder = cast(StandaloneHTMLBuilder, app.builder)
    topics = sorted({claim.topic for claim in domain.of(app.env).claims.values()})
    written = builder.get_output_path(domain.LEDGER)
    if written.exists() and all(_is_newer(builder.get_output_path(domain.page(t)), written) for t in topics):
        return
    token = _whole.set(True)
    try:
        doctree = app.env.get_and_resolve_doctree(domain.LEDGER, builder, tags=app.tags)
    finally:
        _whole.reset(token)
    sections = {section["ids"][0]: section for section in doctree.findall(nodes.section)}
    for topic in topics:
        section = sections[tables.anchor(topic)]
        section[0] += nodes.Text(": claims and their experiments")
        title = section[0].astext()
        described = f"{title} about jax.jit, each with its code and its verdicts by release of JAX."
        meta = f'<meta name="description" content="{html.escape(described)}" />'
        body = builder.render_partial(section)["fragment"]
        yield domain.page(topic), {"title": title, "body": body, "metatags": meta, "toc": ""}, "page.html"


def _is_newer(path: Any, other: Any) -> bool:
    return path.exists() and path.stat().st_mtime >= other.stat().st_mtime
