"""Fold what answers an exercise or a prediction: prose, code and outputs, as one `<details>` below the box.

The answer is what stands below the box `exercise` or `predict`, up to the next heading, the next box of a lesson, a
line `---`, or a paragraph that begins with **Next:**. After `predict` the lesson goes on, so its answer also ends
before the first cell that stands after prose: it is the next cells and what is said about them.

A prediction may offer guesses, as a definition list at the end of its box; the right one begins with ✔::

    :::{predict}
    How many times does JAX trace it?

    Once
    : A new shape traces again.

    ✔ Twice
    : Once for each shape.
    :::

The box keeps the guesses, and the reasons open the answer. `predict.js` makes buttons of the guesses.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

CLASS = "guide-answer"
_RIGHT = "✔"
_BOXES = ("exercise", "predict", "question", "takeaway")


def fold(_app: Sphinx, doctree: nodes.document) -> None:
    """Put the answer below each box into a container of its own."""
    for box in list(doctree.findall(nodes.admonition)):
        kind = _box(box)
        if kind in ("exercise", "predict"):
            _wrap(box, kind)


def _box(node: nodes.Node) -> str:
    classes = node["classes"] if isinstance(node, nodes.admonition) else []
    return next((kind for kind in _BOXES if f"guide-{kind}" in classes), "")


def _wrap(box: nodes.admonition, kind: str) -> None:
    section = box.parent
    answer = nodes.container(classes=[CLASS])
    if kind == "predict" and isinstance(next(reversed(box.children), None), nodes.definition_list):
        answer += _guesses(box)
    answered = explained = False
    for node in section.children[section.index(box) + 1 :]:
        cell = node.get("nb_element") == "cell_code" if isinstance(node, nodes.Element) else False
        if _ends(node) or (kind == "predict" and cell and explained):
            break
        section.remove(node)
        answer += node
        explained |= answered and not cell and not isinstance(node, nodes.Invisible)
        answered |= cell
        if cell and "tag_solution" in node["classes"]:
            node.attributes.pop("hide_mode", None)  # it is folded with the rest
    following = section.index(box) + 1
    if following < len(section) and isinstance(section[following], nodes.transition):
        del section[following]
    if len(answer):
        section.insert(following, answer)


def _guesses(box: nodes.admonition) -> nodes.definition_list:
    """Leave only the guesses in the box, as a list, and return them with their reasons."""
    reasons = box.children[-1]
    reasons["classes"].append("guide-reasons")
    guesses = nodes.bullet_list(classes=["guide-guesses"])
    for item in reasons.findall(nodes.definition_list_item):
        guess = item[0].deepcopy()
        marked = next((text for text in guess.findall(nodes.Text) if text.startswith(_RIGHT)), None)
        if marked is not None:
            marked.parent.replace(marked, nodes.Text(marked.removeprefix(_RIGHT).lstrip()))
        item[0]["classes"].append("wrong" if marked is None else "right")
        guesses += nodes.list_item("", nodes.paragraph("", "", *guess.children))
    box.replace(reasons, guesses)
    return reasons


def _ends(node: nodes.Node) -> bool:
    if isinstance(node, nodes.section | nodes.transition) or _box(node):
        return True
    parts = node.children if isinstance(node, nodes.paragraph) else []
    # MyST puts an empty text before a strong one.
    first = next((part for part in parts if part.astext()), None)
    return isinstance(first, nodes.strong) and first.astext().startswith("Next")


class FoldAnswers(SphinxPostTransform):
    """Make a `<details>` of each answer, which needs no script; other formats show it."""

    default_priority = 198  # before MyST-NB hides cells
    formats = ("html",)

    def run(self, **_options: object) -> None:
        """Replace the containers."""
        for answer in list(self.document.findall(nodes.container)):
            if CLASS in answer["classes"]:
                opening = f'<details class="{CLASS}"><summary>Answer</summary>'
                answer.parent.replace(answer, [_html(opening), *answer.children, _html("</details>")])


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")
