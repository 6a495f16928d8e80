"""The directive `flags`: options of JAX, with what the guide decided about each, from docs/_data/flags.toml.

Its argument is a group of that file, or `waived`::

    ```{flags} numbers
    ```

An option of JAX's registry that the file does not list is a warning, and so fails the build.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from functools import cache
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from _ext import DATA as _DATA
from _ext import build
from _ext.nodes import Inline, definition, table

_log = logging.getLogger(__name__)
DATA = _DATA / "flags.toml"
_HEAD = ("Option", "Default", "What it does", "A warm function")
_WIDTHS = (5, 2, 7, 3)
_VERDICTS = {
    "traces again": "traces again",
    "no": "does not notice",
    "stale": "keeps its executable",
    "start": "set it before the start",
    "special": "see the text",
}
_ASK = """
import enum, json, jax
print(json.dumps({k: v.name.lower() if isinstance(v, enum.Enum) else v for k, v in jax.config.values.items()}))
"""


@cache
def decisions() -> dict[str, Any]:
    """Return the groups of the file, each with its options, and `waived` with its reasons."""
    return tomllib.loads(DATA.read_text("utf-8"))


def listed() -> list[str]:
    """Return every option that the file decides about."""
    groups = dict(decisions())
    waived = groups.pop("waived")
    return [name for names in (*groups.values(), *waived.values()) for name in names]


@cache
def defaults() -> dict[str, Any]:
    """Return the options of the installed JAX with their defaults, whatever this environment sets."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    run = subprocess.run([sys.executable, "-c", _ASK], env=clean, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


class Flags(SphinxDirective):
    """A table of one group, or the list of what is waived and why."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table, or the list."""
        self.env.note_dependency(str(DATA))
        group = self.arguments[0]
        if group not in decisions():
            raise self.error(f"flags.toml has no group {group!r}; it has {', '.join(decisions())}.")
        options = decisions()[group]
        return [self._waived(options) if group == "waived" else self._table(options)]

    def _table(self, options: dict[str, dict[str, str]]) -> nodes.table:
        rows: list[list[str | Inline]] = []
        for name, option in options.items():
            default: nodes.Node = nodes.Text("not in this JAX")
            if name in defaults():
                default = nodes.literal(text=_show(defaults()[name]))
            text = " Not shown: ".join(option[key] for key in ("does", "unseen") if key in option)
            does = self.parse_inline(text, lineno=self.lineno)[0]
            rows.append([[nodes.literal(text=name)], [default], does, _VERDICTS[option["key"]]])
        return table(_HEAD, rows, _WIDTHS, "flags")

    def _waived(self, reasons: dict[str, list[str]]) -> nodes.definition_list:
        found = nodes.definition_list()
        for reason, names in reasons.items():
            here = [name for name in names if name in defaults()]
            text = nodes.paragraph()
            for name in here:
                text += [*([nodes.Text(", ")] if len(text) else []), nodes.literal(text=name)]
            if here:
                found += definition(self.parse_inline(reason, lineno=self.lineno)[0], text)
        return found


def _show(value: object) -> str:
    return repr(value) if value is None or not isinstance(value, str) or not value else value


def check(_app: Sphinx) -> None:
    """Warn of options of JAX that the file does not list."""
    known = set(listed())
    for name in sorted(set(build.options()) - known):
        _log.warning(
            "JAX has the option %r, and %s decides nothing about it: put it into a group, or waive it with a reason.",
            name,
            DATA.name,
            location="reference/flags",
        )
