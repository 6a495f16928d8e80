"""What the figures of pages drew, by machine: every build reads it, and one that is asked to writes its own.

A figure's cell gives what it draws a name that no other figure has, and says which variables hold the numbers::

    :recorded: calls-of-one-function
    :recorded-data: milliseconds

They are lists, dicts with text as keys, numbers and text. Each execution of a page stores them with the machine and a
digest of the code that measured them; `nox -s record` writes those of this machine to docs/_data/figures.
"""

from __future__ import annotations

import hashlib
import json
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from _ext.programs.slicer.dependencies import Dependencies
from _ext.programs.slicer.statements import parse

from . import fingerprint, notebooks
from .notebooks import PageError
from .store import Store

_log = logging.getLogger(__name__)
# Without these, a number means nothing.
_PROVENANCE = ("jax", "jaxlib", "platform", "device_kind", "device_count", "cpu", "cores", "settings")
_AGAIN = 'record it there again with `nox -s record -- "{name}" {page}`, or delete it from {file}'
_PROGRAM = """
import json
from jitguide import device_report

values = {name: names[name] for name in wanted}
text = json.dumps(values, allow_nan=False)
if json.loads(text) != values:
    raise TypeError("only lists, dicts with text as keys, numbers and text can be recorded")
print(json.dumps({"machine": device_report().to_dict(), "values": values}))
"""


def variables(cell: NotebookNode) -> list[str]:
    """Return the names of the variables that the figure of a cell draws; nothing where no build records them."""
    return [name.strip() for name in cell.metadata.get("recorded-data", "").split(",") if name.strip()]


def program(cell: NotebookNode) -> str:
    """Return code that prints the variables, and the machine, as JSON."""
    return f"exec({_PROGRAM!r}, {{'names': globals(), 'wanted': {variables(cell)!r}}})"


def experiments(notebook: NotebookNode) -> dict[str, tuple[int, str]]:
    """Return the line of each figure that is recorded, and a digest of the code that measures what it draws.

    Raises:
        PageError: Such a figure has no name.
    """
    found, statements, cells = {}, [], notebooks.code_cells(notebook)
    if not any(map(variables, cells)):
        return {}
    for number, cell in enumerate(cells):
        statements += parse(cell.source, number)
        if names := variables(cell):
            line = notebooks.line_of(notebook, cell)
            if "recorded" not in cell.metadata:
                raise PageError("a build records what the cell draws: name that with `:recorded:`.", line)
            chosen = Dependencies(statements, with_history=False).choose(parse(", ".join(names)))
            lines = [line for s in chosen for line in cells[s.cell].source.splitlines()[s.first - 1 : s.last]]
            text = "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            found[cell.metadata["recorded"]] = (line, digest)
    return found


def entries(notebook: NotebookNode, drawn: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what the figures of a page drew, with the day and with what identifies the experiment."""
    day, known = date.today().isoformat(), experiments(notebook)
    return {name: {**one, "date": day, "experiment": known[name][1]} for name, one in drawn.items()}


@cache
def recordings() -> dict[str, dict[str, Any]]:
    """Return what was recorded on other machines, by file."""
    files = sorted(fingerprint.FIGURES.glob("*.json"))
    return {f"docs/_data/figures/{path.name}": json.loads(path.read_text("utf-8")) for path in files}


def values(cell: NotebookNode, line: int, machine: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return for each other machine with the figure its name, where the numbers come from, and the cell's variables.

    Raises:
        PageError: A recording does not say on what it was made, or has other variables than the cell.
    """
    found, figure = [], cell.metadata["recorded"]
    for file, one in recordings().items():
        if one["name"] == machine or (entry := one["figures"].get(figure)) is None:
            continue
        told = {**entry.get("machine", {}), "date": entry.get("date")}
        if missing := [key for key in (*_PROVENANCE, "date") if told.get(key) is None]:
            message = f"{file} doesn't say on what {figure!r} was measured: {', '.join(missing)}."
            raise PageError(message, line)
        if sorted(entry["values"]) != sorted(variables(cell)):
            held, drawn = ", ".join(entry["values"]), ", ".join(variables(cell))
            message = f"the cell draws {drawn}, and {file} has {held} of {figure!r}: record it again."
            raise PageError(message, line)
        found.append((one["name"], _made_on(one["name"], told), entry["values"]))
    return found


def _made_on(name: str, told: dict[str, Any]) -> str:
    settings = "".join(f", {option}={value}" for option, value in told["settings"].items())
    return (
        f"{name}: {told['device_count']} × {told['device_kind']} ({told['platform']}), {told['cpu']}, "
        f"{told['cores']} cores, JAX {told['jax']}, {told['date']}{settings}."
    )


def check(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Write what this build measured, if it is asked to, and warn of recordings of another experiment."""
    if app.config.guide_figures:
        _write(Path(app.config.guide_figures), app, env)
    for page in sorted(env.all_docs):
        for figure, (line, digest) in env.metadata[page].get("guide_figures", {}).items():
            for file, one in recordings().items():
                if one["figures"].get(figure, {}).get("experiment", digest) != digest:
                    hint = _AGAIN.format(name=one["name"], page=page, file=file)
                    text = "the page measures %r in another way than when %s recorded it: %s."
                    location = f"{env.doc2path(page)}:{line}"
                    _log.warning(
                        text, figure, one["name"], hint, location=location, type="guide", subtype="recorded"
                    )
    return []


def _write(path: Path, app: Sphinx, env: BuildEnvironment) -> None:
    """Add what the current executions of the pages measured to the file of this machine."""
    new: dict[str, Any] = {}
    for page in app.config.guide_only or sorted(env.all_docs):  # those that were named, if some were
        record, (key, _) = Store.of(app).latest(page), env.metadata[page].get("guide_code", ("", ""))
        if record and record["key"] == key:
            new |= record.get("recorded", {})
    old = json.loads(path.read_text("utf-8"))["figures"] if path.exists() else {}
    data = {"name": app.config.guide_machine, "figures": dict(sorted({**old, **new}.items()))}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")
    recordings.cache_clear()
    _log.info("recorded %d figures in %s", len(new), path)
