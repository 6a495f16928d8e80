"""The policy of running programs: once, again in a process of its own, and a third time where it measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from . import runner
from .runner import Job, Outcome


class Program(Protocol):
    """A program whose outcome is known."""

    @property
    def name(self) -> str:
        """Name of its results."""

    @property
    def measures(self) -> Sequence[str]:
        """With what it measures what it prints; empty where it measures nothing."""

    def job(self, *, fresh: bool) -> Job:
        """Return the program as a job of the runner; `fresh` asks for a process of its own."""

    def difference(self, runs: Sequence[Outcome]) -> str:
        """Return in words how its runs differ from the known outcome; an empty text if they do not."""


@dataclass(frozen=True)
class Verdict:
    """How a program differs from its known outcome, if it does, and how long its first run took in seconds."""

    difference: str
    seconds: float


def prove(programs: Sequence[Program], workers: int) -> dict[str, Verdict]:
    """Run programs until each behaves as it should or cannot; return the verdicts by their names."""
    first = runner.run([program.job(fresh=False) for program in programs], workers)
    runs = {name: [outcome] for name, outcome in first.items()}
    unsure = [program for program in programs if program.difference(runs[program.name])]
    # What fails in a forked process may be right in its own process; what is measured differs in each run.
    for fresh in (True, False):
        again = [program for program in unsure if fresh or program.measures]
        outcomes = runner.run([program.job(fresh=fresh) for program in again], workers)
        for program in again:
            runs[program.name].insert(0, outcomes[program.name])
        unsure = [p for p in unsure if p.difference(runs[p.name][:1]) and p.difference(runs[p.name])]
    wrong = {program.name: program.difference(runs[program.name]) for program in unsure}
    return {name: Verdict(wrong.get(name, ""), outcome.seconds) for name, outcome in first.items()}
