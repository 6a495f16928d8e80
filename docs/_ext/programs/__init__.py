"""Give each block of a page a program: made, run and compared after the pages were executed.

The chosen programs are stored beside the outputs, so that only the programs of changed cells run again. For a
clone that has never been built, docs/_data/program_levels.json records which program behaved when it was last
tried; the check of the built site runs them all. `-D guide_levels=record` tries all cells that are not recorded
and writes the file.

A program is not part of a page's text: search does not find it, and builders other than those of the site leave
it out.
"""

from __future__ import annotations

import json

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata

from _ext import DATA, build
from _ext.execution import notebooks
from _ext.execution.store import Store

from . import candidates, catalogue, node
from .candidates import Candidate
from .render import Origin
from .slicer import LEVELS
from .slicer.statements import SliceError

_log = logging.getLogger(__name__)
_RECORD = DATA / "program_levels.json"


def _make(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Make and run the programs that are missing; return the pages that have to be written for them."""
    if not build.is_site(app):
        return []
    rules, recording = candidates.rules(), app.config.guide_levels == "record"
    made: dict[str, dict] = {}
    new: dict[tuple[str, str], Candidate] = {}
    for name in sorted(env.all_docs):
        record = Store.of(app).latest(name)
        if record and record["outputs"] and (recording or not _is_current(app, name, record["key"], rules)):
            made[name], found = _prepare(app, name, record, rules)
            new |= {(name, place): candidate for place, candidate in found.items()}
    waiting = [candidate for candidate in new.values() if candidate.problem]
    if waiting:
        _log.info("running %d programs", len(waiting))
    candidates.choose(waiting, build.workers())
    for (name, place), candidate in new.items():
        _finish(app, name, made[name], made[name]["cells"][place], candidate)
    for name, found in made.items():
        Store.of(app).save(_record_name(name), found)
    if recording:
        cells = [cell for found in made.values() for cell in found["cells"].values() if not cell["problem"]]
        levels = _recorded() if app.config.guide_only else {}  # of a few pages, the others keep theirs
        levels |= {cell["signature"]: cell["level"] for cell in cells}
        _RECORD.write_text(json.dumps(levels, indent=0, sort_keys=True) + "\n", "utf-8")
    catalogue.run(app)
    return list(made)


def _is_current(app: Sphinx, name: str, key: str, rules: str) -> bool:
    stored = Store.of(app).latest(_record_name(name))
    return stored is not None and (stored["key"], stored["rules"], stored["failed"]) == (key, rules, False)


def _recorded() -> dict[str, int]:
    return json.loads(_RECORD.read_text("utf-8")) if _RECORD.exists() else {}


def _record_name(name: str) -> str:
    return f"programs/{name}"


def _prepare(app: Sphinx, name: str, record: dict, rules: str) -> tuple[dict, dict[str, Candidate]]:
    """Return the record of a page's programs, and its cells for which none was stored yet."""
    notebook = notebooks.read_page(app, name)
    code = notebooks.code_cells(notebook)
    page = {"key": record["key"], "rules": rules, "failed": False, "cells": {}}
    if len(code) != len(record["outputs"]):
        return page | {"failed": True}, {}  # the page failed; its older outputs belong to another text
    notebooks.fill(notebook, record["outputs"])
    try:
        found = candidates.prepare(code, Origin(app.env.titles[name].astext(), name, build.JAX))
    except SliceError as error:
        _warn(app, name, notebooks.line_of(notebook, code[error.cell]) + error.line, str(error))
        return page | {"failed": True}, {}
    stored = Store.of(app).latest(_record_name(name)) or {"cells": {}, "rules": ""}
    known = {c["key"]: c for c in stored["cells"].values() if stored["rules"] == rules and not c["problem"]}
    recorded, new = _recorded(), {}
    for number, candidate in found.items():
        place = str(next(i for i, cell in enumerate(notebook.cells) if cell is code[number]))
        cell = {"key": candidate.key, "signature": candidate.signature}
        page["cells"][place] = (
            known.get(candidate.key, {}) | cell | {"line": notebooks.line_of(notebook, code[number])}
        )
        if candidate.key not in known:
            candidate.take(recorded.get(candidate.signature))
            new[place] = candidate
    return page, new


def _finish(app: Sphinx, name: str, page: dict, cell: dict, candidate: Candidate) -> None:
    """Note the chosen program of a cell in the record of its page, and report one that does not behave."""
    cell |= {"level": candidate.level, "text": candidate.text}
    cell |= {"problem": candidate.problem, "seconds": candidate.seconds}
    if candidate.problem:
        page["failed"] = True
        _warn(app, name, cell["line"], f"no program of this cell behaves as the page: {candidate.problem}.")
    elif candidate.level == LEVELS[-1]:
        _log.info("%s:%s: the program keeps everything before its cell", name, cell["line"])


def _warn(app: Sphinx, name: str, line: int, message: str) -> None:
    location = f"{app.env.doc2path(name)}:{line}"
    _log.warning(message, location=location, type="guide", subtype="program")


def _insert(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put each program below the input of its cell, when the page is about to be written."""
    catalogue.complete(app, doctree.findall(node.program))
    page = Store.of(app).latest(_record_name(docname)) if build.is_site(app) else None
    if not page:
        return
    for block in list(doctree.findall(nodes.container)):
        cell = page["cells"].get(str(block.get("cell_index")))
        if block.get("nb_element") == "cell_code" and cell and not cell["problem"]:
            for source in block.findall(nodes.container):
                if source.get("nb_element") == "cell_code_source":
                    source.parent.insert(source.parent.index(source) + 1, node.program(text=cell["text"]))
                    break


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension with Sphinx."""
    out = (node.skip, None)
    app.add_config_value("guide_levels", "", "", [str])
    app.add_node(node.program, html=(node.visit, None), latex=out, text=out, man=out, texinfo=out)
    app.connect("env-updated", _make)
    app.connect("doctree-resolved", _insert)
    app.add_css_file("program.css")
    app.add_js_file("program.js", loading_method="defer")
    return build.PARALLEL_SAFE
