"""The policy of running programs: once, again in a separate process, and a third time where they measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import runner
from .runner import Job, Outcome


@dataclass(frozen=True)
class Trial:
    """A program whose outcome is known.

    Attributes:
        job: The program as a job of the runner; its argument asks for a separate process.
        difference: How its runs differ from the known outcome, in words; an empty text if they do not.
        measures: Whether it measures what it prints.
    """

    job: Callable[[bool], Job]
    difference: Callable[[Sequence[Outcome]], str]
    measures: bool


@dataclass(frozen=True)
class Verdict:
    """How a program differs from its known outcome, if it does, and how long its first run took in seconds."""

    difference: str
    seconds: float


def prove(trials: dict[str, Trial], workers: int) -> dict[str, Verdict]:
    """Run programs until each behaves as it should or cannot; return the verdicts by their names."""
    first = runner.run([trial.job(False) for trial in trials.values()], workers)
    runs = {name: [first[name]] for name in trials}
    unsure = {name: trial for name, trial in trials.items() if trial.difference(runs[name])}
    # What fails in a forked process may be right in a separate one; what is measured differs in each run.
    for fresh in (True, False):
        again = {name: trial for name, trial in unsure.items() if fresh or trial.measures}
        outcomes = runner.run([trial.job(fresh) for trial in again.values()], workers)
        for name in again:
            runs[name].insert(0, outcomes[name])
        unsure = {n: t for n, t in unsure.items() if t.difference(runs[n][:1]) and t.difference(runs[n])}
    wrong = {name: trial.difference(runs[name]) for name, trial in unsure.items()}
    return {name: Verdict(wrong.get(name, ""), runs[name][-1].seconds) for name in trials}
