"""Every row of the five tutorials has a verdict, an experiment where one is possible, and a living place."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]
HTML = ROOT / "docs" / "_build" / "html"
ROWS = json.loads((ROOT / "docs" / "_data" / "sources.json").read_text("utf-8"))
# How many rows each tutorial has: they are numbered without a gap.
COUNTS = {"S000": 34, "S001": 39, "S002": 103, "S003": 31, "S004": 36}
IDS = [f"{source}-{number:02d}" for source, count in COUNTS.items() for number in range(1, count + 1)]
# Statements about seconds: a page measures them, and no claim depends on timing.
MEASURED = {"S002-39", "S002-47", "S004-26", "S004-36"}
VERDICTS = {
    "holds",
    "holds in other words",
    "imprecise",
    "changed since",
    "API gone",
    "was never so",
    "not testable",
}


@cache
def headings(page):
    document = BeautifulSoup((HTML / f"{page}.html").read_text("utf-8"), "html.parser")
    for link in document.select("a.headerlink"):
        link.decompose()
    found = document.select("article h1, article h2, article h3, article h4")
    return {" ".join(heading.get_text().replace("✓", "").split()) for heading in found}


@cache
def anchors(page):
    document = BeautifulSoup((HTML / f"{page}.html").read_text("utf-8"), "html.parser")
    return {element["id"] for element in document.find_all(id=True)}


def test_every_row_is_there_once():
    assert Counter(row["id"] for row in ROWS) == Counter(IDS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_row_is_complete_and_its_place_is_alive(row):
    assert row["verdict"] in VERDICTS
    assert row["restated"]
    assert row["evidence"]
    assert row["claims"] or row["verdict"] == "not testable" or row["id"] in MEASURED
    assert row["heading"] in headings(row["page"]), f"{row['page']} has no heading {row['heading']!r}"


def test_the_page_of_the_five_tutorials_shows_every_row_and_every_claim_leads_to_the_ledger():
    assert {f"row-{name}" for name in IDS} <= anchors("about/five-tutorials")
    cited = {f"claim-{name}" for row in ROWS for name in row["claims"]}
    assert cited <= anchors("about/claims")


def test_a_dead_heading_is_found():
    with pytest.raises(AssertionError, match="has no heading"):
        test_a_row_is_complete_and_its_place_is_alive({**ROWS[0], "heading": "Nothing of the kind"})


def test_every_link_of_a_row_leads_to_its_heading():
    page = BeautifulSoup((HTML / "about" / "five-tutorials.html").read_text("utf-8"), "html.parser")
    for row in ROWS:
        link = page.find(id=f"row-{row['id']}").find_parent("tr").find_all("a")[-1]["href"]
        assert re.search(rf"{re.escape(row['page'].rsplit('/', 1)[-1])}\.html", link), row["id"]
