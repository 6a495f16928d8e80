"""What is said of a page elsewhere: its description, once, to search engines, and its short name to its neighbours."""

from __future__ import annotations

import html
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx


def tell(_app: Sphinx, _page: str, _template: str, context: dict, doctree: nodes.document | None) -> None:
    """Give the template the description of a page, which `html_meta` in its front matter says."""
    found = doctree.findall(nodes.meta) if doctree else ()
    described = (node["content"] for node in found if node.get("name") == "description")
    context["guide_description"] = next(described, "")
    # docutils says the size of the view as Sphinx does.
    context["metatags"] = re.sub(r'<meta [^>]*name="viewport"[^>]*>\s*', "", context.get("metatags", ""))


def name_neighbours(app: Sphinx, page: str, _template: str, context: dict, _doctree: object) -> None:
    """Call the pages before and after a page as the navigation does: a title may be a whole question."""
    relations = getattr(app.builder, "relations", {}).get(page, (None, None, None))
    for side, neighbour in zip(("prev", "next"), relations[1:], strict=True):
        if context.get(side) and (name := _short_name(app, neighbour)):
            context[side] = {**context[side], "title": html.escape(name)}


def _short_name(app: Sphinx, page: str) -> str | None:
    trees = (tree for toc in app.env.tocs.values() for tree in toc.findall(addnodes.toctree))
    return next((name for tree in trees for name, target in tree["entries"] if target == page), None)
