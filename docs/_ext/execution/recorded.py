"""Figures that are drawn again from the recordings of other machines, and a switch between the drawings.

A figure's cell gives what it draws a name, and says what the drawing of another machine shows::

    :recorded: numpy-against-jit
    :recorded-alt: Speedup of jit over NumPy for fourteen operations, from ten numbers to ten million.

The name is that of an experiment of `python -m jitguide record`, or the cell says with `recorded-data` which variables
builds record (see `recorded_values`). The build runs the same code again for each machine, with the recorded numbers in
the variables, which the cell then doesn't assign. The switch is made of radio buttons and needs no script.
"""

from __future__ import annotations

import ast
import html
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from nbformat import NotebookNode

from _ext import ROOT

from . import recorded_values
from .notebooks import PageError

FOLDER = ROOT / "jitguide" / "_recording" / "machines"
Rows = Mapping[str, dict[str, Any]]  # rows of a recording by what was measured


@dataclass(frozen=True)
class Experiment:
    """What a page and the recordings measure alike.

    Attributes:
        questions: The groups of rows in a recording.
        variable: What the page's cell draws.
        data: Turns the rows into such a variable.
    """

    questions: tuple[str, ...]
    variable: str
    data: Callable[[Rows], Any]


def _gains_by_size(rows: Rows) -> dict[str, dict[int, float]]:
    found = {int(what.split()[0].replace(",", "")): row["value"] for what, row in rows.items()}
    return {"14 operations": found}


def _ranges(rows: Rows) -> dict[str, tuple[float, float, float]]:
    return {what: (row["value"], row["low"], row["high"]) for what, row in rows.items()}


def _values(rows: Rows) -> dict[str, float]:
    return {what: row["value"] for what, row in rows.items()}


SIZES = ("From which size on does jit beat NumPy?",)
GAINS = ("What does jit gain on large arrays?", "How much to jit, in an ODE of 50 steps?")
COMPILING = ("How long does compiling take?",)
EXPERIMENTS = {
    "numpy-against-jit": Experiment(SIZES, "gains", _gains_by_size),
    "gain-of-jit": Experiment(GAINS, "gains", _ranges),
    "steps-of-compiling": Experiment(COMPILING, "seconds", _values),
}


@dataclass(frozen=True)
class Drawing:
    """A figure of one recording: what its machine is called, where the numbers come from, and the code."""

    name: str
    made_on: str
    source: str


def drawings(cell: NotebookNode, line: int, machine: str = "") -> list[Drawing]:
    """Return what to draw besides the page's own figure; a recording without the experiment is left out.

    Args:
        cell: A cell.
        line: Where it stands.
        machine: A machine that is not drawn, because this build records it.

    Raises:
        PageError: The experiment is unknown, a recording does not fit, or the other drawings have no description.
    """
    name, recorded = cell.metadata.get("recorded"), recorded_values.variables(cell)
    if name is None:
        return []
    found = recorded_values.values(cell, line, machine) if recorded else _of_experiment(name, line)
    if not cell.metadata.get("recorded-alt"):
        message = "the cell is drawn from recordings too: say in `:recorded-alt:` what such a drawing shows."
        raise PageError(message, line)
    return [
        Drawing(one, made_on, f"exec({_without(cell.source, values)!r}, {{**globals(), **{values!r}}})")
        for one, made_on, values in found
    ]


def _of_experiment(name: str, line: int) -> list[tuple[str, str, dict[str, Any]]]:
    if (experiment := EXPERIMENTS.get(name)) is None:
        message = f"no experiment is called {name!r}; there are {', '.join(EXPERIMENTS)}."
        raise PageError(f"{message} For another one, add `:recorded-data:`.", line)
    found = []
    for one in recordings():
        rows = {row["what"]: row for row in one["rows"] if row["group"] in experiment.questions}
        if {row["group"] for row in rows.values()} == set(experiment.questions):
            found.append((one["name"], one["made_on"], {experiment.variable: experiment.data(rows)}))
    return found


def _without(source: str, variables: Collection[str]) -> str:
    r"""Return the code of a cell without the statements that assign the variables.

    Example:
        >>> _without("seconds = measure()\nplot(seconds);", ["seconds"])
        'plot(seconds)'
    """
    tree = ast.parse(source)
    assigning = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for part in ast.walk(target)
        if isinstance(part, ast.Name) and part.id in variables
    ]
    tree.body = [node for node in tree.body if node not in assigning]
    return ast.unparse(tree)


@cache
def recordings() -> tuple[dict[str, Any], ...]:
    """Return the recordings that come with the guide, by name."""
    found = [json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.json")]
    return tuple(sorted(found, key=lambda one: one["name"]))


def switch(group: str, figures: Sequence[tuple[str, str]]) -> str:
    """Return figures with a radio button for each, of which the style shows the chosen one.

    Args:
        group: Name of the buttons, once on its page.
        figures: The label and the HTML of each.
    """
    parts = [f'<span class="switch-label" id="{group}">Measured on</span>']
    for number, (label, figure) in enumerate(figures):
        chosen = "" if number else ' checked="checked"'
        button = f'<input type="radio" name="{group}" id="{group}-{number}"{chosen} />'
        parts.append(f'{button}<label for="{group}-{number}">{html.escape(label)}</label>{figure}')
    return f'<div class="figure-switch" role="group" aria-labelledby="{group}">{"".join(parts)}</div>'
