"""Render a page as plain Markdown, with a mark where each of its cells stands."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.builders import Builder
from sphinx.util.osutil import relative_uri
from sphinx_markdown_builder.contexts import IndentContext, SubContext, SubContextParams, WrappedContext
from sphinx_markdown_builder.translator import MarkdownTranslator, pushing_context, pushing_status

from _ext.directives import questions

_CELL = "\N{WHITE SQUARE}cell {}\N{WHITE SQUARE}"
_GAP_OR_CODE = re.compile(
    r"(?P<code>^(?P<fence> *(?:`{3,}|~{3,})).*?^(?P=fence)$|`+[^`\n]+`+)|(?<=\S) +(?=[.,;:](?:\s|$))",
    re.DOTALL | re.MULTILINE,
)
_CELLS = re.compile(_CELL.format(r"(\d+)"))


class PageTranslator(MarkdownTranslator):
    """Markdown for what the guide's pages hold beyond ordinary text: cells, boxes, definitions."""

    @pushing_status
    def visit_section(self, node: nodes.section) -> None:
        """Leave out the questions at the end, which only repeat the headings in other words."""
        if questions.ANCHOR in node["ids"]:
            raise nodes.SkipNode
        super().visit_section(node)

    def visit_container(self, node: nodes.container) -> None:
        """Leave a mark for a cell, whose code and outputs the caller has."""
        if node.get("nb_element") == "cell_code":
            self.add(_CELL.format(node["cell_index"]), prefix_eol=2, suffix_eol=2)
            raise nodes.SkipNode
        self.ensure_eol(2)

    def visit_admonition(self, node: nodes.admonition) -> None:
        """Write a box as a quotation that begins with its title."""
        title = node.next_node(nodes.title)
        self._push_context(IndentContext("> ", params=SubContextParams(2, 2)))
        if title is not None:
            self.add(f"**{title.astext()}**", suffix_eol=2)
            node.remove(title)

    def depart_admonition(self, _node: nodes.Element) -> None:
        self._pop_context()

    def visit_term(self, _node: nodes.term) -> None:
        self._push_context(SubContext(SubContextParams(2, 1)))
        self.add("**")

    def depart_term(self, _node: nodes.term) -> None:
        self.add("**")
        self._pop_context()

    @pushing_context
    def visit_reference(self, node: nodes.reference) -> None:
        """Write a link; one to another page leads to that page's Markdown."""
        if "claim-link" in node.get("classes", []):
            raise nodes.SkipNode
        if node.get("refuri") == "":  # to the page itself
            node["refuri"] = f"{self.builder.current_docname.rpartition('/')[2]}.md"
        elif "refuri" in node:
            node["refuri"] = re.sub(r"^([^:]*)\.html(?=#|$)", r"\1.md", node["refuri"])
        elif "refid" in node:
            node["refuri"] = f"#{node['refid']}"
        super().visit_reference(node)

    @pushing_context
    def visit_download_reference(self, node: nodes.Element) -> None:
        here = self.builder.get_target_uri(self.builder.current_docname)
        target = (
            relative_uri(here, f"_downloads/{node['filename']}")
            if "filename" in node
            else node.get("refuri", "")
        )
        self._push_context(WrappedContext("[", f"]({target})"))

    def visit_superscript(self, node: nodes.superscript) -> None:
        if "claim" in node.get("classes", []):
            raise nodes.SkipNode

    def visit_raw(self, _node: nodes.raw) -> None:
        """Leave out what is written for browsers."""
        raise nodes.SkipNode

    def unknown_visit(self, _node: nodes.Node) -> None:
        """Go on into what has no form of its own in Markdown."""

    def unknown_departure(self, _node: nodes.Node) -> None:
        """Leave a node: nothing ends."""

    depart_superscript = unknown_departure


def pieces(doctree: nodes.document, builder: Builder) -> list[str | int]:
    """Return the page in order: pieces of Markdown, and for each of its cells the index among all cells.

    Args:
        doctree: The resolved page; it is changed.
        builder: The builder that resolved it.
    """
    translator = PageTranslator(doctree, builder)
    doctree.walkabout(translator)
    parts = _CELLS.split(translator.astext())
    found = [int(part) if i % 2 else _tidy(part) for i, part in enumerate(parts)]
    return [part for part in found if part != ""]


def _tidy(text: str) -> str:
    """Close the gaps that a left-out mark leaves before a full stop, and those inside a quotation; code stays as it is."""
    text = _GAP_OR_CODE.sub(lambda match: match["code"] or "", text.strip())
    return re.sub(r"(?m)^(> ?.*)\n\n(?=> )", r"\1\n>\n", text)
