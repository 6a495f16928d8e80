"""The docutils node of a program, as which it stands below its block."""

from __future__ import annotations

import html

from docutils import nodes
from sphinx.writers.html5 import HTML5Translator

_SITE = ("html", "dirhtml")


class program(nodes.General, nodes.Element):  # noqa: N801 -- docutils names nodes in lower case
    """The program of the block before it, in the attribute `text`."""


def visit(translator: HTML5Translator, node: program) -> None:
    """Write a program as `<details>`, readable without scripts; `program.js` makes a button of it."""
    if translator.builder.name not in _SITE:  # a book has no buttons
        raise nodes.SkipNode
    text = node["text"]
    translator.body.append(
        f'<details class="program"><summary>As a program ({len(text.splitlines())} lines)</summary>'
        f'<pre tabindex="0">{html.escape(text)}</pre></details>\n'
    )
    raise nodes.SkipNode


def skip(_translator: nodes.NodeVisitor, _node: program) -> None:
    """Leave the program out."""
    raise nodes.SkipNode
