"""Check a jitted function for avoidable costs."""

import functools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import jax
import jax.stages

from jitguide._arguments import Arguments, refuse_deleted, refuse_tracing
from jitguide._callables import fresh_jit, held_in, peeled, require_jitted, through
from jitguide._check import donation, faults, inputs, jaxpr_scan, purity, reach, rules, unused
from jitguide._check.findings import IN_THE_TRACE, OF_ARGUMENTS, Finding, Findings
from jitguide._jax import NO_OPTIONS, fast_path_size, jit_options, placeholders_explained
from jitguide._jaxprs import coarsest, uses_a_key_twice
from jitguide._monitoring import shown_name
from jitguide._text import clean, first_sentence
from jitguide._timing.first_call import FirstCall, first_call
from jitguide._timing.phases import Phases
from jitguide._timing.rounding import Rounding
from jitguide._watch.signature import Signature, passed

_WRAPPED = (
    f"Not checked, because a library wraps the jitted function: {', '.join(OF_ARGUMENTS)}, and whether it "
    "changes what it gets, such as an attribute of a Flax module. The times are without the wrapper's own."
)
_BY_RUNNING = ("break-even", "agreement with the plain function")
_BY_ROUNDING = (
    "A part of the result differs with and without jit, and about as much without jit if the arguments change by rounding. "
    "So it is all rounding, as Adam's step is for a gradient of almost zero, or a difference of two times since 1970 that are "
    "Python floats: `float32` keeps seven digits."
)
# Seconds for timing a jitted call, and as many for a plain one.
_BUDGET = 0.05
# The body of a plain call may write files or count steps, so it runs a handful of times at most.
_MOST_CALLS, _MOST_PLAIN = 1000, 3


def check(
    fn: Callable[..., Any],
    /,
    *args: Any,
    calls: Sequence[Sequence[Any]] = (),
    run: bool = True,
    **kwargs: Any,
) -> Findings:
    """Return avoidable costs and silent faults of a jitted function, found from example calls.

    The body is traced twice, and up to three times more for each argument that seems unused. Then it runs a
    handful of times without jit: to compare the results, and to find after how many calls jit pays off. Donated
    example arguments are copied first, so they stay usable. A function that calls back to Python is traced and
    lowered, never run, unless all it has is a `pure_callback` in a branch, by which libraries raise errors.

    Args:
        fn: A jitted function.
        args: Positional arguments of one example call, or `jax.ShapeDtypeStruct` in place of arrays.
        calls: Further example calls as tuples of positional arguments: real calls show real retraces. Without
            `args` and `kwargs`, the first of them is the example that is looked at closely.
        run: Whether the function may be compiled and run, jitted and plain, to find the break-even.
        kwargs: Keyword arguments of the example call, and of all `calls`.

    Raises:
        TypeError: `fn` is not a jitted function, or cannot be called with the arguments; or an option is of the
            wrong type.
        ValueError: An argument was deleted, so that the function cannot be run.
        RuntimeError: Called inside a function that is being traced.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jitguide import check
        >>> double = jax.jit(lambda x: x * 2)
        >>> check(double, jnp.ones(3), calls=[(jnp.ones(4),)], run=False).kinds
        ('retrace',)
    """
    require_jitted("check(fn, ...)", fn)
    refuse_tracing("check", (args, kwargs, calls))
    with warnings.catch_warnings():
        for message in ("Some donated buffers were not usable", faults.TRUNCATED):  # they are findings
            warnings.filterwarnings("ignore", message)
        inner = peeled(fn)[0]
        notes = inputs.taken_as_options(inner, calls, run)
        examples = inputs.validated(calls)
        if args or kwargs or not examples:
            examples.insert(0, args)
        signatures = [
            through(fn, example, kwargs, lambda jitted, a, k: inputs.signature(jitted, a, k, notes))
            for example in examples
        ]
        name, first = shown_name(inner), signatures[0]
        found = [*rules.retraces(name, signatures, [passed(fn, one, kwargs) for one in examples])]
        if held_in(inner) is None:
            found += [*rules.statics(signatures), *rules.numbers(first)]
            found += through(fn, examples[0], kwargs, rules.cut_integers)
        else:
            notes.append(_WRAPPED)
        return through(fn, examples[0], kwargs, functools.partial(_check, inner, first, found, notes, run))


def _check(
    fn: Any, signature: Signature, found: list[Finding], notes: list[str], run: bool, jitted: Any, *given: Any
) -> Findings:
    args, kwargs = given
    looked_at = tuple(what for what in IN_THE_TRACE if held_in(fn) is None or what not in OF_ARGUMENTS)
    ended = functools.partial(Findings, shown_name(fn), checked=looked_at)
    fixed = {a.name: a.value for a in signature.arguments.values() if a.static}
    if not rules.can_be_traced(signature):
        return ended(tuple(found), notes=(*notes, "Nothing else was checked: it cannot be traced."))
    fresh, unknown = fresh_jit(jitted)
    with faults.truncations(found):
        traced, acts, leaks, held = purity.observed(fn, fixed, lambda: fresh.trace(*args, **kwargs))
    impure = [*faults.purities(acts, leaks)]
    found += _found_in_the_trace(fn, held, jitted, signature, traced, (args, kwargs))
    if held_in(fn) is None:  # an impure body is not traced more often than it must be
        found += unused.unused(jitted, signature, traced, None if impure else (args, kwargs), notes)
    found += impure
    notes = [*notes, *unknown, *_blind_spots(jitted, traced.jaxpr)]
    if not run or (hidden := _why_not_run(traced.jaxpr, args, kwargs)):
        return ended(tuple(found), notes=(*notes, *([f"It was not run: {hidden}"] if run else [])))
    refuse_deleted((args, kwargs), "Make it again, or pass `run=False`, which needs its shape only.")
    try:
        call = first_call(jitted, args, kwargs)
    except jax.errors.UnexpectedTracerError:
        found += () if leaks else faults.kept_tracer()
        return ended(tuple(found), notes=(*notes, "It was not run: a second trace raises an error."))
    steady, result = _fastest(call.fn, call.fresh, _MOST_CALLS)
    if (calls := fast_path_size(jitted)) and calls():  # it was called before, maybe when a global was another
        _, result = _fastest(jitted, call.fresh, 1)
    phases = Phases(**call.seconds, steady=steady, notes=call.notes)
    plain, wrong, said = _plainly(jitted, call, result, bool(impure), traced.jaxpr)
    found += wrong
    if plain is not None:
        looked_at += _BY_RUNNING
        found += () if "unrolled loop" in {one.kind for one in found} else rules.break_even(phases, plain)
    return ended(tuple(found), phases, plain, (*notes, *said, *phases.notes), checked=looked_at)


def _plainly(
    jitted: Any, call: FirstCall, result: Any, impure: bool, jaxpr: Any
) -> tuple[float | None, list[Finding], list[str]]:
    """Return the seconds of a call without jit, or None; what differs from `result`, the jitted one; and notes."""
    if (function := getattr(jitted, "__wrapped__", None)) is None:
        return None, [], ["The plain function was not run: JAX does not expose it."]

    def fresh() -> Any:
        return _own_containers(call.fresh())

    try:
        given = call.fresh()
        left = _own_containers(given)
        _, plain = _fastest(function, lambda: left, 1)  # it compiles each of the operations
        changed = [*faults.changed(reach.changed(function, given, left))]
        seconds, _ = _fastest(function, fresh, _MOST_PLAIN)
        rounding = Rounding(function, fresh, plain, faults.numbers)
        impure = impure or bool(changed)
        found = [*changed, *faults.disagreement(result, plain, given, rounding, impure, coarsest(jaxpr)[0])]
    except IndexError as error:
        return None, [*faults.out_of_range(error)], []
    except Exception as error:  # what works on tracers may fail on arrays
        said = f"{type(error).__name__}: {first_sentence(clean(str(error)))}".rstrip(": ")
        return None, [], [f"Break-even and agreement were not checked: the plain function raised {said}"]
    return seconds, found, [_BY_ROUNDING] if rounding.explained else []


def _found_in_the_trace(
    fn: Any, held: reach.Held, jitted: Any, signature: Signature, traced: Any, given: Arguments
) -> Iterator[Finding]:
    yield from rules.constants(held, traced)
    yield from faults.keys(held, any(a.static for a in signature.arguments.values()), traced)
    yield from rules.unrolled(traced)
    yield from rules.host(jaxpr_scan.host_calls(traced.jaxpr))
    if held_in(fn) is None:
        with placeholders_explained():
            yield from rules.carries(signature, traced)
            yield from donation.donation(jitted, signature, traced, traced.lower(), given)


def _blind_spots(fn: Any, jaxpr: Any) -> Iterator[str]:
    """Yield a note for each rule that lacks what JAX keeps private."""
    if jit_options(fn) is None:
        yield f"{NO_OPTIONS}, so static values were not checked."
    if uses_a_key_twice(jaxpr) is None:
        yield "Whether a random key is used twice was not checked: JAX does not expose its own check of that."
    if not jaxpr_scan.knows_places(jaxpr):
        yield "Unrolled loops were not checked: JAX does not expose the lines that an operation came from."


def _fastest(fn: Callable[..., Any], fresh: Callable[[], Any], most: int) -> tuple[float, Any]:
    """Return the seconds of the fastest of at most so many calls, which load disturbs least, and a result."""
    best = spent = math.inf
    for number in range(most):
        args, kwargs = fresh()
        start = perf_counter()
        result = jax.block_until_ready(fn(*args, **kwargs))
        seconds = perf_counter() - start
        best, spent = min(best, seconds), seconds + (spent if number else 0)
        if spent > _BUDGET:
            break
    return best, result


def _own_containers(arguments: Any) -> Any:
    """Return the arguments in new containers, which a plain call may change, as a jitted one gets them."""
    return jax.tree.map(lambda leaf: leaf, arguments)


def _why_not_run(jaxpr: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    always, maybe = (jaxpr_scan.host_calls(jaxpr, maybe=branches) for branches in (False, True))
    if always or any(name != "pure_callback" for name, _ in maybe):
        return f"{'it' if always else 'a branch of it'} calls back to Python."
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs))):
        return "a `jax.ShapeDtypeStruct` has no numbers. Pass an array of that shape."
    if any(isinstance(leaf, jax.Ref) for leaf in [*jax.tree.leaves((args, kwargs)), *jaxpr.consts]):
        return "it takes or captures a reference, whose array a run may change."
    if jax.config.jax_disable_jit:
        return "`jax_disable_jit` is on, so a jitted call runs one operation at a time. Switch it off."
    return ""
