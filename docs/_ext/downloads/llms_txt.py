"""Write `llms.txt` and `llms-full.txt`: the site for assistants, as an index and in full.

The format of the index is that of llmstxt.org: a title, a summary, and lists of links to Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from _ext import build

_SUMMARY = (
    "An executable guide to `jax.jit`. Every output was computed by the build that published it, every number "
    "was measured, and every fact about JAX has an experiment behind it."
)

_LONGEST_SUMMARY = 320  # characters
_SPACE_IN_CODE = "\0"


def note(app: Sphinx, doctree: nodes.document) -> None:
    """Keep the summary of a page that was read."""
    app.env.metadata[app.env.docname]["guide_summary"] = _summary(doctree)


def write(app: Sphinx, failure: Exception | None) -> None:
    """Write both files when the pages are written."""
    if failure or not build.is_site(app):
        return
    out, base = Path(app.outdir), app.config.html_baseurl.rstrip("/")
    index, full = [f"# {app.config.project}", f"> {_SUMMARY}"], []
    for top in _children(app, app.config.root_doc):
        links = [_link(app, page, base) for page in (top, *_below(app, top))]
        index.append(f"## {app.env.titles[top].astext()}\n\n" + "\n".join(links))
    for page in (app.config.root_doc, *_below(app, app.config.root_doc)):
        if out.joinpath(f"{page}.md").exists():
            full.append(f"<!-- {page} -->\n\n" + out.joinpath(f"{page}.md").read_text("utf-8").strip())
    out.joinpath("llms.txt").write_text("\n\n".join(index) + "\n", "utf-8")
    out.joinpath("llms-full.txt").write_text("\n\n---\n\n".join(full) + "\n", "utf-8")


def _children(app: Sphinx, page: str) -> list[str]:
    return app.env.toctree_includes.get(page, [])


def _below(app: Sphinx, page: str) -> Iterator[str]:
    """Yield the pages below a page, in reading order."""
    for child in _children(app, page):
        yield child
        yield from _below(app, child)


def _link(app: Sphinx, page: str, base: str) -> str:
    address = f"{base}/{page}.md" if base else f"{page}.md"
    return f"- [{app.env.titles[page].astext()}]({address}): {app.env.metadata[page]['guide_summary']}"


def _summary(doctree: nodes.document) -> str:
    """Return the sentences with which a page begins, as many as make up a line or two."""
    first = doctree.next_node(nodes.paragraph)
    if first is None:
        return ""
    listed = isinstance(first.parent, nodes.list_item)
    paragraphs = first.parent.parent.findall(nodes.paragraph) if listed else [first]
    words = " ".join(" ".join(map(_text, paragraphs)).split())
    sentences = re.split(r"(?<=[.?!])\s", re.sub(r" (?=[.,;:])", "", words))
    kept = sentences[:1]
    for sentence in sentences[1:]:
        if len(" ".join(kept)) + len(sentence) > _LONGEST_SUMMARY:
            break
        kept.append(sentence)
    return " ".join(kept).replace(_SPACE_IN_CODE, " ")


def _text(paragraph: nodes.Node) -> str:
    """Return the words of a paragraph; a gap before a full stop is one that a left-out mark leaves, except in code."""
    return "".join(
        text.replace(" ", _SPACE_IN_CODE) if isinstance(text.parent, nodes.literal) else text.astext()
        for text in paragraph.findall(nodes.Text)
    )
