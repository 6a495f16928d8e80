"""The index of the site's search: the text of the pages, a row for each section.

Sphinx's own search shows only pages that contain every word of a query, so it finds nothing for a question
asked in a sentence. This one ranks sections by MiniSearch (in docs/_static/search) and needs no server.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

from _ext import DOCS, build
from _ext.directives import questions

VERSION = 5  # of the rows that are kept of each page
_SECTIONS = "_static/search/sections.js"
# They list what other pages explain, and would be a third of the index.
_LEFT_OUT = ("claims", "five-tutorials", "questions", "what-changed")
_NAMES = re.compile(r"[A-Za-z_][\w.]*\w")
_OF_JAX = re.compile(r"^(?:jax|jnp|lax|np|jitguide)\.|[a-z][A-Z]")
_SHOWN = 90  # letters of a section that an excerpt can show
# What a reader of a page does not read as its text: guesses, most of which are wrong, and titles of other pages.
_OF_NO_SECTION = {"guide-guesses", "guide-reasons", "error-list"}
_ENDINGS = [
    (re.compile(ending), kept)
    for ending, kept in [
        (r"(?:at)?ions?$", ""), (r"(ss)es$", r"\1"), (r"ies$", "y"), (r"([^su])s$", r"\1"), (r"(ing|ed|er)$", ""),
        (r"(.)\1$", r"\1"), (r"e$", ""),
    ]
]  # fmt: skip
_SKIPPED = (nodes.comment, nodes.raw, nodes.substitution_definition, nodes.target)


def rows(doctree: nodes.document, page: str) -> list[list[str]]:
    """Return for each section of a page: page, anchor, the page's title, its own title, its text, its code.

    A question that the page answers has a row of its own, which leads to the answer.
    """
    found, page_title = [], ""
    for section in doctree.findall(nodes.section):
        title = next((child.astext() for child in section if isinstance(child, nodes.title)), "")
        top = not isinstance(section.parent, nodes.section)
        page_title = title if top else page_title
        if questions.ANCHOR in section["ids"]:
            found += [[page, anchor, page_title, asked, "", ""] for asked, anchor in _asked(section)]
            continue
        text, code = _own(section)
        if text or code:
            anchor = "" if top else section["ids"][0]
            found.append([page, anchor, page_title, "" if top else title, " ".join(text), "\n".join(code)])
    return found


def _asked(section: nodes.section) -> list[tuple[str, str]]:
    """Return the questions of a list, each with the anchor of its answer."""
    return [(link.astext(), link["refid"]) for link in section.findall(nodes.reference)]


def _own(section: nodes.section) -> tuple[list[str], list[str]]:
    """Return the paragraphs and the code blocks of a section without those of the sections in it."""
    text: list[str] = []
    code: list[str] = []
    waiting = [child for child in section if not isinstance(child, (nodes.section, nodes.title))]
    while waiting:
        node = waiting.pop(0)
        classes = node.get("classes", ()) if isinstance(node, nodes.Element) else ()
        if isinstance(node, (*_SKIPPED, nodes.section)) or _OF_NO_SECTION.intersection(classes):
            continue
        if isinstance(node, nodes.literal_block):
            code.append(node.astext())
        elif isinstance(node, nodes.TextElement) or not node.children:
            text.append(re.sub(r" +(?=[.,;:](?:\s|$))", "", node.astext().replace("✓", "")).strip())
        else:
            waiting = [*node.children, *waiting]
    return [t for t in text if t], code


def _short(row: list[str]) -> list[str]:
    r"""Return a row whose text ends early; the words that this costs, and JAX's names in the code, are found only.

    Example:
        >>> _short(["p", "", "Page", "", "Call f.", "y = jnp.ones(3)\nraise NoError"])[-2:]
        ['Call f.', 'NoError jnp.ones']
        >>> [len(part) for part in _short(["p", "", "Page", "", "word other " * 99, ""])[-2:]]
        [87, 0]
    """
    *others, text, code = row
    end = len(text) if len(text) <= _SHOWN else max(text.rfind(" ", 0, _SHOWN), 0)
    shown, rest = text[:end], text[end:]
    said = {stem(word.lower()) for word in _NAMES.findall(shown)}
    names = [name for name in _NAMES.findall(code) if _OF_JAX.search(name)]
    words = {_plain(word) for word in (*names, *_NAMES.findall(rest)) if len(word) > 2}
    more = {stem(word): word for word in sorted(words, reverse=True) if word.lower() not in _ignored()}
    return [*others, shown, " ".join(sorted(more[key] for key in more.keys() - said))]


def stem(word: str) -> str:
    """Return a word without its ending: of the words with one stem, the index needs one.

    The search in the browser has the same rules, in `engine.js`.

    Example:
        >>> [stem(word) for word in ("recompiles", "recompiling", "recompilation", "mask", "jnp.ones")]
        ['recompil', 'recompil', 'recompil', 'mask', 'jnp.ones']
    """
    if len(word) < 5 or re.search(r"[_.\d]", word):
        return word
    for ending, kept in _ENDINGS:
        word = ending.sub(kept, word, count=1)
    return word


def _plain(word: str) -> str:
    """Return a word in lower case, except for a name that the search takes apart at its capitals."""
    return word if re.search(r"[a-z][A-Z]", word) else word.lower()


@cache
def _ignored() -> frozenset[str]:
    """Return the words that the search in the browser leaves out of questions and of its index.

    Example:
        >>> sorted(_ignored() & {"the", "for", "compile"})
        ['for', 'the']
    """
    engine = (DOCS / "_static" / "search" / "engine.js").read_text("utf-8")
    listed = engine.partition("const EMPTY =")[2].partition(";")[0]
    return frozenset(word for text in re.findall('"(.*?)"', listed) for word in text.split())


def packed(rows: list[list[str]]) -> dict[str, Any]:
    """Return the words that are found only, and the rows, which number them, because numbers take less room.

    The words are sorted by how many rows have them, and a row has the gaps between its numbers: small numbers
    pack best.

    Example:
        >>> packed([["p", "", "Page", "", "Text", "jit vmap"], ["p", "a", "", "A", "", "vmap"]])
        {'words': 'vmap jit', 'rows': [['p', '', 'Page', '', 'Text', [0, 1]], ['p', 'a', '', 'A', '', [0]]]}
    """
    counts = Counter(word for *_, words in rows for word in words.split())
    number = {word: place for place, (word, _) in enumerate(counts.most_common())}
    ordered = [sorted(number[word] for word in set(words.split())) for *_, words in rows]
    gaps = [[after - before for before, after in pairwise([0, *numbers])] for numbers in ordered]
    return {
        "words": " ".join(number),
        "rows": [[*row[:-1], has] for row, has in zip(rows, gaps, strict=True)],
    }


def replace_search(app: Sphinx) -> None:
    """Replace Sphinx's own search."""
    if build.is_site(app):
        # Neither Sphinx's index nor its page: _templates/search.html replaces it.
        cast(StandaloneHTMLBuilder, app.builder).search = False
        app.config.html_additional_pages = {**app.config.html_additional_pages, "search": "search.html"}


def note(app: Sphinx, doctree: nodes.document) -> None:
    """Keep the rows of a page that was read."""
    app.env.metadata[app.env.docname]["guide_rows"] = rows(doctree, app.env.docname)


def write(app: Sphinx, failure: Exception | None) -> None:
    """Write the index when all pages are read."""
    if failure or not build.is_site(app):
        return
    pages = (page for page in sorted(app.env.found_docs) if page.rpartition("/")[2] not in _LEFT_OUT)
    found = [_short(row) for page in pages for row in app.env.metadata[page]["guide_rows"]]
    # What a twentieth of the sections say finds none of them.
    counts = Counter(word for row in found for word in row[5].split())
    for row in found:
        row[5] = " ".join(word for word in row[5].split() if counts[word] <= max(3, len(found) // 20))
    target = Path(app.outdir, _SECTIONS)
    target.parent.mkdir(parents=True, exist_ok=True)
    for before, row in zip(found[-2::-1], found[:0:-1], strict=True):
        if before[2] == row[2]:
            row[2] = ""  # the page's title stands in its first row
    text = json.dumps(packed(found), ensure_ascii=False, separators=(",", ":"))
    target.write_text(f"GuideSearch.load({text});\n", "utf-8")
