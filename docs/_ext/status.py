"""Says when and where pages ran: a line under each page, and the table of the status page."""

from __future__ import annotations

import json
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_STATUS_PAGE = "status"


class build_table(nodes.General, nodes.Element):  # noqa: N801 -- docutils names nodes in lower case
    """Stands for the table until every page has run."""


class BuildTable(SphinxDirective):
    """The executed pages with their cells and seconds."""

    def run(self) -> list[nodes.Node]:
        """Return a node that becomes the table when all pages are read."""
        return [build_table()]


def rows(app: Sphinx) -> list[dict[str, object]]:
    """Return one row for each executed page of the site, in the order of their names."""
    found = []
    for name in sorted(app.env.all_docs):
        record = app.guide_store.latest(name)
        if record and record["seconds"]:
            seconds = record["seconds"]
            found.append(
                {
                    "page": name,
                    "cells": len(seconds),
                    "seconds": round(sum(seconds), 1),
                    "when": record["when"],
                }
            )
    return found


def _resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    record = app.guide_store.latest(docname)
    if record and record["seconds"]:
        doctree += nodes.paragraph(text=_footnote(app, record), classes=["executed-on"])
    for node in list(doctree.findall(build_table)):
        node.replace_self(_table(app, docname))


def _footnote(app: Sphinx, record: dict) -> str:
    jax = next(p.split("==")[1] for p in app.guide_environment["packages"] if p.startswith("jax=="))
    kind = ", ".join(sorted({kind for _, kind in app.guide_environment["devices"]}))
    number = len(record["seconds"])
    cells = "one cell" if number == 1 else f"{number} cells"
    return f"The {cells} of this page ran on {record['when']} with JAX {jax} on {kind}, in {sum(record['seconds']):.1f} s."


def _table(app: Sphinx, docname: str) -> nodes.table:
    head = ["Page", "Cells", "Seconds", "Run on"]
    table = nodes.table(classes=["build-table"])
    group = nodes.tgroup(cols=len(head))
    table += group
    group += [nodes.colspec(colwidth=w) for w in (5, 1, 1, 2)]
    group += nodes.thead("", _row([nodes.Text(text) for text in head]))
    body = nodes.tbody()
    for row in rows(app):
        uri = app.builder.get_relative_uri(docname, row["page"])
        title = nodes.Text(app.env.titles[row["page"]].astext())
        link = nodes.reference("", "", title, internal=True, refuri=uri)
        body += _row([link, *(nodes.Text(str(row[name])) for name in ("cells", "seconds", "when"))])
    group += body
    return table


def _row(contents: list[nodes.Node]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", content)) for content in contents))


def _rewrite_status(app: Sphinx, _env: object) -> list[str]:
    return [_STATUS_PAGE] if _STATUS_PAGE in app.env.all_docs else []


def _write_json(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        environment = {k: v for k, v in app.guide_environment.items() if k not in ("sources", "variables")}
        text = json.dumps({"environment": environment, "pages": rows(app)}, indent=1)
        (Path(app.outdir) / "status.json").write_text(text + "\n", "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive with Sphinx."""
    app.add_node(build_table)
    app.add_directive("build-table", BuildTable)
    app.connect("env-updated", _rewrite_status)
    app.connect("doctree-resolved", _resolve)
    app.connect("build-finished", _write_json)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
