"""What search engines and previews are told of a page: its description, once, and one size of the view."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx


def tell(_app: Sphinx, _page: str, _template: str, context: dict, doctree: nodes.document | None) -> None:
    """Give the template the description of a page, which `html_meta` in its front matter says."""
    found = doctree.findall(nodes.meta) if doctree else ()
    described = (node["content"] for node in found if node.get("name") == "description")
    context["guide_description"] = next(described, "")
    # docutils says the size of the view as Sphinx does.
    context["metatags"] = re.sub(r'<meta [^>]*name="viewport"[^>]*>\s*', "", context.get("metatags", ""))
