"""What a jaxpr tells about the function it came from: constants, unrolled loops, calls back to Python."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

# Longer bodies are not looked for: eight copies of one are a compile that nobody waits for twice.
_LONGEST_BODY = 64
# Fewer repetitions are ordinary code, such as the layers of a small network.
_FEWEST_REPEATS = 8
# Below this many equations in all copies, nobody notices the compile.
_FEWEST_EQUATIONS = 32
_LOOPS = ("scan", "while")
_HOST = ("callback", "debug_print")
_JAX = os.path.dirname(os.path.abspath(jax.__file__)) + os.sep  # noqa: PTH100, PTH120 - as the frames have it

# The reader's frames that led to an equation: which code, and the offset in it, finer than a line.
Place = tuple[tuple[int, int], ...]


class Repeats(NamedTuple):
    """A run of equations: `times` copies of `body` equations each, as a Python loop leaves them.

    `first` is the first equation; `chained` says whether the copies depend on each other, as turns with a carry.
    """

    times: int
    body: int
    first: Any
    chained: bool


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
    """Return the longest run that a loop of the reader left in a jaxpr or one inside it; None without one."""
    outer = _open(jaxpr)
    inside = {id(j): j for equation, _ in equations(outer) for j in map(_open, _inner(equation))}
    found = [run for j in (outer, *inside.values()) if (run := _longest_run(list(j.eqns))) is not None]
    return max(found, key=lambda run: run.times * run.body, default=None)


def _longest_run(equations: list[Any]) -> Repeats | None:
    kinds: dict[tuple[str, Place], int] = {}
    places = [_place(e) for e in equations]
    # A sum written out repeats an operation as well, but at places of its own.
    words = np.array(
        [kinds.setdefault((_word(e), p), len(kinds)) for e, p in zip(equations, places, strict=True)]
    )
    best = None
    for body in range(1, min(_LONGEST_BODY, len(words) // _FEWEST_REPEATS) + 1):
        start, length = _longest_true(words[body:] == words[:-body])
        times, run = length // body + 1, slice(start, start + length + body)
        if times < _FEWEST_REPEATS or (best is not None and times * body <= best.times * best.body * 1.1):
            continue  # a longer body must explain clearly more
        if times * sum(map(_weight, equations[run][:body])) < _FEWEST_EQUATIONS:
            continue
        chained = _is_chained(equations[run], body)
        outside = {*places[: run.start], *places[run.stop :]}
        if _is_the_readers(equations[start], set(places[run]), outside, chained):
            best = Repeats(times, body, equations[start], chained)
    return best


def _is_the_readers(first: Any, places: set[Place], outside: set[Place], chained: bool) -> bool:
    """Return whether a run comes from a loop that the reader wrote, and not from one inside a function of JAX."""
    if len(places) > 1:  # `tree.map` goes over the leaves, and nothing else can
        return chained or not any("tree_util" in code.co_filename for code, _ in _frames(first))
    # One call made all of it: in a loop around the call, or in a loop inside, which other equations come with.
    return chained and places.isdisjoint(outside)


def _is_chained(run: Sequence[Any], body: int) -> bool:
    """Return whether an equation of one copy needs its own result in the copy before."""
    for i in range(body):
        known, needs = set(map(id, run[i].outvars)), False
        for equation in run[i + 1 : i + body + 1]:
            needs = any(id(v) in known for v in equation.invars)
            known.update(map(id, equation.outvars) if needs else ())
        if needs:  # the last one is the same equation, one copy later
            return True
    return False


def where(equation: Any) -> str:
    """Return file and line of the reader that an equation came from, such as `train.py:12`; empty if unknown."""
    frames = getattr(equation.source_info.traceback, "frames", ())
    frame = next((f for f in frames if not f.file_name.startswith(_JAX)), None)
    if frame is None:
        return ""
    in_cell = "ipykernel_" in frame.file_name  # a file whose name means nothing to the reader
    return f"{'cell' if in_cell else os.path.basename(frame.file_name)}:{frame.line_num}"  # noqa: PTH119 - short


def _place(equation: Any) -> Place:
    readers = ((code, at) for code, at in _frames(equation) if not code.co_filename.startswith(_JAX))
    return tuple((id(code), at) for code, at in readers)


def _frames(equation: Any) -> list[tuple[Any, int]]:
    """Return code and offset of each frame that led to an equation, the innermost first."""
    try:
        return list(zip(*equation.source_info.traceback.raw_frames(), strict=True))
    except AttributeError:  # JAX may keep no traceback
        return []


def _weight(equation: Any) -> int:
    return 1 + sum(1 for inner in _inner(equation) for _ in equations(inner))


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
