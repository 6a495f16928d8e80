"""The map of questions: each leads to one or two headings that exist."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from _ext.directives import questions
from sphinx.errors import ExtensionError

DOCS = Path(__file__).parents[1] / "docs"
ALL = questions.load()


@cache
def slugs(page):
    """Return the slugs of a page's headings, as MyST and GitHub make them."""
    text = re.sub(r"^(`{3,}|:{3,}).*?^\1", "", (DOCS / f"{page}.md").read_text("utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#{1,3} (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


def test_the_questions_are_many_and_differ():
    assert len(ALL) >= 87
    assert len({q.id for q in ALL}) == len(ALL)
    assert len({q.question for q in ALL}) == len(ALL)


def test_a_question_leads_to_headings_that_exist():
    for question in ALL:
        for page, _, slug in (place.partition("#") for place in question.places):
            assert (DOCS / f"{page}.md").is_file(), (
                f"{question.id} names the page {page}, which does not exist"
            )
            assert slug in slugs(page), f"{question.id} names #{slug}, but {page} has {sorted(slugs(page))}"


def test_an_unknown_topic_is_named_with_those_there_are(tmp_path):
    path = tmp_path / "questions.json"
    row = {"id": "TRC-99", "topic": "spells", "question": "Why?", "places": ["howto/timing"]}
    path.write_text(json.dumps([row]), "utf-8")
    with pytest.raises(ExtensionError, match=r"TRC-99 has the topic 'spells'\. Use one of tracing-errors, "):
        questions.load(path)


def test_a_question_is_a_question_with_one_or_two_places():
    for question in ALL:
        assert 20 <= len(question.question) <= 400, question.id
        assert question.question.count("`") % 2 == 0, question.id
        assert 1 <= len(question.places) <= 2, question.id
