"""Questions about jit and where the guide answers them: a list at the end of each page, and an index of all.

docs/_data/questions.json holds for each question its topic, its text, and one or two places, each a page and
the slug of a heading: `howto/timing#the-first-call`. A place that does not exist fails the build.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from _ext import DATA
from _ext.nodes import definition, inline, paragraph, section

_log = logging.getLogger(__name__)
_DATA = DATA / "questions.json"
_TITLE = "Questions answered here"
ANCHOR = "questions-answered-here"
TOPICS = {
    "tracing-errors": "Tracer errors",
    "static-args": "Static arguments",
    "recompilation": "Recompilation",
    "compile-time": "Compile time",
    "benchmark-speed": "Speed and benchmarking",
    "control-flow-loops": "Control flow: loops and branches",
    "dynamic-shapes": "Dynamic shapes and indexing",
    "side-effects-printing": "Side effects, printing and callbacks",
    "closures-constants": "Closures and captured constants",
    "methods-classes": "Methods and classes",
    "pytrees-dataclasses": "Pytrees and dataclasses",
    "memory-donation": "Memory and buffer donation",
    "caching-aot-export": "Caches, ahead-of-time compilation and export",
    "numerics-dtypes": "Precision, dtypes and NaN",
    "randomness": "Random numbers",
    "debugging-testing": "Debugging and testing",
    "transformations-nesting": "jit with grad, vmap and other transformations",
    "devices-sharding-processes": "Devices, sharding, threads and processes",
    "inputs-signatures": "Arguments and signatures",
    "training-loops": "Training loops",
    "libraries": "Flax, Equinox, Optax and other frameworks",
    "gpus": "GPUs",
    "older-code": "Code written for older JAX",
    "notebooks-windows": "Notebooks and Windows",
}


@dataclass(frozen=True)
class Question:
    """One question in its asker's words, and the places `page#heading` that answer it."""

    id: str
    topic: str
    question: str
    places: tuple[str, ...]


@cache
def load(path: Path = _DATA) -> list[Question]:
    """Return all questions, in the order of the topics."""
    rows = json.loads(path.read_text("utf-8"))
    found = [Question(row["id"], row["topic"], row["question"], tuple(row["places"])) for row in rows]
    for question in found:
        if question.topic not in TOPICS:
            topics = ", ".join(TOPICS)
            raise ExtensionError(
                f"{path.name}: {question.id} has the topic {question.topic!r}. Use one of {topics}."
            )
    return sorted(found, key=lambda question: list(TOPICS).index(question.topic))


class QuestionIndex(SphinxDirective):
    """All questions by topic, each with links to the headings that answer it."""

    def run(self) -> list[nodes.Node]:
        """Return a section for each topic."""
        self.env.note_dependency(str(_DATA))
        topics: dict[str, list[Question]] = {}
        for question in load():
            topics.setdefault(question.topic, []).append(question)
        return [self._topic(topic, questions) for topic, questions in topics.items()]

    def _topic(self, topic: str, questions: list[Question]) -> nodes.section:
        answers = nodes.definition_list(classes=["question-list"])
        for question in questions:
            links = " · ".join(f"[](/{place.replace('#', '.md#')})" for place in question.places)
            answer = paragraph(self.parse_inline(links)[0])
            answers += definition(self.parse_inline(question.question)[0], answer)
        return section(TOPICS[topic], f"questions-{topic}", answers)


def append(app: Sphinx, doctree: nodes.document) -> None:
    """List the questions that a page answers at its end, folded: the search leads to them, few readers do."""
    page = app.env.docname
    here = [q for q in load() if any(place.startswith(f"{page}#") for place in q.places)]
    if not here:
        return
    app.env.note_dependency(str(_DATA))
    headings = {s.get("slug"): s for s in doctree.findall(nodes.section)}
    answers = nodes.bullet_list(classes=["question-list"])
    for question in here:
        slug = next(place for place in question.places if place.startswith(f"{page}#")).partition("#")[2]
        heading = headings.get(slug)
        if heading is None:
            _log.warning(
                "the question %s names no heading of this page: #%s", question.id, slug, location=page
            )
            continue
        link = nodes.reference("", "", *inline(question.question), internal=True, refid=heading["ids"][0])
        answers += nodes.list_item("", paragraph([link]))
    top = next(doctree.findall(nodes.section))
    count = "One question" if len(answers) == 1 else f"{len(answers)} questions"
    opening = f"<details><summary>{count}, in the words of those who asked</summary>"
    fold = [nodes.raw("", text, format="html") for text in (opening, "</details>")]
    top += section(_TITLE, ANCHOR, fold[0], answers, fold[1])
