"""The built site as a visitor without a browser finds it."""

import gzip
import json
import os
import re
import zipfile
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]
HTML = ROOT / "docs" / "_build" / "html"
PAGES = sorted(p.relative_to(HTML).as_posix() for p in HTML.rglob("*.html") if "_static" not in p.parts)
LESSONS = [p for p in PAGES if p.startswith("learn/") and p != "learn/index.html"]
_GENERATED = {"genindex.html", "search.html", "404.html", "py-modindex.html"}
_LARGEST_PAGE = (
    640  # KiB of HTML, of which a server sends an eighth; what a phone on a slow line can still open
)


@cache
def soup(page):
    return BeautifulSoup((HTML / page).read_text("utf-8"), "html.parser")


@cache
def ids(path):
    return {element["id"] for element in soup(path.relative_to(HTML).as_posix()).find_all(id=True)}


def test_there_is_a_site():
    assert {"index.html", "about/status.html"} <= set(PAGES)
    assert LESSONS


@pytest.mark.parametrize("page", PAGES)
def test_every_link_inside_the_site_leads_somewhere(page):
    dead = []
    for link in soup(page).select("a[href]"):
        parts = urlsplit(link["href"])
        if parts.scheme or parts.netloc or link["href"] in ("#", ""):
            continue
        absolute = parts.path.startswith("/")  # as those of the page for what is missing
        folder = HTML if absolute else (HTML / page).parent
        path = folder / unquote(parts.path).lstrip("/") if parts.path else HTML / page
        target = Path(os.path.normpath(path))
        target = target / "index.html" if target.is_dir() else target
        if not target.exists() or (
            parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in ids(target)
        ):
            dead.append(link["href"])
    assert dead == []


@pytest.mark.parametrize("page", PAGES)
def test_nothing_of_the_building_machine_is_in_a_page(page):
    text = (HTML / page).read_text("utf-8")
    home = str(Path.home())
    for trace in (str(ROOT), "ipykernel_", "site-packages/", *([home + "/"] if len(home) > 1 else [])):
        assert trace not in text, f"{page} shows {trace!r}"
    assert not re.search(r"\b0x[0-9a-f]{9,16}\b", text)


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_fetched_from_elsewhere(page):
    outside = [
        element.get(attribute)
        for tag, attribute in (("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"))
        for element in soup(page).find_all(tag)
        if urlsplit(element.get(attribute) or "").netloc and element.get("rel") != ["canonical"]
    ]
    assert outside == []


@pytest.mark.parametrize("page", PAGES)
def test_pictures_say_what_they_show(page):
    document = soup(page)
    assert [i for i in document.find_all("img") if i.get("alt") is None] == []
    assert [s for s in document.select("svg[role=img]") if not (s.get("aria-label") or "").strip()] == []
    assert "@@alt@@" not in str(document)


@pytest.mark.parametrize("page", PAGES)
def test_headings_descend_without_gaps(page):
    levels = [int(h.name[1]) for h in soup(page).select("article h1, article h2, article h3, article h4")]
    if page in _GENERATED:
        return
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_light_enough(page):
    assert (HTML / page).stat().st_size / 1024 <= _LARGEST_PAGE


def packed(path):
    """Return the KiB of a file as a server sends it."""
    return len(gzip.compress(path.read_bytes())) / 1024


def test_a_first_visit_is_light():
    document = soup("index.html")
    links = [tag["href"] for tag in document.select("link[rel=stylesheet]")]
    scripts = [tag["src"] for tag in document.select("script[src]")]
    assert [name.partition("?")[0] for name in links] == [
        "_static/styles/site.css",
        "_static/styles/pages/index.css",  # the styles that its outputs brought
    ]
    assert "@import" not in (HTML / links[0].partition("?")[0]).read_text("utf-8")
    at_once = [tag["src"] for tag in document.select("script[src]") if not tag.has_attr("defer")]
    assert [name.partition("?")[0] for name in at_once] == ["_static/start.js"]
    loaded = (*links, *scripts, "index.html", "_static/fonts/inter.woff2")
    files = {HTML / name.partition("?")[0] for name in loaded}
    assert sum(map(packed, files)) <= 110


def test_the_only_font_is_small_and_its_own():
    fonts = [p for p in HTML.rglob("*") if p.suffix in (".woff2", ".woff", ".ttf") or "fontawesome" in p.name]
    assert [p.relative_to(HTML).as_posix() for p in fonts] == ["_static/fonts/inter.woff2"]
    assert packed(fonts[0]) <= 40
    faces = re.findall(r"@font-face[^}]*", (HTML / "_static/styles/site.css").read_text("utf-8"))
    assert [re.findall(r"url\(([^)]*)", face) for face in faces] == [['"../fonts/inter.woff2"']] * 2


def test_the_index_of_the_search_is_small():
    assert packed(HTML / "_static/search/sections.js") <= 200  # loaded at the first search


def test_every_cited_claim_has_a_small_file():
    cited = {a["href"].partition("#claim-")[2] for page in PAGES for a in soup(page).select("a.claim-link")}
    files = {path.stem: path.stat().st_size for path in (HTML / "_static/claims").glob("*.js")}
    assert cited - set(files) == set()
    assert max(files.values()) <= 15 * 1024


@pytest.mark.parametrize("page", PAGES)
def test_the_head_says_what_the_page_is(page):
    document = soup(page)
    assert "JAX" in document.title.get_text()
    assert len(document.select("meta[name=viewport]")) == 1
    if page not in _GENERATED:
        (described,) = document.select("meta[name=description]")
        assert 40 <= len(described["content"]) <= 300
    assert [
        str(img) for img in document.select("img.logo__image") if not (img.get("width") and img.get("height"))
    ] == []


@pytest.mark.parametrize("page", LESSONS)
def test_a_lesson_asks_answers_and_lets_practise(page):
    document = soup(page)
    summary = page == "learn/what-to-remember.html"
    for box in (
        ("question", "takeaway", "exercise") if summary else ("question", "predict", "takeaway", "exercise")
    ):
        assert document.select(f"div.guide-{box}"), f"{page} has no box {box!r}"
    assert document.select("div.cell.tag_solution div.cell_output"), f"{page} has no executed solution"


@pytest.mark.parametrize("page", PAGES)
def test_a_solution_is_folded_with_its_outputs(page):
    document = soup(page)
    open_ones = [c for c in document.select("div.cell.tag_solution") if not c.find_parent("details")]
    assert [str(cell)[:200] for cell in open_ones] == []
    folds = document.select("details.guide-answer")
    assert [fold for fold in folds if not fold.summary.get_text(strip=True) or fold.has_attr("open")] == []


@pytest.mark.parametrize("page", LESSONS)
def test_a_lesson_was_executed_and_says_when(page):
    assert soup(page).select_one("p.executed-on") is not None


@pytest.mark.parametrize("page", PAGES)
def test_cells_fail_only_where_they_say_so(page):
    for cell in soup(page).select("div.cell"):
        if cell.select_one("div.output.traceback"):
            assert "tag_raises-exception" in cell["class"]


def test_status_is_also_data():
    status = json.loads((HTML / "status.json").read_text("utf-8"))
    executed = {row["page"]: row for row in status["pages"]}
    assert {p.removesuffix(".html") for p in LESSONS} <= set(executed)
    assert all(row["cells"] > 0 for row in executed.values())
    assert status["environment"]["devices"]


@pytest.mark.parametrize("page", PAGES)
def test_every_icon_of_the_theme_is_drawn(page):
    icons = soup(page).select("i[class*=fa-], span[class*=fa-]")
    assert [str(icon) for icon in icons if not icon.svg] == []


@pytest.mark.parametrize("page", PAGES)
def test_what_opens_or_scrolls_can_be_named_and_reached(page):
    document = soup(page)
    openers = document.select("summary")
    assert [str(s) for s in openers if not (s.get_text(strip=True) or s.get("aria-label"))] == []
    assert [str(s) for s in openers if s.get_text(strip=True) and s.get("aria-label")] == []
    assert document.select(".guide-figure .drawing:not([tabindex])") == []
    assert [str(h) for h in document.select("th") if not h.get_text(strip=True)] == []


def test_the_site_offers_the_package_as_it_is():
    (link,) = soup("reference/api.html").select("a.guide-wheel")
    with zipfile.ZipFile(HTML / "reference" / link["href"]) as wheel:
        packed = {name: wheel.read(name) for name in wheel.namelist() if name.startswith("jitguide/")}
    sources = [path for path in (ROOT / "jitguide").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert packed == {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in sources}
