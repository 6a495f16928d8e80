"""Executes pages before Sphinx reads them, keeps the outputs, and hands them to MyST-NB.

Pages run two at a time, each in a kernel of its own; a page with `measures: true` runs with the machine
to itself. Outputs lie outside the source folder under a digest of everything that can change them, and only
complete, checked executions are kept: an interrupted or failed one is repeated by the next build.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging

from . import fingerprint, kernels, pages
from .store import Store

_log = logging.getLogger(__name__)
_app: Sphinx | None = None  # MyST-NB calls `read` with the text of a page and nothing else


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    global _app
    _app = app
    try:
        environment = fingerprint.facts()
    except RuntimeError as error:
        raise ExtensionError(str(error)) from None
    app.guide_environment = environment
    app.guide_failed = set()  # pages whose failure has been told
    # A value with the effect "env" makes Sphinx read every page again when the environment changes.
    app.add_config_value("guide_fingerprint", fingerprint.digest(environment), "env", [str])
    app.add_config_value("guide_store", None, "", [str])
    app.connect("builder-inited", _open_store)
    app.connect("env-before-read-docs", _execute_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def read(text: str) -> nbformat.NotebookNode:
    """Return the page that Sphinx is reading as a notebook with its outputs; MyST-NB's reader for `.md`."""
    notebook = pages.read(text, _path(_app.env.docname), _app.env.myst_config)
    cells = pages.code_cells(notebook)
    record = _app.guide_store.load(_app.env.docname, pages.key(notebook, _app.config.guide_fingerprint))
    if cells and record is None and _app.env.docname not in _app.guide_failed:
        _log.warning(
            "the page was not executed.", location=_app.env.docname, type="guide", subtype="not-executed"
        )
    for cell, outputs in zip(cells, record["outputs"] if record else [[]] * len(cells), strict=True):
        cell.outputs = [nbformat.from_dict(output) for output in outputs]
    return notebook


def _open_store(app: Sphinx) -> None:
    root = Path(app.config.guide_store).resolve()
    if root.is_relative_to(Path(app.srcdir).resolve()):
        raise ExtensionError(
            f"guide_store must lie outside the source folder, but is {app.config.guide_store!r}."
        )
    app.guide_store = Store(root, app.config.guide_fingerprint)
    app.guide_store.discard_old_environments()


def _execute_pages(app: Sphinx, _env: object, docnames: list[str]) -> None:
    together, alone = [], []
    for name in docnames:
        notebook = _read_page(app, name)
        if notebook is None or not pages.code_cells(notebook):
            continue
        key = pages.key(notebook, app.config.guide_fingerprint)
        if app.guide_store.load(name, key) is None:
            (alone if notebook.metadata.get("measures") else together).append((name, notebook, key))
    # Kernels on an accelerator would fight for its memory; on a CPU two pages use two cores.
    on_cpu = all(platform == "cpu" for platform, _ in app.guide_environment["devices"])
    workers = min(2, os.cpu_count() or 1) if on_cpu else 1
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda job: _execute(app, *job), together))
    for job in alone:
        _execute(app, *job)


def _read_page(app: Sphinx, name: str) -> nbformat.NotebookNode | None:
    path = _path(name)
    if path.suffix != ".md":
        return None
    try:
        notebook = pages.read(path.read_text("utf-8"), path, app.env.myst_config)
        pages.check(notebook)
    except pages.PageError as error:
        _fail(name, error)
        return None
    except Exception as error:  # whatever the parser says of a malformed page belongs to that page
        _fail(name, pages.PageError(f"the page cannot be read: {error}"))
        return None
    return notebook


def _execute(app: Sphinx, name: str, notebook: nbformat.NotebookNode, key: str) -> None:
    _log.info("executing %s", name)
    try:
        seconds = kernels.execute(notebook)
    except pages.PageError as error:
        _fail(name, error)
        return
    outputs = [cell.outputs for cell in pages.code_cells(notebook)]
    record = {"key": key, "when": kernels.now(), "seconds": seconds, "outputs": outputs}
    app.guide_store.save(name, record)


def _fail(name: str, error: pages.PageError) -> None:
    _app.guide_failed.add(name)
    _log.warning(str(error), location=f"{_path(name)}:{error.line}", type="guide", subtype="execution")


def _path(name: str) -> Path:
    return Path(_app.env.doc2path(name))
