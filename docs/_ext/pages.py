"""Reads a page of the guide as a notebook, and says which cells it has."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import nbformat
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig

# Cells nested in another block are shown by MyST-NB but never executed.
_NESTED_CELL = re.compile(r"^\s*(?:`{3,}|:{3,})\{code-cell\}", re.MULTILINE)


class PageError(Exception):
    """What is wrong with a page, and in which line (counted from 1)."""

    def __init__(self, message: str, line: int = 1):
        super().__init__(message)
        self.line = line


def read(text: str, path: str | Path | None = None, config: MdParserConfig | None = None) -> nbformat.NotebookNode:
    """Return the page as a notebook without outputs; `metadata.source_map` holds each cell's line."""
    notebook = read_myst_markdown_notebook(text, config=config, add_source_map=True, path=path)
    notebook.metadata.setdefault("language_info", {"name": "python", "pygments_lexer": "ipython3"})
    for cell in code_cells(notebook):
        _fold_solution(cell)
    return notebook


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the cells that a kernel executes, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def line_of(notebook: nbformat.NotebookNode, cell: nbformat.NotebookNode) -> int:
    """Return the line of the page, counted from 1, in which the cell begins."""
    index = next(i for i, other in enumerate(notebook.cells) if other is cell)
    return notebook.metadata["source_map"][index] + 1


def key(notebook: nbformat.NotebookNode, fingerprint: str) -> str:
    """Return a digest of everything that decides what the page's cells give."""
    kernel = notebook.metadata.get("kernelspec", {}).get("name", "python3")
    cells = [[cell.source, cell.metadata] for cell in code_cells(notebook)]
    text = json.dumps([fingerprint, kernel, bool(notebook.metadata.get("measures")), cells], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def check(notebook: nbformat.NotebookNode) -> None:
    """Refuse a page whose cells cannot mean what their author meant.

    Raises:
        PageError: A cell is nested in another block, or its marks of an expected error contradict each other.
    """
    starts = notebook.metadata["source_map"]
    for cell, start in zip(notebook.cells, starts, strict=True):
        if cell.cell_type == "markdown" and (nested := _NESTED_CELL.search(cell.source)):
            line = start + cell.source.count("\n", 0, nested.start()) + 1
            raise PageError("a code cell inside another block is never executed: move it to the top level.", line)
        if cell.cell_type != "code":
            continue
        tagged, named = "raises-exception" in cell.metadata.get("tags", []), "raises" in cell.metadata
        if tagged and not named:
            raise PageError("the cell may raise but names no error class: add `:raises: NameOfTheError`.", start + 1)
        if named and not tagged:
            raise PageError("the cell names an error class: add `:tags: [raises-exception]`.", start + 1)


def _fold_solution(cell: nbformat.NotebookNode) -> None:
    """Turn the tag `solution` into MyST-NB's folded cell with a fitting label."""
    tags = cell.metadata.get("tags", [])
    if "solution" in tags:
        cell.metadata["tags"] = [*tags, "hide-cell"]
        cell.metadata["mystnb"] = {"code_prompt_show": "Show a solution", "code_prompt_hide": "Hide the solution"}
