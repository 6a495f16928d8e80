"""What a jaxpr tells about the function it came from: constants, unrolled loops, calls back to Python."""

import dis
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitguide._files import owner
from jitguide._jaxprs import bodies, code_of, equations, open_jaxpr, with_bodies

# Longer bodies are not searched for: users already notice the compile time of eight copies of one.
_LONGEST_BODY = 64
# Fewer repetitions are ordinary code, such as the layers of a small network.
_FEWEST_REPEATS = 8
# Below this many equations in all copies, the compile time goes unnoticed.
_FEWEST_EQUATIONS = 32
_HOST = ("callback", "debug_print")
_DRAWS = ("random_bits", "random_gamma", "threefry2x32", "rng_bit_generator")

# The user's frames that led to an equation: which code, and the offset in it, finer than a line.
Place = tuple[tuple[int, int], ...]


class Repeats(NamedTuple):
    """A run of equations: `times` copies of `body` equations each, as a Python loop leaves them.

    `first` is the first equation; `chained` is whether the copies depend on each other, as iterations with a carry.
    """

    times: int
    body: int
    first: Any
    chained: bool


def host_calls(jaxpr: Any, in_loop: bool = False, maybe: bool = False) -> list[tuple[str, bool]]:
    """Return name and loop flag of each equation that calls back to Python whenever the program runs.

    One branch of `cond` may never run, so it counts if all branches call back, or with `maybe`.
    """
    found = []
    for equation in open_jaxpr(jaxpr).eqns:
        name = equation.primitive.name
        if any(part in name for part in _HOST):
            found.append((name, in_loop))
        loops = in_loop or name in ("scan", "while")
        inside = [host_calls(body, loops, maybe) for body in bodies(equation)]
        if maybe or name != "cond" or all(inside):
            found += [call for calls in inside for call in calls]
    return found


def draws_alike(jaxpr: Any) -> bool:
    """Return whether the function draws random numbers from a key that no argument reaches."""
    return _draws(jaxpr, ())[1]


def _draws(jaxpr: Any, constant: Sequence[bool]) -> tuple[list[bool], bool]:
    """Return which results are the same in each call, and whether random numbers are, given which inputs are."""
    jaxpr = open_jaxpr(jaxpr)
    known = {id(v) for v, same in zip(jaxpr.invars, constant, strict=False) if same}
    known |= {id(v) for v in jaxpr.constvars}
    found = False
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        same = [id(v) in known or hasattr(v, "val") for v in equation.invars]  # a literal has a value
        found |= name in _DRAWS and all(same[:1])
        results = [all(same)] * len(equation.outvars)
        for body in bodies(equation):
            count = len(open_jaxpr(body).invars)
            given = same[-count:] if count <= len(same) else [all(same)] * count
            inner, drew = _draws(body, given)
            if name in ("scan", "while"):
                # A result that differs may be what the next iteration gets: JAX does not say which input that is.
                outs = zip(open_jaxpr(body).outvars, inner, strict=True)
                differ = {str(v.aval) for v, one in outs if not one}
                types = [str(v.aval) for v in open_jaxpr(body).invars]
                given = [one and kind not in differ for one, kind in zip(given, types, strict=True)]
                inner, drew = _draws(body, given)
            found |= drew
            if len(inner) == len(results) and name != "cond":
                results = inner
        known |= {id(v) for v, one in zip(equation.outvars, results, strict=True) if one}
    return [id(v) in known or hasattr(v, "val") for v in jaxpr.outvars], found


def unrolled(jaxpr: Any) -> Repeats | None:
    """Return the longest run that a loop of the user left in a jaxpr or one inside it; None without one."""
    jaxprs = {id(one): one for one in map(open_jaxpr, with_bodies(jaxpr))}.values()
    found = [run for one in jaxprs if (run := _longest_run(list(one.eqns))) is not None]
    return max(found, key=lambda run: run.times * run.body, default=None)


def _longest_run(equations: list[Any]) -> Repeats | None:
    kinds: dict[tuple[str, Place], int] = {}
    places = [_place(e) for e in equations]
    # An unrolled sum repeats an operation as well, but at places of its own.
    named = [" ".join([e.primitive.name, *_types(e)]) for e in equations]
    words = np.array([kinds.setdefault(kind, len(kinds)) for kind in zip(named, places, strict=True)])
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
        readers = _is_the_readers(equations[start], set(places[run]), outside, chained)
        if readers and not _in_a_librarys_loop(equations[start]):
            best = Repeats(times, body, equations[start], chained)
    return best


def _types(equation: Any) -> list[str]:
    """Return the types of the results; of an array that each iteration of a loop lengthens, without its shape."""
    grows = equation.primitive.name == "concatenate"
    return [str(v.aval.dtype if grows else v.aval) for v in equation.outvars]


def _is_the_readers(first: Any, places: set[Place], outside: set[Place], chained: bool) -> bool:
    """Return whether a run comes from a loop that the user wrote, and not from one inside a function of JAX."""
    if len(places) > 1:  # `tree.map` goes over the leaves, and nothing else can
        return chained or not any("tree_util" in code.co_filename for code, _ in code_of(first))
    # One call made all of it: in a loop around the call, or in a loop inside, which other equations come with.
    return chained and places.isdisjoint(outside)


def _in_a_librarys_loop(equation: Any) -> bool:
    """Return whether the loops of Python around an equation are all in installed packages, where no user can change them."""
    loops = [owner(code.co_filename) for code, at in code_of(equation) if _is_in_a_loop(code, at)]
    return bool(loops) and "you" not in loops


def _is_in_a_loop(code: Any, at: int) -> bool:
    steps = (i for i in dis.get_instructions(code) if "JUMP_BACKWARD" in i.opname)
    return any(i.argval <= at <= i.offset for i in steps if "NO_INTERRUPT" not in i.opname)


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


def knows_places(jaxpr: Any) -> bool:
    """Return whether `unrolled` can look: JAX may keep no traceback of an equation."""
    return not open_jaxpr(jaxpr).eqns or any(code_of(equation) for equation in equations(jaxpr))


def _place(equation: Any) -> Place:
    return tuple((id(code), at) for code, at in code_of(equation) if owner(code.co_filename) != "jax")


def _weight(equation: Any) -> int:
    return 1 + sum(1 for body in bodies(equation) for _ in equations(body))


def _longest_true(flags: np.ndarray) -> tuple[int, int]:
    """Return start and length of the longest run of True."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False)).tolist()
    runs = ((start, stop - start) for start, stop in zip(edges[::2], edges[1::2], strict=True))
    return max(runs, key=lambda run: run[1], default=(0, 0))
