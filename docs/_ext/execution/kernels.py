"""Execute pages, each in its own kernel."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from _ext import DOCS
from _ext.programs import runner

from . import figures, forked, measuring, notebooks, recorded, recorded_values, shown
from .notebooks import PageError
from .redact import cell_frames, clean_outputs, clean_text
from .turns import Turns

_PROFILE = DOCS / "_ipython"
# A persistent compilation cache would turn the compile times of the pages into times of reading files.
_FORBIDDEN = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE")
_CELL_TIMEOUT = 300  # seconds; a page of the guide takes 20 at most, a loaded machine is several times slower
_MOST_TEXT = 1_000_000  # characters that one cell may print


def environment() -> dict[str, str]:
    """Return the variables of a page's kernel: those of the build, with the site's own profile."""
    return {
        **{k: v for k, v in os.environ.items() if k not in _FORBIDDEN},
        "IPYTHONDIR": str(_PROFILE),
        "MATPLOTLIBRC": str(_PROFILE / "matplotlibrc"),
        "JAX_PPRINT_USE_COLOR": "0",
        "JUPYTER_PLATFORM_DIRS": "1",  # jupyter_core warns where this is not set
    }


class Kernels:
    """The kernels of a build, which take turns on `cores` cores; close it to end those that still run.

    With `machine`, they record what figures draw on it: they don't draw what was recorded there before.
    """

    def __init__(self, cores: int = 1, machine: str = ""):
        self.turns, self._machine = Turns(cores), machine
        self._zygote = forked.Zygote(environment())
        self.close = self._zygote.close

    def execute(
        self,
        notebook: NotebookNode,
        begin_cell: Callable[[int], object] = lambda _: None,
        timeout: int = _CELL_TIMEOUT,
    ) -> list[float]:
        """Fill in the outputs of all cells, cleaned, and return the seconds that each code cell took.

        What its figures drew is put into its metadata.

        Raises:
            PageError: The kernel is missing or died, a cell took too long or printed too much, raised unexpectedly,
                raised nothing or another class than it names, wrote to stderr unasked, or drew a figure without a text.
        """
        code = "\n".join(cell.source for cell in notebooks.code_cells(notebook))
        with tempfile.TemporaryDirectory(prefix="jit-guide-") as folder:
            client = _Client(
                notebook,
                kernel_name=notebook.metadata.get("kernelspec", {}).get("name", "python3"),
                timeout=timeout,
                startup_timeout=_CELL_TIMEOUT,  # a second on a quiet machine
                record_timing=True,
                shutdown_kernel="immediate",
                coalesce_streams=True,  # else a line printed in two pieces would be shown as two lines
            )
            client.prepare(
                self.turns, begin_cell, Path(folder), None if runner.needs_fresh(code) else self._zygote
            )
            client.machine = self._machine
            _run(client)
        notebook.metadata["recorded"] = recorded_values.entries(notebook, client.drawn)
        with self.turns.together():
            seconds = [_seconds(cell) for cell in notebooks.code_cells(notebook)]
            for cell in notebooks.code_cells(notebook):
                clean_outputs(cell)
                figures.describe(cell, notebooks.line_of(notebook, cell), client.elsewhere.get(id(cell), ()))
        _check_outcomes(notebook)
        return seconds


def execute(notebook: NotebookNode) -> list[float]:
    """Execute one page by itself; see `Kernels.execute`."""
    kernels = Kernels()
    try:
        return kernels.execute(notebook)
    finally:
        kernels.close()


class _Client(NotebookClient):
    """Runs the cells of one page, each in its turn."""

    def prepare(
        self, turns: Turns, begin_cell: Callable[[int], object], folder: Path, zygote: forked.Zygote | None
    ) -> None:
        """Say who else runs, whom to tell, where to run, and what forks the kernel; without it, it starts from nothing."""
        code = notebooks.code_cells(self.nb)
        self._turns, self._begin_cell, self._folder, self._zygote = turns, begin_cell, folder, zygote
        self._numbers = {id(cell): number for number, cell in enumerate(code)}
        self._measures = measuring.cells(self.nb)
        self._printed = 0
        self.elsewhere: dict[int, list[tuple[recorded.Drawing, str]]] = {}  # figures of recordings, by cell
        self.drawn: dict[str, dict[str, Any]] = {}  # what figures of this page drew, by name
        self.machine = ""
        self.process: Any = None
        self.line = 1  # of the page, where the cell begins that runs or ran last

    def create_kernel_manager(self) -> Any:
        km: Any = super().create_kernel_manager()
        # Ports are chosen here and taken by the kernel later, when another process may have them; files are ours.
        km.transport, km.ip = "ipc", str(self._folder / "kernel")
        if self._zygote and km.kernel_name == "python3":
            forked.use(km.kernel_spec, self._zygote)
        return km

    async def async_start_new_kernel(self, **options: Any) -> None:
        work = self._folder / "work"
        work.mkdir()
        with self._turns.beside():
            await super().async_start_new_kernel(cwd=str(work), env=environment(), **options)
            km: Any = self.km
            self.process = km.provisioner.process

    async def async_start_new_kernel_client(self) -> Any:
        with self._turns.beside():
            return await super().async_start_new_kernel_client()

    async def _async_cleanup_kernel(self) -> None:
        with self._turns.beside():
            await super()._async_cleanup_kernel()

    async def async_execute_cell(
        self, cell: NotebookNode, cell_index: int, *options: Any, **more: Any
    ) -> Any:
        if (number := self._numbers.get(id(cell))) is None:  # prose
            return cell
        self._printed, self.line = 0, notebooks.line_of(self.nb, cell)
        with self._turns.alone() if self._measures[number] else self._turns.together():
            self._begin_cell(number)
            run = partial(super().async_execute_cell, cell, cell_index, *options, **more)
            beside = partial(self._run_beside, cell_index=cell_index, problem=shown.PROBLEM)
            done = await shown.measure(cell, run, beside)
        for drawing in recorded.drawings(cell, self.line, self.machine):
            found = (drawing, await self._draw(drawing, cell_index))
            self.elsewhere.setdefault(id(cell), []).append(found)
        if recorded_values.variables(cell):
            problem = "what the cell draws cannot be recorded"
            outputs = await self._run_beside(recorded_values.program(cell), cell_index, problem)
            self.drawn[cell.metadata["recorded"]] = json.loads(outputs[0].text)
        self.nb.cells[cell_index] = done
        return done

    async def _draw(self, drawing: recorded.Drawing, cell_index: int) -> str:
        """Return the HTML of a figure of a recording, drawn by the page's own code."""
        problem = f"the cell could not be drawn from the recording of {drawing.name}"
        outputs = await self._run_beside(drawing.source, cell_index, problem)
        found = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
        if len(found) != 1:
            raise PageError(f"{problem}: it drew {len(found)} figures instead of one.", self.line)
        return found[0]

    async def _run_beside(self, source: str, cell_index: int, problem: str) -> list[NotebookNode]:
        """Run code that is not on the page, and return its outputs."""
        extra = new_code_cell(source)
        try:
            with self._turns.together():
                await super().async_execute_cell(extra, cell_index, store_history=False)
        except CellExecutionError as error:
            raise PageError(f"{problem}: {error.ename}: {error.evalue}", self.line) from None
        return extra.outputs

    def process_message(self, msg: dict, cell: NotebookNode, cell_index: int) -> Any:
        if msg["msg_type"] == "stream":
            self._printed += len(msg["content"]["text"])
            if self.flooded():
                self.process.kill()
                return None
        return super().process_message(msg, cell, cell_index)

    def flooded(self) -> bool:
        """Return whether the cell has printed more than a page can show."""
        return self._printed > _MOST_TEXT


def _run(client: _Client) -> None:
    notebook = client.nb
    try:
        client.execute()
    except NoSuchKernel:
        name = client.kernel_name
        raise PageError(f"there is no kernel {name!r} here: install ipykernel, or name `python3`.") from None
    except CellTimeoutError:
        message = f"the cell took more than {client.timeout} s: look for a loop or a wait that does not end."
        raise PageError(message, client.line) from None
    except DeadKernelError:
        raise PageError(_why_dead(client), client.line) from None
    except CellExecutionError:
        cells = [cell for cell in notebooks.code_cells(notebook) if "raises" not in cell.metadata]
        failed, error = next((cell, error) for cell in cells if (error := _error(cell)))
        line = notebooks.line_of(notebook, failed) + _line_in_cell(failed, error)
        raise PageError(_explain(failed, error), line) from None
    except RuntimeError as error:  # nbclient and `forked` say so when a kernel does not start
        raise PageError(f"the kernel does not start: {error}", client.line) from None


def _why_dead(client: _Client) -> str:
    if client.flooded():
        return f"the cell printed more than {_MOST_TEXT:,} characters: print less."
    status = client.process.poll()
    if status is None or status >= 0:
        return f"the cell ended its process, with exit status {status}: let it raise an error instead."
    name = signal.Signals(-status).name
    if name == "SIGKILL":
        return "the kernel was killed (SIGKILL), most likely because memory ran out: use smaller arrays."
    return f"the kernel crashed ({name}) in compiled code: run the cell with `python -X faulthandler` to see where."


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


def _seconds(cell: NotebookNode) -> float:
    stamps = cell.metadata.get("execution", {})
    try:
        start, end = stamps["iopub.status.busy"], stamps["iopub.status.idle"]
    except KeyError:
        return 0.0
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
