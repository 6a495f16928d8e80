"""The directive `error-finder`: a box for an error message, which the browser looks up in the error catalogue.

The scripts in docs/_static/finder do there what `jitguide.explain` does with a text; this module hands them the
catalogue and the regular expressions of the package, so that there is one source of both. Nothing leaves the browser.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from _ext import ROOT, build
from _ext.execution import fingerprint

from .error_index import PREFIX

FILE = "_static/finder/catalogue.js"
_WITH_BOX = ("html", "dirhtml", "singlehtml")
_FLAGS = {re.MULTILINE: "m", re.IGNORECASE: "i", re.DOTALL: "s"}
_DEEPEST = 2  # `jax.numpy.linalg`; below are kernels and dialects, which take seconds to import
_BOX = """
<form class="error-finder" role="search">
<label for="error-finder-text">Paste a traceback, a warning or a log line, or describe the problem</label>
<textarea id="error-finder-text" rows="2" spellcheck="false" autocomplete="off" autocapitalize="off"
 placeholder="TracerBoolConversionError: Attempted boolean conversion of traced array …"></textarea>
<div class="error-finder-answer" role="status"></div>
</form>
"""


class ErrorFinder(SphinxDirective):
    """The box; without scripts it is not shown."""

    def run(self) -> list[nodes.Node]:
        """Return the box for pages in a browser."""
        return [nodes.raw("", _BOX, format="html")]


def data(homes: dict[str, str]) -> dict[str, Any]:
    """Return what the scripts need: the catalogue, the expressions that `explain` uses, and the names of JAX.

    `homes` names, for the key of each entry, the page that shows it; where none does, it is the page about it.
    """
    import jax  # a build without changes does not need it

    from jitguide import _text
    from jitguide._errors import patterns
    from jitguide._errors.entries import catalogue

    compiled = {
        name.removeprefix("_"): value
        for module in (_text, patterns)
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern)
    }
    entries = [
        {
            "key": entry.key,
            "title": entry.title,
            "error": entry.error,
            "cause": entry.cause,
            "fix": entry.fix,
            "cost": entry.cost,
            "page": entry.page,
            "home": homes.get(entry.key, entry.page.partition("#")[0]),
            "patterns": list(map(javascript, entry.patterns)),
            "beginnings": entry.beginnings,
            "source": list(map(javascript, entry.source)),
        }
        for entry in catalogue()
    ]
    expressions = {name: [javascript(p.pattern), _flags(p)] for name, p in compiled.items()}
    return {"expressions": expressions, "entries": entries, "names": public_names(jax)}


def public_names(module: ModuleType) -> dict[str, list[str]]:
    """Return the public names of JAX, and of its modules, by module: a browser cannot import it."""
    path, depth = getattr(module, "__path__", []), module.__name__.count(".")
    parts = [part for _, part, _ in pkgutil.iter_modules(path) if not part.startswith("_")]
    names = {name for name in (*dir(module), *parts) if not name.startswith("_")}
    found = {module.__name__: sorted(names)}
    for part in parts if depth < _DEEPEST else ():
        with warnings.catch_warnings(action="ignore"):
            try:
                found |= public_names(importlib.import_module(f"{module.__name__}.{part}"))
            except ImportError:  # of a package that this part needs
                continue
    return found


def javascript(pattern: str) -> str:
    r"""Return a regular expression of Python as JavaScript writes it.

    Example:
        >>> print(javascript("(?P<quote>['])x(?P=quote)"))
        (?<quote>['])x\k<quote>
    """
    return re.sub(r"\(\?P=(\w+)\)", r"\\k<\1>", pattern.replace("(?P<", "(?<"))


def _flags(pattern: re.Pattern[str]) -> str:
    return "g" + "".join(letter for flag, letter in _FLAGS.items() if pattern.flags & flag)


def write(app: Sphinx, failure: Exception | None) -> None:
    """Write the catalogue for the browser."""
    if failure or app.builder.name not in _WITH_BOX or getattr(app.builder, "idle", False):
        return
    labels = app.env.domains.standard_domain.labels
    homes = {
        name.removeprefix(PREFIX): page
        for name, (page, *_) in sorted(labels.items())
        if name.startswith(PREFIX)
    }
    target = Path(app.outdir, FILE)
    sources = fingerprint.sources(ROOT / "jitguide", Path(__file__).parent)
    with build.making(app, "errors", sources, homes) as new:
        if new or not target.exists():
            text = json.dumps(data(homes), ensure_ascii=False, separators=(",", ":"))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(f"GuideErrors.load({text});\n", "utf-8")
