"""The directive `decision-chart`: a nested list, drawn as a tree of questions, answers and advice.

An item with a list below it is a question, one without is advice. What an item begins with in bold is the answer
that leads to it::

    :::{decision-chart}
    - Does Python need the value while tracing?
      - **no** Leave it traced.
      - **yes** Does it have few values?
        - **yes** Make it static.
        - **no** Keep the decision in the program.
    :::

It stays a list in the page, so that it reads without the drawing: aloud, in Markdown, on paper and on a phone.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class DecisionChart(SphinxDirective):
    """A nested list whose items know whether they are questions or advice."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the list in a frame that the style sheet draws."""
        self.assert_has_content()
        content = self.parse_content_to_nodes()
        if len(content) != 1 or not isinstance(content[0], nodes.bullet_list) or len(content[0]) != 1:
            raise self.error("A decision chart is one nested list that begins with one question.")
        for item in content[0].findall(nodes.list_item):
            self._mark(item)
        return [nodes.container("", *content, classes=["decision-chart"])]

    def _mark(self, item: nodes.list_item) -> None:
        text = item[0]
        branches = [child for child in item.children[1:] if isinstance(child, nodes.bullet_list)]
        if branches and len(branches[0]) < 2:
            raise self.error(
                f"The question {text.astext()!r} has a single answer: there is nothing to decide."
            )
        item["classes"].append("chart-question" if branches else "chart-advice")
        first = next((part for part in text.children if part.astext().strip()), None)
        if isinstance(first, nodes.strong):
            first["classes"].append("chart-answer")
        elif item.parent.parent is not None and isinstance(item.parent.parent, nodes.list_item):
            raise self.error(
                f"{text.astext()!r} needs the answer that leads to it, in bold, at its beginning."
            )
