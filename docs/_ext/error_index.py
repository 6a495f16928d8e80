"""The directive `error-index`: entries of the error catalogue, from the data that `explain` uses.

Its argument names the groups that a page shows; without one it shows all::

    ```{error-index} values sizes leaks
    ```
"""

from __future__ import annotations

import re
import textwrap

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from jitguide._errors.entries import GROUPS, entries
from jitguide._errors.entry import Entry

from . import entry_programs, programs

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
    "devices": "Devices and sharding",
    "callbacks": "Callbacks and checks",
    "settings": "Settings",
    "silent": "Indices, branches and devices",
    "silent_types": "Numbers and types",
    "silent_tracing": "What happens while tracing only",
    "silent_costs": "Time and memory",
}


class ErrorIndex(SphinxDirective):
    """A section for each group, a subsection for each entry."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        groups = self.arguments[0].split() if self.arguments else GROUPS
        if unknown := [group for group in groups if group not in GROUPS]:
            raise self.error(f"The error catalogue has no group {unknown[0]!r}; it has {', '.join(GROUPS)}.")
        return [self._group(group) for group in groups]

    def _group(self, group: str) -> nodes.section:
        section = nodes.section(ids=[f"errors-{group.replace('_', '-')}"])
        section += nodes.title(text=_TITLES[group])
        section += [self._entry(entry) for entry in entries(group)]
        return section

    def _entry(self, entry: Entry) -> nodes.section:
        section = nodes.section(ids=[entry.key], classes=["error-entry"])
        section += nodes.title("", "", *self.parse_inline(entry.title)[0])
        if entry.error:
            section += nodes.paragraph("", "", nodes.literal(text=entry.error))
        if entry.patterns:
            message = " · ".join(map(readable, entry.patterns))
            section += nodes.paragraph("", "", nodes.Text(f"“{message}”"), classes=["error-message"])
        section += nodes.paragraph("", "", *self.parse_inline(entry.cause)[0])
        for example in entry.examples:
            section += self._code(example, "what goes wrong", "error-example", entry)
        section += self._code(entry.repair, "the repair", "error-repair", entry)
        section += nodes.paragraph("", "", nodes.strong(text="Cost: "), *self.parse_inline(entry.cost)[0])
        if entry.page != self.env.docname:
            section += nodes.paragraph("", "", *self.parse_inline(f"More: {{doc}}`/{entry.page}`")[0])
        return section

    def _code(self, code: str, label: str, kind: str, entry: Entry) -> nodes.container:
        text = textwrap.dedent(code).strip("\n")
        title = next(self.state.document.findall(nodes.title)).astext()
        origin = programs.origin(self.env.app, title, self.env.docname)
        whole = entry_programs.text(text, entry.devices, origin)
        return nodes.container(
            "",
            nodes.paragraph("", label, classes=["code-label"]),
            nodes.literal_block(text, text, language="python"),
            programs.program(text=whole, entry=entry_programs.key(text, entry.devices)),
            classes=[kind],
        )


def readable(pattern: str) -> str:
    r"""Return a regular expression of the catalogue as the words that it stands for.

    Example:
        >>> readable(r"lax\.\w+ requires (?:equal|the same) `?dtypes`?")
        'lax.… requires equal `dtypes`'
    """
    text = re.sub(r"\(\?:([^|)]*)[^)]*\)\??", r"\1", pattern)  # the first of several ways to say it
    text = re.sub(r"\\[wds][*+]|\.\*|\[[^\]]*\][*+]?", "…", text)
    text = re.sub(r"(?<!\\)([`\w])\?", r"\1", text)
    text = re.sub(r"\\([.()\[\]|?*+])", r"\1", text)
    return re.sub("…+", "…", re.sub(r"\\[bn]", "", text))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive with Sphinx."""
    app.add_directive("error-index", ErrorIndex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
