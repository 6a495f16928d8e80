"""What the pages of the ledger are made of: tables, texts with code in them, marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from . import claims, ledger


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


def section(title: str, name: str, *children: nodes.Node) -> nodes.section:
    """Return a section with a title and an anchor."""
    return nodes.section("", nodes.title("", "", *prose(title)), *children, ids=[nodes.make_id(name)])


def raw(text: str) -> nodes.raw:
    """Return a piece of HTML that other formats leave out."""
    return nodes.raw("", text, format="html")


def spans(recording: ledger.Recording, claim: str) -> nodes.table:
    """Return the verdicts on a claim, span by span."""
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


class LedgerDirective(SphinxDirective):
    """What all directives here need."""

    def mark(self, name: str) -> list[nodes.Node]:
        """Return a space and the mark of the claim; nothing where there is no such claim."""
        mark = claims.cite(self.env, name, self.get_location())
        return [nodes.Text(" "), mark] if mark else []

    def watch(self, *paths: Path) -> None:
        """Have the page read again when one of the files changes."""
        for path in paths:
            self.env.note_dependency(str(path))
