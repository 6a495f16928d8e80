"""The site's search: what is looked through, and what is found first."""

import json
import re
import types
from pathlib import Path

import pytest
from _ext.directives import questions
from _ext.site import search_index
from docutils import nodes
from docutils.utils import new_document
from py_mini_racer import MiniRacer

SCRIPTS = Path(__file__).parents[1] / "docs" / "_static" / "search"
ROWS = [
    ["howto/a", "", "Every call recompiles", "", "A new lambda at each call is a new function.", ""],
    [
        "howto/a",
        "shapes",
        "Every call recompiles",
        "A new shape",
        "Each shape has a program.",
        "f(jnp.ones(3))",
    ],
    ["howto/b", "", "A leaked tracer", "", "UnexpectedTracerError tells of a side effect.", ""],
    ["about/claims", "", "Claims", "", "lambda function call new shape recompiles tracer", ""],
    ["learn/c", "", "Branches", "", "jax.lax.while_loop repeats while a condition holds.", "if x > 0: pass"],
]


@pytest.fixture(scope="module")
def v8():
    engine = MiniRacer()
    for name in ("minisearch.min.js", "engine.js"):
        engine.eval((SCRIPTS / name).read_text("utf-8"))
    engine.eval(f"GuideSearch.load({json.dumps(search_index.packed(ROWS))})")
    yield engine
    engine.close()


def find(v8, query):
    return v8.execute(f"GuideSearch.find({json.dumps(query)}).map(p => [p.page, p.sections[0].anchor])")


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("Why is my function recompiled for every lambda?", "howto/a"),
        ("jax.errors.UnexpectedTracerError: Encountered an unexpected tracer", "howto/b"),
        ("unexpected tracer error", "howto/b"),
        ("while_loop", "learn/c"),
        ("lax.while_loop", "learn/c"),
        ("recompilng", "howto/a"),  # a slip of the finger
        ("recompilation", "howto/a"),
        ("recompliation", "howto/a"),
    ],
)
def test_a_question_finds_its_page(v8, query, page):
    assert find(v8, query)[0][0] == page


def test_the_best_section_of_a_page_comes_first(v8):
    assert find(v8, "another shape compiles a program again")[0] == ["howto/a", "shapes"]


def test_lists_of_everything_come_after_pages(v8):
    pages = [page for page, _ in find(v8, "new lambda function call")]
    assert pages.index("howto/a") < pages.index("about/claims")


@pytest.mark.parametrize("query", ["", "   ", "the of and", "xyzzy", '"<script>', "(["])
def test_a_query_without_an_answer_finds_nothing(v8, query):
    assert find(v8, query) == []


def section(title, *children, name):
    return nodes.section("", nodes.title(text=title), *children, ids=[name])


def test_each_section_has_its_own_text_and_code():
    inner = section("Inner", nodes.paragraph(text="deep ✓."), nodes.literal_block(text="f(1)"), name="inner")
    hidden = nodes.raw("", "<b>no</b>", format="html")
    guesses = nodes.bullet_list(
        "", nodes.list_item("", nodes.paragraph(text="Three?")), classes=["guide-guesses"]
    )
    outer = section("Outer", nodes.paragraph(text="shallow"), hidden, guesses, inner, name="outer")
    document = new_document("page")
    document += outer
    assert search_index.rows(document, "a/page") == [
        ["a/page", "", "Outer", "", "shallow", ""],
        ["a/page", "inner", "Outer", "Inner", "deep.", "f(1)"],
    ]


def test_a_question_leads_to_its_answer():
    asked = next(q for q in questions.load() if q.places[0].startswith("howto/random-keys#"))
    page, _, slug = asked.places[0].partition("#")
    top = section("Random keys", section("Keys in a loop", name="keys"), name="top")
    top[-1]["slug"] = slug
    document = new_document(page)
    document += top
    env = types.SimpleNamespace(docname=page, note_dependency=lambda _: None)
    questions.append(types.SimpleNamespace(env=env), document)
    assert [page, "keys", "Random keys", asked.question, "", ""] in search_index.rows(document, page)


def test_the_index_and_the_browser_take_the_same_words_for_one():
    source = (SCRIPTS / "engine.js").read_text("utf-8")
    function = source[source.index("  function stem(word)") : source.index('  // "jax.errors.Tracer')]
    prose = (SCRIPTS.parents[2] / "CONTRIBUTING.md").read_text("utf-8")
    words = sorted({word.lower() for word in re.findall(r"[A-Za-z_][\w.]*\w", prose)})
    engine = MiniRacer()
    engine.eval(function)
    assert len(words) > 100
    assert [engine.execute(f"stem({json.dumps(word)})") for word in words] == list(
        map(search_index.stem, words)
    )
    engine.close()
