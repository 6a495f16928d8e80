"""Execute pages before Sphinx reads them, store the outputs, and hand them to MyST-NB.

Pages run two at a time, each in its own kernel; a page with `measures: true` runs with the machine to itself.
Outputs lie outside the source folder under a digest of everything that can change them, and only complete,
checked executions are stored: an interrupted or failed one is repeated by the next build.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from pathlib import Path

import nbformat
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata

from _ext import build

from . import drift, fingerprint, kernels, notebooks, status
from .store import Store

_log = logging.getLogger(__name__)
# MyST-NB calls `read` with the text of a page alone; `source-read`, which comes first, says which page it is.
_reader: ContextVar[Callable[[str], nbformat.NotebookNode]] = ContextVar("reader")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension with Sphinx."""
    try:
        digest = fingerprint.digest()
    except RuntimeError as error:
        raise ExtensionError(str(error)) from None
    # A value with the effect "env" makes Sphinx read every page again when the environment changes.
    app.add_config_value("guide_fingerprint", digest, "env", [str])
    app.add_config_value("guide_store", None, "", [str])
    execution = _Execution(app)
    app.connect("builder-inited", _check_store)
    app.connect("env-before-read-docs", execution.run)
    app.connect("source-read", execution.begin)
    app.add_config_value("guide_drift", "compare", "", [str])
    app.connect("env-updated", drift.check)
    app.add_node(status.build_table)
    app.add_directive("build-table", status.BuildTable)
    app.connect("env-updated", status.rewrite_status)
    app.connect("doctree-resolved", status.resolve)
    app.connect("build-finished", status.write_json)
    return build.PARALLEL_SAFE


def read(text: str) -> nbformat.NotebookNode:
    """Return the page that Sphinx is reading as a notebook with its outputs; MyST-NB's reader for `.md`."""
    return _reader.get()(text)


def _check_store(app: Sphinx) -> None:
    store = Store.of(app)
    if store.folder.is_relative_to(Path(app.srcdir).resolve()):
        raise ExtensionError(
            f"guide_store must lie outside the source folder, but is {app.config.guide_store!r}."
        )
    store.discard_old_environments()


class _Execution:
    """The executions of one build, and the pages whose failure it has reported."""

    def __init__(self, app: Sphinx):
        self.app = app
        self.failed: set[str] = set()

    def run(self, app: Sphinx, _env: object, pages: list[str]) -> None:
        """Execute the pages whose outputs are not stored."""
        together: list[tuple[str, nbformat.NotebookNode, str]] = []
        alone: list[tuple[str, nbformat.NotebookNode, str]] = []
        for page in pages:
            notebook = self._read(page)
            if notebook is None or not notebooks.code_cells(notebook):
                continue
            key = notebooks.key(notebook, app.config.guide_fingerprint)
            if Store.of(app).load(page, key) is None:
                (alone if notebook.metadata.get("measures") else together).append((page, notebook, key))
        with ThreadPoolExecutor(build.workers()) as pool:
            list(pool.map(lambda job: self._execute(*job), together))
        for job in alone:
            self._execute(*job)

    def begin(self, _app: Sphinx, page: str, _source: list[str]) -> None:
        """Prepare for `read`, which is called with the text of the page."""
        _reader.set(partial(self.with_outputs, page))

    def with_outputs(self, page: str, text: str) -> nbformat.NotebookNode:
        """Return a page as a notebook with its stored outputs."""
        notebook = notebooks.read_page(self.app, page, text)
        record = Store.of(self.app).load(page, notebooks.key(notebook, self.app.config.guide_fingerprint))
        if record:
            notebooks.fill(notebook, record["outputs"])
        elif notebooks.code_cells(notebook) and page not in self.failed:
            _log.warning("the page was not executed.", location=page, type="guide", subtype="not-executed")
        return notebook

    def _read(self, page: str) -> nbformat.NotebookNode | None:
        if Path(self.app.env.doc2path(page)).suffix != ".md":
            return None
        try:
            notebook = notebooks.read_page(self.app, page)
            notebooks.check(notebook)
        except notebooks.PageError as error:
            self._fail(page, error)
            return None
        except Exception as error:  # whatever the parser says of a malformed page belongs to that page
            self._fail(page, notebooks.PageError(f"the page cannot be read: {error}"))
            return None
        return notebook

    def _execute(self, page: str, notebook: nbformat.NotebookNode, key: str) -> None:
        _log.info("executing %s", page)
        try:
            seconds = kernels.execute(notebook)
        except notebooks.PageError as error:
            self._fail(page, error)
            return
        outputs = [cell.outputs for cell in notebooks.code_cells(notebook)]
        record = {"key": key, "when": kernels.now(), "seconds": seconds, "outputs": outputs}
        Store.of(self.app).save(page, record)

    def _fail(self, page: str, error: notebooks.PageError) -> None:
        self.failed.add(page)
        location = f"{self.app.env.doc2path(page)}:{error.line}"
        _log.warning(str(error), location=location, type="guide", subtype="execution")
