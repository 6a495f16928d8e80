"""The questions that users asked: files of one form, with nothing in common."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

FILES = Path(__file__).parent / "questions"
HALVES = {name: json.loads((FILES / f"{name}.json").read_text("utf-8")) for name in ("asked", "held_out")}
EXAMS = {
    name: json.loads((FILES / f"{name}.json").read_text("utf-8"))
    for name in ("second_exam", "third_exam", "fourth_exam", "fifth_exam")
}
PARTS = {**HALVES, **EXAMS}
ALL = [question for part in PARTS.values() for question in part]
SOURCE = re.compile(r"[\w.-]+/[\w.-]+#\d+|https?://\S+")
TYPES = {
    "id": str,
    "topic": str,
    "question": str,
    "source": str,
    "year": int,
    "facts": list,
    "checked": str,
}


def test_a_question_has_its_fields():
    for question in ALL:
        told = question["id"]
        assert {name: type(value) for name, value in question.items()} == TYPES, told
        assert re.fullmatch(r"q[34567]-\d{3}", told)
        assert SOURCE.fullmatch(question["source"]), told
        assert 2022 <= question["year"] <= 2026, told
        assert 2 <= len(question["facts"]) <= 4, told
        texts = [question["topic"], question["question"], question["checked"], *question["facts"]]
        assert all(isinstance(text, str) and text and text == text.strip() for text in texts), told
        assert len(question["question"]) <= 250, told


@pytest.mark.parametrize("name", PARTS)
def test_a_file_is_sorted_and_written_in_one_way(name):
    half = PARTS[name]
    assert [q["id"] for q in half] == sorted(q["id"] for q in half)
    text = (FILES / f"{name}.json").read_text("utf-8")
    assert text == json.dumps(half, indent=1, ensure_ascii=False) + "\n"


def test_no_question_stands_twice():
    assert len({q["id"] for q in ALL}) == len(ALL)
    assert len({q["question"] for q in ALL}) == len(ALL)
    assert len({(q["source"], q["question"]) for q in ALL}) == len(ALL)


def test_both_halves_cover_every_topic():
    assert min(len(part) for name, part in PARTS.items() if name not in ("fourth_exam", "fifth_exam")) >= 80
    halves = [question for half in HALVES.values() for question in half]
    topics = {topic for topic, number in Counter(q["topic"] for q in halves).items() if number >= 4}
    assert len(topics) >= 17
    for half in (*HALVES.values(), EXAMS["second_exam"]):
        assert topics <= {q["topic"] for q in half}
