"""Docutils nodes that several directives build: tables, sections, text with code in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from docutils import nodes

Inline = Sequence[nodes.Node]  # what stands in a line: text, code, links


def inline(text: str) -> list[nodes.Node]:
    """Return text as nodes, with the parts between backticks as code.

    Example:
        >>> [type(node).__name__ for node in inline("call `f` twice")]
        ['Text', 'literal', 'Text']
    """
    parts = enumerate(text.split("`"))
    return [nodes.literal(text=part) if i % 2 else nodes.Text(part) for i, part in parts if part]


def paragraph(content: Inline, *classes: str) -> nodes.paragraph:
    """Return a paragraph of inline nodes."""
    return nodes.paragraph("", "", *content, classes=list(classes))


def table(
    head: Sequence[str], rows: Iterable[Sequence[str | Inline]], widths: Sequence[int], name: str
) -> nodes.table:
    """Return a table of the class `name`; each cell is text or inline nodes."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in widths), cols=len(head))
    group += nodes.thead("", _row(head))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group, classes=[name])


def _row(cells: Sequence[str | Inline]) -> nodes.row:
    contents = ([nodes.Text(cell)] if isinstance(cell, str) else cell for cell in cells)
    return nodes.row("", *(nodes.entry("", paragraph(content)) for content in contents))


def section(title: str | Inline, anchor: str, *children: nodes.Node) -> nodes.section:
    """Return a section with a title and an anchor."""
    heading = inline(title) if isinstance(title, str) else title
    return nodes.section("", nodes.title("", "", *heading), *children, ids=[anchor])


def definition(term: Inline, content: nodes.Node) -> nodes.definition_list_item:
    """Return a term with what is said about it."""
    return nodes.definition_list_item("", nodes.term("", "", *term), nodes.definition("", content))
