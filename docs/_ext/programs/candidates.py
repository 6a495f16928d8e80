"""The candidate programs of each cell, and the first of them that behaves as the page did."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from _ext.execution import fingerprint

from . import compare_outputs, runner
from .compare_outputs import Expected
from .prove import Trial, prove
from .render import BOUNDARY, MEASURES, WARNS, Origin, write
from .runner import Job
from .slicer import LEVELS, Cell, Page


@dataclass
class Candidate:
    """The programs to try for one cell, and what was found.

    Attributes:
        name: Page and number of the cell.
        expected: What the page shows.
        programs: The different programs, each with its level, the first to be tried first.
        problem: How the last program differed; empty when it behaved.
        seconds: How long the last program ran.
    """

    name: str
    expected: Expected
    programs: list[tuple[int, str]]
    problem: str = "not run"
    seconds: float = 0.0

    @property
    def level(self) -> int:
        """The level of the program to be tried, or that was tried last."""
        return self.programs[0][0]

    @property
    def text(self) -> str:
        """The program to be tried, or that was tried last."""
        return self.programs[0][1]

    def trial(self) -> Trial:
        """Return the program to be tried, with what the page shows for it."""
        text, shown = self.text, self.expected.shown is not None
        clocks = compare_outputs.instruments(text)
        return Trial(
            lambda fresh: job(self.name, text, shown, fresh),
            lambda runs: compare_outputs.difference(self.expected, runs, clocks),
            bool(clocks),
        )

    def take(self, level: int | None) -> None:
        """Choose the program of a level without running it, where there is one."""
        chosen = [program for program in self.programs if program[0] == level]
        if chosen:
            self.programs, self.problem = chosen, ""

    def widen(self) -> bool:
        """Go on to the next program; return whether there is one."""
        if len(self.programs) == 1:
            return False
        del self.programs[0]
        return True

    @property
    def key(self) -> str:
        """Digest of the programs and their expected outcome."""
        return hashlib.sha256(repr([self.programs, asdict(self.expected)]).encode()).hexdigest()

    @property
    def signature(self) -> str:
        """Digest of the programs that is the same on every version of JAX."""
        texts = [
            "\n".join(line for line in text.splitlines() if line[:1] != "#") for _, text in self.programs
        ]
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:20]


def cells(sources: Sequence[dict]) -> list[Cell]:
    """Return the cells of a notebook, with what their outputs say about them."""
    found = []
    for source in sources:
        tags, outputs = source["metadata"].get("tags", []), source["outputs"]
        drawn = any("guide-figure" in o.get("data", {}).get("text/html", "") for o in outputs)
        results = [o for o in outputs if o["output_type"] == "execute_result" and not drawn]
        raised = next((o["ename"] for o in outputs if o["output_type"] == "error"), None)
        hidden = bool({"remove-cell", "remove-input"} & set(tags))
        found.append(Cell(source["source"], raised, bool(results), drawn, hidden))
    return found


def expected(outputs: Sequence[dict], shown: bool) -> Expected:
    """Return what a program has to do, by the outputs of its cell."""
    text = {"stdout": "", "stderr": ""}
    for output in outputs:
        if output["output_type"] == "stream":
            text[output["name"]] += output["text"]
    error = next((o for o in outputs if o["output_type"] == "error"), {})
    values = [o["data"].get("text/plain", "") for o in outputs if o["output_type"] == "execute_result"]
    return Expected(
        text["stdout"], text["stderr"], error.get("ename"), error.get("evalue", ""),
        tuple("\n".join(values).splitlines()) if shown else None,
    )  # fmt: skip


def prepare(sources: Sequence[dict], origin: Origin) -> dict[int, Candidate]:
    """Return the programs to try for each visible cell of a page.

    Raises:
        SliceError: A cell contains what a program cannot.
    """
    listed = cells(sources)
    page, found = Page(listed), {}
    for number, cell in enumerate(listed):
        if cell.hidden:
            continue
        wanted = expected(sources[number]["outputs"], cell.shown)
        warned = sources[number]["metadata"].get("warns")
        programs: dict[str, int] = {}
        for level in LEVELS[page.first_level(number) - 1 :]:
            notes = [f"{WARNS}{warned}." if warned else ""]
            text = write(page, number, level, origin, notes)
            if _measures(text, wanted):
                text = write(page, number, level, origin, [*notes, MEASURES])
            programs.setdefault(text, level)
        name = f"{origin.page}#{number}"
        found[number] = Candidate(name, wanted, [(level, text) for text, level in programs.items()])
    return found


def _measures(text: str, wanted: Expected) -> bool:
    shown = "\n".join([wanted.printed, *(wanted.shown or ())])
    return compare_outputs.measured_numbers(shown, compare_outputs.instruments(text))


def job(name: str, text: str, shown: bool, fresh: bool = False) -> Job:
    """Return a program as a job of the runner."""
    lines = text.splitlines()
    block = lines.index(BOUNDARY) + 1 if BOUNDARY in lines else 1
    return Job(name, text, block, shown, fresh or runner.needs_fresh(text))


def choose(waiting: Sequence[Candidate], workers: int = 2) -> None:
    """Run the programs of all cells, a level at a time, until each has one that behaves or none is left.

    Each ends with the program that behaved as the first of its `programs`, or with the last that did not.
    """
    while waiting:
        verdicts = prove({one.name: one.trial() for one in waiting}, workers)
        for one in waiting:
            one.problem, one.seconds = verdicts[one.name].difference, verdicts[one.name].seconds
        waiting = [one for one in waiting if one.problem and one.widen()]


def rules() -> str:
    """Return a digest of the code that makes and judges programs."""
    return hashlib.sha256(json.dumps(fingerprint.sources(Path(__file__).parent)).encode()).hexdigest()
