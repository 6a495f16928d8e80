"""Execute one page in its own kernel."""

from __future__ import annotations

import os
import tempfile
import time
from datetime import datetime

from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from _ext import DOCS

from . import figures, notebooks
from .notebooks import PageError
from .redact import cell_frames, clean_outputs, clean_text

_PROFILE = DOCS / "_ipython"
# A persistent compilation cache would turn the compile times of the pages into times of reading files.
_FORBIDDEN = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE")
_CELL_TIMEOUT = 300  # seconds; a page of the guide takes 20 at most, a loaded machine is several times slower


def environment() -> dict[str, str]:
    """Return the variables of a page's kernel: those of the build, with the site's own profile."""
    return {
        **{k: v for k, v in os.environ.items() if k not in _FORBIDDEN},
        "IPYTHONDIR": str(_PROFILE),
        "MATPLOTLIBRC": str(_PROFILE / "matplotlibrc"),
        "JAX_PPRINT_USE_COLOR": "0",
        "JUPYTER_PLATFORM_DIRS": "1",  # jupyter_core warns where this is not set
    }


def execute(notebook: NotebookNode, timeout: int = _CELL_TIMEOUT) -> list[float]:
    """Fill in the outputs of all cells, cleaned, and return the seconds that each code cell took.

    Raises:
        PageError: The kernel is missing or died, a cell took too long, a cell raised unexpectedly, raised
            nothing or another class than it names, wrote to stderr unasked, or drew a figure without a text.
    """
    kernel = notebook.metadata.get("kernelspec", {}).get("name", "python3")
    with tempfile.TemporaryDirectory(prefix="jit-guide-") as folder:
        client = NotebookClient(
            notebook,
            kernel_name=kernel,
            timeout=timeout,
            resources={"metadata": {"path": folder}},
            record_timing=True,
            shutdown_kernel="immediate",
            coalesce_streams=True,  # else a line printed in two pieces would be shown as two lines
        )
        _run(client, kernel)
    seconds = [_seconds(cell) for cell in notebooks.code_cells(notebook)]
    for cell in notebooks.code_cells(notebook):
        clean_outputs(cell)
        figures.describe(cell, notebooks.line_of(notebook, cell))
    _check_outcomes(notebook)
    return seconds


def _run(client: NotebookClient, kernel: str) -> None:
    notebook = client.nb
    try:
        client.execute(env=environment())
    except NoSuchKernel:
        raise PageError(
            f"there is no kernel {kernel!r} here: install ipykernel, or name `python3`."
        ) from None
    except CellTimeoutError:
        raise PageError(f"a cell took more than {client.timeout} s.", _line_reached(notebook)) from None
    except DeadKernelError:
        message = "the kernel died: out of memory, or a crash in compiled code?"
        raise PageError(message, _line_reached(notebook)) from None
    except CellExecutionError:
        cells = [cell for cell in notebooks.code_cells(notebook) if "raises" not in cell.metadata]
        failed, error = next((cell, error) for cell in cells if (error := _error(cell)))
        line = notebooks.line_of(notebook, failed) + _line_in_cell(failed, error)
        raise PageError(_explain(failed, error), line) from None


def _check_outcomes(notebook: NotebookNode) -> None:
    for cell in notebooks.code_cells(notebook):
        line, error, expected = notebooks.line_of(notebook, cell), _error(cell), cell.metadata.get("raises")
        if expected and error is None:
            raise PageError(f"the cell should raise {expected} but raised nothing.", line)
        if expected and error and error.ename != expected:
            raise PageError(
                f"the cell should raise {expected} but raised {error.ename}: {error.evalue}", line
            )
        stderr = "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stderr")
        warned = cell.metadata.get("warns")
        if stderr and not (warned and warned in stderr):
            message = f"the cell wrote to stderr (name the class with `:warns:` if it should):\n{stderr}"
            raise PageError(message, line)
        if warned and not stderr:
            raise PageError(f"the cell should warn with {warned} but did not.", line)


def _error(cell: NotebookNode) -> NotebookNode | None:
    return next((o for o in cell.outputs if o.output_type == "error"), None)


def _explain(cell: NotebookNode, error: NotebookNode) -> str:
    shown = "\n".join(f"    {i:3} {text}" for i, text in enumerate(cell.source.splitlines(), 1))
    return f"the cell raised {error.ename}: {clean_text(error.evalue)}\n{shown}"


def _line_in_cell(cell: NotebookNode, error: NotebookNode) -> int:
    """Return how far below the start of its block the failing line of the cell stands."""
    lines = cell_frames(error)
    options = len([k for k in cell.metadata if k != "execution"])
    return options + lines[-1][0] if lines else 0


def _line_reached(notebook: NotebookNode) -> int:
    started = [c for c in notebooks.code_cells(notebook) if c.metadata.get("execution")]
    return notebooks.line_of(notebook, started[-1]) if started else 1


def _seconds(cell: NotebookNode) -> float:
    stamps = cell.metadata.get("execution", {})
    try:
        start, end = stamps["iopub.status.busy"], stamps["iopub.status.idle"]
    except KeyError:
        return 0.0
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def now() -> str:
    """Return the time of a build as a date and minute in UTC."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
