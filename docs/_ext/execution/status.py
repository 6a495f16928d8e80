"""When and where pages ran: a line under each page, and the table of the status page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from _ext import build
from _ext.nodes import Inline, table

from . import fingerprint
from .store import Store

PAGE = "about/status"


class build_table(nodes.General, nodes.Element):  # noqa: N801 -- docutils names nodes in lower case
    """Stands for the table until every page has run."""


class BuildTable(SphinxDirective):
    """The executed pages with their cells, the claims that they cite, and seconds."""

    def run(self) -> list[nodes.Node]:
        """Return a node that becomes the table when all pages are read."""
        return [build_table()]


def rows(app: Sphinx) -> list[dict[str, object]]:
    """Return one row for each executed page of the site, in the order of their names."""
    store, domains = Store.of(app), app.env.domains
    cited = domains["claim"].data["citations"] if "claim" in domains else {}
    records = ((page, store.latest(page)) for page in sorted(app.env.all_docs))
    return [
        {
            "page": page,
            "cells": len(record["seconds"]),
            "claims": len(cited.get(page, ())),
            "seconds": round(sum(record["seconds"]), 1),
            "when": record["when"],
        }
        for page, record in records
        if record and record["seconds"]
    ]


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Add the line below an executed page, and fill in the table."""
    record = Store.of(app).latest(docname)
    if record and record["seconds"]:
        doctree += nodes.paragraph(text=_footnote(record), classes=["executed-on"])
    for node in list(doctree.findall(build_table)):
        node.replace_self(_table(app, docname))


def _footnote(record: dict) -> str:
    kind = ", ".join(sorted({kind for _, kind in build.devices()}))
    number, seconds = len(record["seconds"]), sum(record["seconds"])
    cells = "one cell" if number == 1 else f"{number} cells"
    return f"The {cells} of this page ran on {record['when']} with JAX {build.JAX} on {kind}, in {seconds:.1f} s."


def _table(app: Sphinx, docname: str) -> nodes.table:
    body: list[Sequence[str | Inline]] = []
    for row in rows(app):
        page = str(row["page"])
        uri = app.builder.get_relative_uri(docname, page)
        link = nodes.reference("", app.env.titles[page].astext(), internal=True, refuri=uri)
        body.append([[link], *(str(row[name]) for name in ("cells", "claims", "seconds", "when"))])
    return table(["Page", "Cells", "Claims", "Seconds", "Run on"], body, (5, 1, 1, 1, 2), "build-table")


def write_json(app: Sphinx, error: Exception | None) -> None:
    """Write the table as data beside the pages."""
    if error is None and app.builder.format == "html":
        text = json.dumps({"environment": fingerprint.environment(), "pages": rows(app)}, indent=1)
        Path(app.outdir, "status.json").write_text(text + "\n", "utf-8")
