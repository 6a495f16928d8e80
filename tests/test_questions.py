"""The map of questions: each leads to one or two headings that exist."""

import re
from pathlib import Path

import pytest
from _ext.directives import questions

DOCS = Path(__file__).parents[1] / "docs"
ALL = questions.load()


def slugs(page):
    """Return the slugs of a page's headings, as MyST and GitHub make them."""
    text = re.sub(r"^(`{3,}|:{3,}).*?^\1", "", (DOCS / f"{page}.md").read_text("utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#{1,3} (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


def test_the_questions_are_many_and_differ():
    assert len(ALL) >= 87
    assert len({q.id for q in ALL}) == len(ALL)
    assert len({q.question for q in ALL}) == len(ALL)


@pytest.mark.parametrize("question", ALL, ids=[q.id for q in ALL])
def test_a_question_leads_to_headings_that_exist(question):
    assert 1 <= len(question.places) <= 2
    for place in question.places:
        page, _, slug = place.partition("#")
        assert (DOCS / f"{page}.md").is_file(), f"{question.id} names the page {page}, which does not exist"
        assert slug in slugs(page), f"{question.id} names #{slug}, but {page} has {sorted(slugs(page))}"


@pytest.mark.parametrize("question", ALL, ids=[q.id for q in ALL])
def test_a_question_is_a_question_of_a_known_topic(question):
    assert question.topic in questions.TOPICS
    assert 20 <= len(question.question) <= 400
    assert question.question.count("`") % 2 == 0
