"""Climbs the rungs: for each cell of a page the first program that behaves as the page did."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from . import likeness, program_runner
from .likeness import Expected
from .program_runner import Job, Outcome
from .program_text import BOUNDARY, MEASURES, WARNS, Origin, write
from .slicing import RUNGS, Cell, Page

_FILES = ("ambient", "effects", "flow", "history", "ladder", "likeness", "program_child", "program_runner", "program_text",
          "slicing", "statements")  # fmt: skip


@dataclass
class Climb:
    """One cell on its way: what the page shows for it, the programs to try, and what was found.

    Attributes:
        name: Page and number of the cell.
        expected: What the page shows.
        programs: The different programs, each with its rung, the first to be tried first.
        why: How the last program differed; empty when it behaved.
        seconds: How long the last program ran.
    """

    name: str
    expected: Expected
    programs: list[tuple[int, str]]
    why: str = "not run"
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """The program to be tried, or that was tried last."""
        return self.programs[0][1]

    @property
    def measures(self) -> tuple[str, ...]:
        """With what that program measures."""
        return likeness.instruments(self.text)

    def widen(self) -> bool:
        """Go on to the next program; return whether there is one."""
        if len(self.programs) == 1:
            return False
        del self.programs[0]
        return True

    @property
    def key(self) -> str:
        """Digest of the programs and of what they are to give."""
        return hashlib.sha256(repr([self.programs, asdict(self.expected)]).encode()).hexdigest()


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
    """Return what the outputs of a cell say that a program has to do."""
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


def prepare(sources: Sequence[dict], origin: Origin) -> dict[int, Climb]:
    """Return what there is to try for each visible cell of a page.

    Raises:
        SliceError: A cell holds what no program can.
    """
    listed = cells(sources)
    page, found = Page(listed), {}
    for number, cell in enumerate(listed):
        if cell.hidden:
            continue
        wanted = expected(sources[number]["outputs"], cell.shown)
        warned = sources[number]["metadata"].get("warns")
        programs: dict[str, int] = {}
        for rung in RUNGS[page.first_rung(number) - 1 :]:
            notes = [f"{WARNS}{warned}." if warned else ""]
            text = write(page, number, rung, origin, notes)
            if _measures(text, wanted):
                text = write(page, number, rung, origin, [*notes, MEASURES])
            programs.setdefault(text, rung)
        climb = Climb(f"{origin.page}#{number}", wanted, [(rung, text) for text, rung in programs.items()])
        found[number] = climb
    return found


def _measures(text: str, wanted: Expected) -> bool:
    shown = "\n".join([wanted.printed, *(wanted.shown or ())])
    return likeness.measured_numbers(shown, likeness.instruments(text))


def job(name: str, text: str, shown: bool, fresh: bool = False) -> Job:
    """Return a program as a job of the runner."""
    lines = text.splitlines()
    block = lines.index(BOUNDARY) + 1 if BOUNDARY in lines else 1
    return Job(name, text, block, shown, fresh or program_runner.needs_fresh(text))


def climb(waiting: Sequence[Climb], workers: int = 2) -> None:
    """Run the programs of all cells, a rung at a time, until each has one that behaves or none is left.

    Each ends with the program that behaved as the first of its `programs`, or with the last that did not.
    """
    waiting = list(waiting)
    while waiting:
        outcomes = _run(waiting, workers)
        for one in waiting:
            one.why = _judge(one, [outcomes[one.name]])
        unsure = [one for one in waiting if one.why]
        # What fails in a forked process may be right in one of its own; what is measured differs each time.
        fresh = _run(unsure, workers, fresh=True)
        third = _run([one for one in unsure if one.measures and _judge(one, [fresh[one.name]])], workers)
        for one in unsure:
            runs = [found[one.name] for found in (fresh, outcomes, third) if one.name in found]
            one.why = _judge(one, runs[:1]) and _judge(one, runs)
        waiting = [one for one in unsure if one.why and one.widen()]


def _run(waiting: Sequence[Climb], workers: int, fresh: bool = False) -> dict[str, Outcome]:
    jobs = [job(one.name, one.text, one.expected.shown is not None, fresh) for one in waiting]
    outcomes = program_runner.run(jobs, workers)
    for one in waiting:
        one.seconds = outcomes[one.name].seconds
    return outcomes


def _judge(one: Climb, runs: Sequence[Outcome]) -> str:
    return likeness.difference(one.expected, runs, one.measures)


def rules() -> str:
    """Return a digest of the code that makes and judges programs."""
    here = Path(__file__).parent
    return hashlib.sha256(b"".join((here / f"{name}.py").read_bytes() for name in _FILES)).hexdigest()
