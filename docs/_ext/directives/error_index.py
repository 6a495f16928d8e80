"""The directives `error-index` and `error-list`: entries of the error catalogue, from the data that `explain` uses.

Their argument names the groups that a page shows, or links to; without one they show all::

    ```{error-index} values sizes leaks
    ```
"""

from __future__ import annotations

import importlib
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

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

_parser = importlib.import_module("re._parser")  # Python's own, which has no public name and no types
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
        codes = [self._code(example, "what goes wrong", "error-example", entry) for example in entry.examples]
        found += codes[:1]
        if more := codes[1:]:
            opening = "<details><summary>More ways to get it</summary>"
            found += [
                nodes.raw("", opening, format="html"),
                *more,
                nodes.raw("", "</details>", format="html"),
            ]
        found += self._code(entry.fix, "the fix", "error-repair", entry)
        found += paragraph([nodes.strong(text="Cost: "), *self.parse_inline(entry.cost)[0]])
        page, mark, heading = entry.page.partition("#")
        if page != self.env.docname:
            found += paragraph(self.parse_inline(f"More: [](/{page}.md{mark}{heading})")[0])
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
    text = "".join(_words(_parser.parse(pattern)))
    text = re.sub(r"(?<=n)\0(?=t\b)", "'", text)
    text = re.sub(r"(?<=\w)\0(?=\w)", ".", text).replace("\0", "…")
    return re.sub("…[… ]*…", "…", " ".join(text.split()))


def _words(parsed: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    """Yield what a parsed expression stands for: of several ways to say it the first, and … for what may be anything."""
    parts = list(parsed)
    for kind, value in parts:
        match str(kind), value:
            case "LITERAL", code:
                yield chr(code)
            case "SUBPATTERN", (*_, inner):
                yield from _words(inner)
            case "BRANCH", (_, [first, *_]):
                yield from _words(first)
            case "MAX_REPEAT" | "MIN_REPEAT", (_, most, inner):
                yield from _words(inner) if most == 1 else {" ".join(_words(inner))}
            case "IN", [(first, code), *others] if str(first) == "LITERAL":
                yield chr(code) if all(str(other) == "LITERAL" for other, _ in others) else "…"
            case "IN", [(_, category)] if str(category) == "CATEGORY_SPACE":
                yield " "
            case "ANY", _:
                yield "\0" if len(parts) > 1 else "…"  # not repeated: most often a dot or a quote
            case "IN" | "NOT_LITERAL", _:
                yield "…"
            case "ASSERT", (1, inner) if (kind, value) == parts[-1]:
                yield from _words(inner)
