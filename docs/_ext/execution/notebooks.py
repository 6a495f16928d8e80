"""Pages of the guide as notebooks: their cells, lines and keys."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import cast

import nbformat
from myst_nb.core.read import read_myst_markdown_notebook
from myst_nb.sphinx_ import SphinxEnvType
from myst_parser.config.main import MdParserConfig
from sphinx.application import Sphinx

from . import fingerprint, shown


class PageError(Exception):
    """What is wrong with a page, and in which line (counted from 1)."""

    def __init__(self, message: str, line: int = 1):
        super().__init__(message)
        self.line = line


def read(
    text: str, path: str | Path | None = None, config: MdParserConfig | None = None
) -> nbformat.NotebookNode:
    """Return the page as a notebook without outputs; `metadata.source_map` holds each cell's line."""
    config = config or MdParserConfig(enable_extensions={"colon_fence"})
    notebook = read_myst_markdown_notebook(text, config=config, add_source_map=True, path=path)
    notebook.metadata.setdefault("language_info", {"name": "python", "pygments_lexer": "ipython3"})
    for cell in code_cells(notebook):
        _fold_solution(cell)
    return notebook


def read_page(app: Sphinx, page: str, text: str | None = None) -> nbformat.NotebookNode:
    """Return a page of the site as a notebook without outputs; `text` replaces that of its file."""
    path = Path(app.env.doc2path(page))
    return read(text or path.read_text("utf-8"), path, cast(SphinxEnvType, app.env).myst_config)


def fill(notebook: nbformat.NotebookNode, outputs: list[list[dict]]) -> None:
    """Put recorded outputs, a list for each code cell, into the notebook."""
    for cell, found in zip(code_cells(notebook), outputs, strict=True):
        cell.outputs = [nbformat.from_dict(output) for output in found]


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the cells that a kernel executes, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def line_of(notebook: nbformat.NotebookNode, cell: nbformat.NotebookNode) -> int:
    """Return the line of the page, counted from 1, in which the cell begins."""
    index = next(i for i, other in enumerate(notebook.cells) if other is cell)
    return notebook.metadata["source_map"][index]  # MyST-NB counts code from 1 and prose from 0


def uses(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """Return what the page's cells name, each with its digest or version, and what figures draw again."""
    cells = code_cells(notebook)
    options = {option for cell in cells for option in cell.metadata}
    drawn = {"recorded": "jitguide.record", "recorded-data": fingerprint.FIGURES.name}
    again = [source for option, source in drawn.items() if option in options]
    return fingerprint.uses("\n".join(cell.source for cell in cells)) | fingerprint.state(again)


def key(notebook: nbformat.NotebookNode, environment: str) -> str:
    """Return a digest of everything that decides what the page's cells give."""
    kernel = notebook.metadata.get("kernelspec", {}).get("name", "python3")
    cells = [[cell.source, cell.metadata] for cell in code_cells(notebook)]
    measures = bool(notebook.metadata.get("measures"))
    text = json.dumps([environment, uses(notebook), kernel, measures, cells], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def code(notebook: nbformat.NotebookNode) -> str:
    """Return a digest of the code of a page."""
    text = json.dumps([cell.source for cell in code_cells(notebook)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check(notebook: nbformat.NotebookNode) -> None:
    """Refuse a page whose cells cannot mean what their author meant.

    Raises:
        PageError: The marks of an expected error contradict each other, or `:shows:` has no expression.
    """
    for cell in code_cells(notebook):
        tagged, named = "raises-exception" in cell.metadata.get("tags", []), "raises" in cell.metadata
        if tagged and not named:
            raise PageError(
                "the cell may raise but names no error class: add `:raises: NameOfTheError`.",
                line_of(notebook, cell),
            )
        if named and not tagged:
            raise PageError(
                "the cell names an error class: add `:tags: [raises-exception]`.", line_of(notebook, cell)
            )
        if "shows" in cell.metadata and (wrong := shown.problem(cell.metadata["shows"])):
            raise PageError(wrong, line_of(notebook, cell))


def _fold_solution(cell: nbformat.NotebookNode) -> None:
    """Turn the tag `solution` into MyST-NB's folded cell with a fitting label."""
    tags = cell.metadata.get("tags", [])
    if "solution" in tags:
        cell.metadata["tags"] = [*tags, "hide-cell"]
        cell.metadata["mystnb"] = {
            "code_prompt_show": "Show a solution",
            "code_prompt_hide": "Hide the solution",
        }
