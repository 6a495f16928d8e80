"""What a jaxpr tells about the function it came from: constants, unrolled loops, calls back to Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

# Longer bodies are not looked for: eight copies of one are a compile that nobody waits for twice.
_LONGEST_BODY = 64
# Fewer repetitions are ordinary code, such as the layers of a small network.
_FEWEST_REPEATS = 8
_LOOPS = ("scan", "while")
_HOST = ("callback", "debug_print")


class Repeats(NamedTuple):
    """A run of equations: `times` copies of `body` equations each, beginning with `first`."""

    times: int
    body: int
    first: Any


def equations(jaxpr: Any, in_loop: bool = False) -> Iterator[tuple[Any, bool]]:
    """Yield each equation of a jaxpr and of those inside it, and whether it runs in a loop."""
    for equation in _open(jaxpr).eqns:
        yield equation, in_loop
        inside = in_loop or equation.primitive.name in _LOOPS
        for inner in _inner(equation):
            yield from equations(inner, inside)


def constants(jaxpr: Any) -> list[Any]:
    """Return the arrays that the function captured, each once, the largest first."""
    found = {id(c): c for c in getattr(jaxpr, "consts", ())}
    for equation, _ in equations(jaxpr):
        for inner in _inner(equation):
            found.update({id(c): c for c in getattr(inner, "consts", ())})
    return sorted((c for c in found.values() if hasattr(c, "nbytes")), key=lambda c: -c.nbytes)


def host_calls(jaxpr: Any) -> list[tuple[str, bool]]:
    """Return name and loop flag of each equation that calls back to Python."""
    return [
        (equation.primitive.name, in_loop)
        for equation, in_loop in equations(jaxpr)
        if any(part in equation.primitive.name for part in _HOST)
    ]


def unrolled(jaxpr: Any) -> Repeats | None:
    """Return the longest run of repeated equations in a jaxpr or one inside it; None if there is none."""
    runs = [_longest_run(list(_open(jaxpr).eqns))]
    for equation, _ in equations(jaxpr):
        runs += [_longest_run(list(_open(inner).eqns)) for inner in _inner(equation)]
    found = [run for run in runs if run is not None]
    return max(found, key=lambda run: run.times * run.body, default=None)


def _longest_run(equations: list[Any]) -> Repeats | None:
    kinds: dict[str, int] = {}
    words = np.array([kinds.setdefault(_word(e), len(kinds)) for e in equations])
    best = None
    for body in range(1, min(_LONGEST_BODY, len(words) // _FEWEST_REPEATS) + 1):
        start, length = _longest_true(words[body:] == words[:-body])
        times = length // body + 1
        if times >= _FEWEST_REPEATS and (best is None or times * body > best.times * best.body * 1.1):
            best = Repeats(times, body, equations[start])  # a longer body must explain clearly more
    return best


def _longest_true(flags: np.ndarray) -> tuple[int, int]:
    """Return start and length of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.view(np.int8), [0]))))
    starts, stops = edges[::2], edges[1::2]
    if len(starts) == 0:
        return 0, 0
    longest = int(np.argmax(stops - starts))
    return int(starts[longest]), int(stops[longest] - starts[longest])


def _word(equation: Any) -> str:
    return " ".join([equation.primitive.name, *(str(v.aval) for v in equation.outvars)])


def _open(jaxpr: Any) -> Any:
    return jaxpr if hasattr(jaxpr, "eqns") else jaxpr.jaxpr


def _inner(equation: Any) -> Iterator[Any]:
    for value in equation.params.values():
        for item in value if isinstance(value, list | tuple) else (value,):
            if hasattr(item, "eqns") or hasattr(getattr(item, "jaxpr", None), "eqns"):
                yield item
