"""The pages of the error index show each group of the catalogue once, and refuse a group that is not there."""

import re
from pathlib import Path

import pytest
from _ext.directives import error_index

from jitguide._errors.entries import GROUPS, catalogue, entries

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {path.stem: path.read_text("utf-8") for path in (DOCS / "reference").glob("*.md")}
SHOWN = {
    f"reference/{name}": groups[0].split()
    for name, text in PAGES.items()
    if (groups := re.findall(r"```{error-index} (.+)\n", text))
}


def test_each_group_is_on_one_page():
    shown = [group for groups in SHOWN.values() for group in groups]
    assert sorted(shown) == sorted(GROUPS)
    assert set(error_index._TITLES) == set(GROUPS)


def test_the_index_lists_what_raises_and_leads_to_the_page_that_shows_it():
    listed = [text.split() for text in re.findall(r"```{error-list} (.+)\n", PAGES["errors"])]
    assert listed == [SHOWN[f"reference/{name}"] for name in re.findall(r"<(errors-\w+)>", PAGES["errors"])]


def test_the_page_of_silent_pitfalls_shows_what_raises_nothing_and_the_others_what_does():
    for page, groups in SHOWN.items():
        for group in groups:
            silent = page == "reference/silent"
            assert {entry.error is None for entry in entries(group)} <= {silent}, group


def test_an_entry_without_a_lesson_names_the_page_that_shows_it():
    homes = {
        entry.key: page for page, groups in SHOWN.items() for group in groups for entry in entries(group)
    }
    for entry in catalogue():
        if entry.page.startswith("reference/errors"):
            assert entry.page == homes[entry.key], entry.key


@pytest.mark.parametrize(
    ("arguments", "groups"),
    [([], list(GROUPS)), (["loops silent"], ["loops", "silent"])],
)
def test_the_argument_names_the_groups(monkeypatch, arguments, groups):
    directive = object.__new__(error_index.ErrorIndex)
    directive.arguments = arguments
    monkeypatch.setattr(error_index.ErrorIndex, "_group", lambda self, group: group)
    assert directive.run() == groups


def test_a_message_is_shown_without_what_only_a_regular_expression_says():
    shown = [error_index.readable(pattern) for entry in catalogue() for pattern in entry.patterns]
    assert [text for text in shown if re.search(r"\(\?|\{\d|\\[\w.]|[])]\*", text)] == []


def test_a_group_that_is_not_there_is_refused(monkeypatch):
    directive = object.__new__(error_index.ErrorIndex)
    directive.arguments = ["loops snow"]
    monkeypatch.setattr(error_index.ErrorIndex, "error", lambda self, text: ValueError(text))
    with pytest.raises(ValueError, match="no group 'snow'; it has values, sizes"):
        directive.run()
