"""Execute pages before Sphinx reads them, store the outputs, and hand them to MyST-NB.

Each page runs in its own kernel, and cells of several pages run side by side; one that measures runs alone.
Outputs lie outside the source folder under a digest of everything that can change them, and only complete,
checked executions are stored: an interrupted or failed one is repeated by the next build.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from logging import WARNING, LogRecord, getLogger
from pathlib import Path

import nbformat
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata

from _ext import build

from . import drift, fingerprint, kernels, measuring, notebooks, package, recorded_values, status
from .progress import Progress
from .store import Store, StoreError

_log = logging.getLogger(__name__)
_WAITING = 6  # pages that may wait to measure; more would gain little, and each takes memory
_GUESS = {False: 0.2, True: 3.0}  # seconds of a cell, by whether it measures
# MyST-NB calls `read` with the text of a page alone; `source-read`, which comes first, says which page it is.
_reader: ContextVar[Callable[[str], nbformat.NotebookNode]] = ContextVar("reader")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension with Sphinx."""
    try:
        build.share_gpu()
        digest = fingerprint.digest()
    except RuntimeError as error:
        raise ExtensionError(str(error)) from None
    # A value with the effect "env" makes Sphinx read every page again when the environment or the package changes.
    app.add_config_value("guide_fingerprint", digest, "env", [str])
    app.add_config_value("guide_package", package.digest("jitguide"), "env", [str])
    app.add_config_value("guide_store", None, "", [str])
    execution = _Execution(app)
    # The pages that this build executes; others keep what they have.
    app.add_config_value("guide_only", [], "", [list])
    app.connect("builder-inited", _check_store)
    app.connect("env-get-outdated", _outdated)
    app.connect("env-before-read-docs", execution.run)
    app.connect("source-read", execution.begin)
    app.add_config_value("guide_drift", "compare", "", [str])
    app.connect("env-updated", drift.check)
    app.add_config_value("guide_figures", None, "", [str])  # the file to write what the figures draw to
    app.add_config_value("guide_machine", "", "", [str])  # what this machine is called there
    app.connect("env-updated", recorded_values.check)
    app.add_node(status.build_table)
    app.add_directive("build-table", status.BuildTable)
    app.connect("doctree-resolved", status.resolve)
    app.connect("build-finished", status.write_json)
    return build.PARALLEL_SAFE


def read(text: str) -> nbformat.NotebookNode:
    """Return the page that Sphinx is reading as a notebook with its outputs; MyST-NB's reader for `.md`."""
    return _reader.get()(text)


def _check_store(app: Sphinx) -> None:
    if app.config.guide_only:
        for handler in getLogger("sphinx").handlers:
            handler.filters.insert(0, partial(_concerns, app))
    store = Store.of(app)
    if store.folder.is_relative_to(Path(app.srcdir).resolve()):
        raise ExtensionError(
            f"guide_store must lie outside the source folder, but is {app.config.guide_store!r}."
        )
    store.discard_old_environments()


def _outdated(app: Sphinx, env: BuildEnvironment, *_: object) -> list[str]:
    """Return the pages to read again: their outputs are not stored, or were stored after the page was read."""
    pages = app.config.guide_only or env.all_docs
    return [page for page in pages if page in env.all_docs and _needs_outputs(app, env, page)]


def _needs_outputs(app: Sphinx, env: BuildEnvironment, page: str) -> bool:
    store, path = Store.of(app), Path(env.doc2path(page))
    if page in app.config.guide_only:
        return True
    if (record := store.latest(page)) is None:
        return path.exists() and "{code-cell}" in path.read_text("utf-8")
    uses = record.get("uses", {})
    return store.saved(page) * 1e6 > env.all_docs[page] or uses != fingerprint.state(uses)


def _concerns(app: Sphinx, record: LogRecord) -> bool:
    """Return whether a message is one for a build of a few pages: others may lack their outputs."""
    place = getattr(record, "location", None)
    if record.levelno < WARNING or place is None:
        # Before the first whole build there is no search index.
        return "search index couldn't be loaded" not in str(record.msg)
    place = place[0] if isinstance(place, tuple) else getattr(place, "source", place)
    return any(page in str(place) for page in app.config.guide_only)


class _Execution:
    """The executions of one build, and the pages whose failure it has reported."""

    def __init__(self, app: Sphinx):
        self.app = app
        self.failed: set[str] = set()
        self._stopped = False

    def run(self, app: Sphinx, _env: object, pages: list[str]) -> None:
        """Execute the pages whose outputs are not stored, long ones first."""
        jobs: dict[str, tuple[nbformat.NotebookNode, str]] = {}
        for page in pages:
            notebook = self._read(page)
            if notebook is None or not notebooks.code_cells(notebook):
                continue
            key = notebooks.key(notebook, app.config.guide_fingerprint)
            only = app.config.guide_only
            if page in only if only else Store.of(app).load(page, key) is None:
                jobs[page] = (notebook, key)
        if not jobs:
            return
        kinds = ", ".join(f"{n} × {kind}" for (_, kind), n in Counter(build.devices()).items())
        _log.info("running %d of the pages on %s with JAX %s", len(jobs), kinds, build.JAX)
        expected = {page: self._expect(page, notebook) for page, (notebook, _) in jobs.items()}
        self._progress = Progress(expected)
        self._kernels = kernels.Kernels(build.workers(), app.config.guide_machine)
        # More pages than workers: while some wait to measure, others fill the cores.
        with ThreadPoolExecutor(build.workers() + _WAITING if build.workers() > 1 else 1) as pool:
            try:
                order = sorted(jobs, key=lambda page: -sum(expected[page]))
                list(pool.map(lambda page: self._execute(page, *jobs[page]), order))
            except BaseException:  # Ctrl-C too: what runs is ended, what waits is not begun
                self._stopped = True
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            finally:
                self._kernels.close()

    def _expect(self, page: str, notebook: nbformat.NotebookNode) -> list[float]:
        """Return the seconds that each cell took when the page last ran, or a guess."""
        last = Store.of(self.app).last_seconds(page)
        measures = measuring.cells(notebook)
        return last if len(last) == len(measures) else [_GUESS[one] for one in measures]

    def begin(self, _app: Sphinx, page: str, _source: list[str]) -> None:
        """Prepare for `read`, which is called with the text of the page."""
        _reader.set(partial(self.with_outputs, page))

    def with_outputs(self, page: str, text: str) -> nbformat.NotebookNode:
        """Return a page as a notebook with its stored outputs."""
        notebook = notebooks.read_page(self.app, page, text)
        key = notebooks.key(notebook, self.app.config.guide_fingerprint)
        self.app.env.metadata[page]["guide_code"] = (key, notebooks.code(notebook))  # for drift.check
        figures = {} if page in self.failed else recorded_values.experiments(notebook)
        self.app.env.metadata[page]["guide_figures"] = figures  # for recorded_values.check
        record = Store.of(self.app).load(page, key)
        if record:
            notebooks.fill(notebook, record["outputs"])
        elif notebooks.code_cells(notebook) and page not in self.failed and not self.app.config.guide_only:
            _log.warning("the page was not executed.", location=page, type="guide", subtype="not-executed")
        return notebook

    def _read(self, page: str) -> nbformat.NotebookNode | None:
        if Path(self.app.env.doc2path(page)).suffix != ".md":
            return None
        try:
            notebook = notebooks.read_page(self.app, page)
            notebooks.check(notebook)
            measuring.check(notebook)
            recorded_values.experiments(notebook)
        except notebooks.PageError as error:
            self._fail(page, error)
            return None
        except Exception as error:  # whatever the parser says of a malformed page belongs to that page
            self._fail(page, notebooks.PageError(f"the page cannot be read: {error}"))
            return None
        return notebook

    def _execute(self, page: str, notebook: nbformat.NotebookNode, key: str) -> None:
        try:
            seconds = self._kernels.execute(notebook, partial(self._progress.cell, page))
        except notebooks.PageError as error:
            if not self._stopped:
                self._progress.end(page)
                self._fail(page, error)
            return
        self._progress.end(page, sum(seconds))
        outputs = [cell.outputs for cell in notebooks.code_cells(notebook)]
        record = {
            "key": key,
            "uses": notebooks.uses(notebook),
            "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "seconds": seconds,
            "outputs": outputs,
            "recorded": notebook.metadata["recorded"],
        }
        try:
            Store.of(self.app).save(page, record)
        except StoreError as error:
            self._fail(page, notebooks.PageError(error.message))

    def _fail(self, page: str, error: notebooks.PageError) -> None:
        self.failed.add(page)
        location = f"{self.app.env.doc2path(page)}:{error.line}"
        _log.warning(str(error), location=location, type="guide", subtype="execution")
