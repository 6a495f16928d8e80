"""The directives `error-index` and `error-list`: entries of the error catalogue, from the data that `explain` uses.

Their argument names the groups that a page shows, or links to; without one they show all::

    ```{error-index} values sizes leaks
    ```
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from _ext import build
from _ext.nodes import paragraph, section
from _ext.programs import catalogue
from _ext.programs.node import program
from _ext.programs.render import Origin

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

    from jitguide._errors.entry import Entry

PREFIX = "error-entry-"  # with the key of an entry, the label of where it is shown
_REFERENCE = "error-entry"

_TITLES = {
    "values": "A value is needed while tracing",
    "sizes": "A size is needed while tracing",
    "leaks": "Leaked tracers",
    "arguments": "Arguments",
    "results": "Results, and Python's protocols",
    "arrays": "Arrays and shapes",
    "loops": "Loops",
    "branches": "Branches",
    "compiled": "Compiled ahead of time, and donation",
    "devices": "Devices and processes",
    "shardings": "Meshes, shardings and `shard_map`",
    "trees": "Pytrees, mapped axes and derivatives",
    "keys": "Random keys",
    "versions": "Versions and installation",
    "callbacks": "Callbacks and checks",
    "settings": "Settings",
    "silent": "Indices, branches and devices",
    "silent_types": "Numbers and types",
    "silent_tracing": "What happens while tracing only",
    "silent_costs": "Time and memory",
}


class _OfGroups(SphinxDirective):
    """What shows groups of the catalogue."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return a node for each group."""
        from jitguide._errors.entries import GROUPS  # imports JAX, which other pages do not need

        groups = self.arguments[0].split() if self.arguments else GROUPS
        if unknown := [group for group in groups if group not in GROUPS]:
            raise self.error(f"The error catalogue has no group {unknown[0]!r}; it has {', '.join(GROUPS)}.")
        return [self._group(group) for group in groups]

    def _group(self, group: str) -> nodes.Element:
        raise NotImplementedError


class ErrorList(_OfGroups):
    """A list for each group: what happened, its class and its message, with a link to the entry."""

    def _group(self, group: str) -> nodes.Element:
        from jitguide._errors.entries import entries

        return nodes.bullet_list("", *map(self._item, entries(group)), classes=["error-list"])

    def _item(self, entry: Entry) -> nodes.list_item:
        title = nodes.inline("", "", *self.parse_inline(entry.title)[0])
        of = {"reftype": _REFERENCE, "reftarget": entry.key, "refdoc": self.env.docname}
        link = pending_xref("", title, refwarn=True, **of)
        name = [nodes.Text(" "), nodes.literal(text=entry.error)] if entry.error else []
        return nodes.list_item("", paragraph([link, *name]), *_message(entry))


class ErrorIndex(_OfGroups):
    """A section for each group, a subsection for each entry."""

    def _group(self, group: str) -> nodes.section:
        from jitguide._errors.entries import entries

        anchor = f"errors-{group.replace('_', '-')}"
        return section(_TITLES[group], anchor, *map(self._entry, entries(group)))

    def _entry(self, entry: Entry) -> nodes.section:
        found = section(self.parse_inline(entry.title)[0], entry.key)
        found["classes"].append("error-entry")
        self.env.domains.standard_domain.note_hyperlink_target(
            PREFIX + entry.key, self.env.docname, entry.key, entry.title
        )
        if entry.error:
            found += paragraph([nodes.literal(text=entry.error)])
        found += _message(entry)
        found += paragraph(self.parse_inline(entry.cause)[0])
        for example in entry.examples:
            found += self._code(example, "what goes wrong", "error-example", entry)
        found += self._code(entry.fix, "the fix", "error-repair", entry)
        found += paragraph([nodes.strong(text="Cost: "), *self.parse_inline(entry.cost)[0]])
        if entry.page != self.env.docname:
            found += paragraph(self.parse_inline(f"More: {{doc}}`/{entry.page}`")[0])
        return found

    def _code(self, code: str, label: str, kind: str, entry: Entry) -> nodes.container:
        text = textwrap.dedent(code).strip("\n")
        title = next(self.state.document.findall(nodes.title)).astext()
        whole = catalogue.text(text, entry.devices, Origin(title, self.env.docname, build.JAX))
        return nodes.container(
            "",
            nodes.paragraph("", label, classes=["code-label"]),
            nodes.literal_block(text, text, language="python"),
            program(text=whole, entry=catalogue.key(text, entry.devices)),
            classes=[kind],
        )


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Return the link of a list to an entry: Sphinx's own would lose the code in its title."""
    known = env.domains.standard_domain.labels.get(PREFIX + node["reftarget"])
    if node["reftype"] != _REFERENCE or known is None:
        return None
    page, anchor, _ = known
    return make_refnode(app.builder, node["refdoc"], page, anchor, content)


def _message(entry: Entry) -> list[nodes.Node]:
    message = " · ".join(map(readable, entry.patterns))
    return [paragraph([nodes.Text(f"“{message}”")], "error-message")] if message else []


def readable(pattern: str) -> str:
    r"""Return a regular expression of the catalogue as the words that it stands for.

    Example:
        >>> readable(r"lax\.\w+ requires (?:equal|the same) `?dtypes`?")
        'lax.… requires equal `dtypes`'
    """
    word = r"(?:\\.|[^|()\\])*"  # no alternative and no group; escaped, they are text
    text = re.sub(
        rf"\(\?<?[=!]{word}(?:\|{word})*(?:\(\?:{word}(?:\|{word})*\){word})*\)", "", pattern
    )  # look-arounds
    while (first := re.sub(rf"\(\?:({word})(?:\|{word})*\)\??", r"\1", text)) != text:
        text = first  # the first of several ways to say it, inner ones first
    text = re.sub(rf"^({word})\|.*", r"\1", text)
    text = re.sub(r"\\[wds][*+]?|\.\*|\[[^\]]*\][*+]?", "…", text)
    text = re.sub(r"(?<!\\)([`'\w])\?", r"\1", text)
    text = re.sub(r"\\([.()\[\]|?*+])", r"\1", text)
    return re.sub("…+", "…", re.sub(r"\\[bn]", "", text)).strip()
