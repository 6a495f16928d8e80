"""Admonitions of the guide, such as question, takeaway and exercise.

They are MyST admonitions with a fixed title, so that every page looks and reads alike::

    :::{question}
    Why is the second call so much faster than the first?
    :::
"""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

TITLES = {
    "question": "Question",
    "predict": "Predict",
    "takeaway": "Takeaway",
    "exercise": "Exercise",
    "old-new": "Old tutorials say, and what happens today",
    "docs-say": "JAX's own pages say, and what happens",
    "in-short": "In short",
}


class GuideAdmonition(SphinxDirective):
    """An admonition whose class is its own name; an argument replaces the title."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = {"name": directives.unchanged}  # noqa: RUF012 -- docutils declares it so

    def run(self) -> list[nodes.Node]:
        """Return the admonition with its parsed content."""
        self.assert_has_content()
        title = TITLES[self.name]
        if self.arguments:
            title = f"{title}: {self.arguments[0]}" if self.name == "exercise" else self.arguments[0]
        box = nodes.admonition(classes=["admonition", "guide-box", f"guide-{self.name}"])
        box += nodes.title("", "", *self.parse_inline(title)[0])
        box += self.parse_content_to_nodes()
        self.add_name(box)
        return [box]
