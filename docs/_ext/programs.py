"""Gives each block of a page a program: made, run and compared after the pages were executed.

What was chosen is kept beside the outputs, so that only the programs of changed cells run again. For a clone
that has never been built, docs/_data/rungs.json says which program behaved when it was last tried; the check of
the built site runs them all. `-D guide_rungs=record` tries all cells that are not recorded and writes the file.

A program stands below its block in HTML as `<details class="program">`, readable without scripts; `program.js` makes a
button of it. It is no text of the page: search does not find it, and other builders leave it out.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from . import entry_programs, ladder, pages
from .program_text import Origin
from .slicing import RUNGS, SliceError

_log = logging.getLogger(__name__)
_BUILDERS = ("html", "dirhtml")
_RECORD = Path(__file__).resolve().parents[1] / "_data" / "rungs.json"


class program(nodes.General, nodes.Element):  # noqa: N801 -- docutils names nodes in lower case
    """The program of the block before it, in the attribute `text`."""


def origin(app: Sphinx, title: str, docname: str) -> Origin:
    """Return what the first line of the page's programs names."""
    jax = next(p.split("==")[1] for p in app.guide_environment["packages"] if p.startswith("jax=="))
    return Origin(title, docname, jax)


def _make(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Make and run the programs that are missing; return the pages that have to be written for them."""
    if app.builder.name not in _BUILDERS:
        return []
    rules, waiting, made = ladder.rules(), [], {}
    recording = app.config.guide_rungs == "record"
    for name in sorted(env.all_docs):
        record = app.guide_store.latest(name)
        if record and record["outputs"] and (recording or not _is_current(app, name, record["key"], rules)):
            made[name] = _prepare(app, name, record, rules)
            waiting += made[name].pop("waiting", [])
    if waiting:
        _log.info("running %d programs", len(waiting))
    on_cpu = all(platform == "cpu" for platform, _ in app.guide_environment["devices"])
    ladder.climb(waiting, min(2, os.cpu_count() or 1) if on_cpu else 1)
    for name, found in made.items():
        _finish(app, name, found)
    if recording:
        _write_record(made)
    entry_programs.run(app)
    return list(made)


def _write_record(made: dict[str, dict]) -> None:
    """Keep for each cell of each page the rung whose program behaved."""
    cells = [cell for found in made.values() for cell in found["cells"].values() if not cell["why"]]
    rungs = {cell["signature"]: cell["rung"] for cell in cells}
    _RECORD.write_text(json.dumps(rungs, indent=0, sort_keys=True) + "\n", "utf-8")


def signature(climb: ladder.Climb) -> str:
    """Return a digest of the programs of a cell that is the same on every version of JAX."""
    texts = ["\n".join(line for line in text.splitlines() if line[:1] != "#") for _, text in climb.programs]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:20]


def _recorded() -> dict[str, int]:
    return json.loads(_RECORD.read_text("utf-8")) if _RECORD.exists() else {}


def _is_current(app: Sphinx, name: str, key: str, rules: str) -> bool:
    kept = app.guide_store.latest(_record_name(name))
    return bool(kept) and (kept["key"], kept["rules"]) == (key, rules) and not kept["failed"]


def _record_name(name: str) -> str:
    return f"programs/{name}"


def _prepare(app: Sphinx, name: str, record: dict, rules: str) -> dict:
    """Return the record of a page's programs, in it what still has to run."""
    path = Path(app.env.doc2path(name))
    notebook = pages.read(path.read_text("utf-8"), path, app.env.myst_config)
    code = pages.code_cells(notebook)
    found = {"key": record["key"], "rules": rules, "failed": False, "cells": {}, "waiting": []}
    if len(code) != len(record["outputs"]):
        return found | {"failed": True}  # the page failed; its older outputs belong to another text
    sources = [
        {"source": cell.source, "metadata": cell.metadata, "outputs": outputs}
        for cell, outputs in zip(code, record["outputs"], strict=True)
    ]
    try:
        climbs = ladder.prepare(sources, origin(app, app.env.titles[name].astext(), name))
    except SliceError as error:
        _warn(str(error), path, pages.line_of(notebook, code[error.cell]) + error.line)
        return found | {"failed": True}
    kept = app.guide_store.latest(_record_name(name)) or {"cells": {}, "rules": ""}
    known = {c["key"]: c for c in kept["cells"].values() if kept["rules"] == rules and not c["why"]}
    recorded = _recorded()
    for number, climb in climbs.items():
        place = next(i for i, cell in enumerate(notebook.cells) if cell is code[number])
        cell = {
            "key": climb.key,
            "signature": signature(climb),
            "line": pages.line_of(notebook, code[number]),
        }
        if old := known.get(climb.key):
            cell = old | cell
        else:
            cell["climb"] = climb
            found["waiting"] += [] if _take(climb, recorded.get(cell["signature"])) else [climb]
        found["cells"][str(place)] = cell
    return found


def _take(climb: ladder.Climb, rung: int | None) -> bool:
    """Choose the recorded program of a cell without running it; return whether there is one."""
    chosen = [program for program in climb.programs if program[0] == rung]
    if chosen:
        climb.programs, climb.why = chosen, ""
    return bool(chosen)


def _finish(app: Sphinx, name: str, found: dict) -> None:
    """Keep the programs of a page, and tell of those that do not behave."""
    path = Path(app.env.doc2path(name))
    for cell in found["cells"].values():
        climb = cell.pop("climb", None)
        if climb is None:
            continue
        rung, text = climb.programs[0]
        cell |= {"rung": rung, "text": text, "why": climb.why, "seconds": climb.seconds}
        if climb.why:
            found["failed"] = True
            _warn(f"no program of this cell behaves as the page: {climb.why}.", path, cell["line"])
        elif rung == RUNGS[-1] and len(climb.programs) == 1:
            _log.info("%s:%s: the program keeps everything before its cell", path, cell["line"])
    app.guide_store.save(_record_name(name), found)


def _warn(message: str, path: Path, line: int) -> None:
    _log.warning(message, location=f"{path}:{line}", type="guide", subtype="program")


def _insert(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put each program below the input of its cell, when the page is about to be written."""
    entry_programs.complete(app, doctree.findall(program))
    found = app.guide_store.latest(_record_name(docname)) if app.builder.name in _BUILDERS else None
    if not found:
        return
    for block in list(doctree.findall(nodes.container)):
        cell = found["cells"].get(str(block.get("cell_index")))
        if block.get("nb_element") == "cell_code" and cell and not cell["why"]:
            for source in block.findall(nodes.container):
                if source.get("nb_element") == "cell_code_source":
                    source.parent.insert(source.parent.index(source) + 1, program(text=cell["text"]))
                    break


def _visit(translator: object, node: program) -> None:
    if translator.builder.name not in _BUILDERS:  # a book has no buttons
        raise nodes.SkipNode
    text = node["text"]
    lines = len(text.splitlines())
    translator.body.append(
        f'<details class="program" data-pagefind-ignore><summary>As a program ({lines} lines)</summary>'
        f'<pre tabindex="0">{html.escape(text)}</pre></details>\n'
    )
    raise nodes.SkipNode


def _skip(_translator: object, _node: program) -> None:
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    others = dict.fromkeys(("latex", "text", "man", "texinfo"), (_skip, None))
    app.add_config_value("guide_rungs", "", "", [str])
    app.add_node(program, html=(_visit, None), **others)
    app.connect("env-updated", _make)
    app.connect("doctree-resolved", _insert)
    app.add_css_file("program.css")
    app.add_js_file("program.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
