"""The pages of the error index show each group of the catalogue once, and refuse a group that is not there."""

import re
from pathlib import Path

import pytest
from _ext.directives import error_index

from jitguide._errors.entries import GROUPS, catalogue, entries

DOCS = Path(__file__).parents[1] / "docs"
SHOWN = {
    page: re.findall(r"```{error-index} (.+)\n", (DOCS / f"{page}.md").read_text("utf-8"))
    for page in ("reference/errors", "reference/silent")
}


def test_each_group_is_on_one_page():
    shown = [group for arguments in SHOWN.values() for text in arguments for group in text.split()]
    assert sorted(shown) == sorted(GROUPS)
    assert set(error_index._TITLES) == set(GROUPS)


def test_the_page_of_errors_shows_what_raises_and_the_other_what_does_not():
    for page, silent in (("reference/errors", False), ("reference/silent", True)):
        for group in SHOWN[page][0].split():
            assert {entry.error is None for entry in entries(group)} <= {silent}, group


def test_an_entry_without_a_lesson_names_the_index_that_it_is_in():
    for entry in catalogue():
        if entry.page in SHOWN:
            assert entry.page == ("reference/errors" if entry.error else "reference/silent"), entry.key


@pytest.mark.parametrize(
    ("arguments", "groups"),
    [([], list(GROUPS)), (["loops silent"], ["loops", "silent"])],
)
def test_the_argument_names_the_groups(monkeypatch, arguments, groups):
    directive = object.__new__(error_index.ErrorIndex)
    directive.arguments = arguments
    monkeypatch.setattr(error_index.ErrorIndex, "_group", lambda self, group: group)
    assert directive.run() == groups


def test_a_group_that_is_not_there_is_refused(monkeypatch):
    directive = object.__new__(error_index.ErrorIndex)
    directive.arguments = ["loops snow"]
    monkeypatch.setattr(error_index.ErrorIndex, "error", lambda self, text: ValueError(text))
    with pytest.raises(ValueError, match="no group 'snow'; it has values, sizes"):
        directive.run()
