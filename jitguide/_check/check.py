"""Check a jitted function for avoidable costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import jax
import jax.stages

from jitguide._arguments import refuse_deleted
from jitguide._check import inputs, jaxpr_scan, rules
from jitguide._check.rules import Finding
from jitguide._display import AsData, Table, duration
from jitguide._jax import NO_OPTIONS, jit_options
from jitguide._timing.compare import time_alone
from jitguide._timing.first_call import FirstCall, first_call
from jitguide._timing.phases import Phases, phases_of
from jitguide._watch.signature import Signature

LOOKED_AT = (
    "retraces",
    "static values",
    "captured constants",
    "unrolled loops",
    "donation",
    "host round trips",
    "break-even",
)
_NO_BREAK_EVEN = "Break-even was not looked at: {}"
# Seconds for timing a jitted call, and as many for a plain one.
_BUDGET = 0.02
# A plain call this slow is not repeated for a better figure.
_LONG = 1.0


@dataclass(frozen=True)
class Findings(AsData):
    """What `check` found.

    Attributes:
        function: Name of the function.
        findings: The findings; empty if all is well.
        phases: Where the time of a first call goes, and that of a later one; None if it was not run.
        plain: Seconds of a call without jit; None if it was not timed.
        notes: What could not be looked at, and what else to bear in mind.
    """

    function: str
    findings: tuple[Finding, ...]
    phases: Phases | None = None
    plain: float | None = None
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the findings, in order."""
        return tuple(finding.kind for finding in self.findings)

    def _notes(self) -> list[str]:
        if self.phases is None:
            return list(self.notes)
        steps = {step: getattr(self.phases, step) for step in ("trace", "lower", "compile")}
        steps |= {"a jitted call": self.phases.steady, "a plain call": self.plain}
        known = [f"{name} {duration(value)}" for name, value in steps.items() if value is not None]
        return [f"Roughly: {', '.join(known)}.", *self.notes]

    def _title(self) -> str:
        count = len(self.findings)
        if not count:
            looked_at = [what for what in LOOKED_AT if self.plain is not None or what != "break-even"]
            return f"{self.function}: nothing found. Looked at {', '.join(looked_at)}."
        return f"{self.function}: {count} finding{'s' if count > 1 else ''}"

    def __repr__(self) -> str:
        lines = [
            f"{i}. {f.kind}: {f.sentence}\n   {f.advice} (See {f.page}.)"
            for i, f in enumerate(self.findings, 1)
        ]
        return "\n".join([self._title(), *lines, *self._notes()])

    def _repr_html_(self) -> str:
        header = ["finding", "what", "what to do", "page"]
        rows = [[f.kind, f.sentence, f.advice, f.page] for f in self.findings]
        return Table(header, rows, title=self._title(), notes=self._notes()).html()


def check(
    fn: Callable[..., Any],
    /,
    *args: Any,
    calls: Sequence[Sequence[Any]] = (),
    run: bool = True,
    **kwargs: Any,
) -> Findings:
    """Return what in a jitted function costs time or memory for nothing, found from example calls.

    Donated example arguments are copied first, so they stay usable. A function that calls back to Python is
    traced and lowered, never run. To find after how many calls jit pays off, the function is compiled once
    more, as by `phases`, and timed beside the plain one.

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
    jitted, bound, named = inputs.unwrap(fn)
    taken = inputs.taken_as_options(jitted, calls, run)
    examples = [bound + call for call in inputs.validated(calls)]
    if args or kwargs or not examples:
        examples.insert(0, bound + args)
    kwargs = {**named, **kwargs}
    signatures = [inputs.signature(jitted, example, kwargs, taken) for example in examples]
    name, first, signature = getattr(jitted, "__name__", "fn"), examples[0], signatures[0]
    found, notes = [*rules.retraces(name, signatures), *rules.statics(signatures)], taken
    if not all(rules.is_hashable(a.value) for a in signature.arguments.values() if a.static):
        notes.append("Nothing else was looked at: it cannot be traced.")
        return Findings(name, tuple(found), notes=tuple(notes))
    traced = jitted.trace(*first, **kwargs)
    found += _found_in_the_trace(jitted, signature, traced)
    notes += _blind_spots(jitted, traced.jaxpr)
    if not run:
        return Findings(name, tuple(found), notes=tuple(notes))
    if hidden := _why_not_run(traced.jaxpr, first, kwargs):
        return Findings(name, tuple(found), notes=(*notes, _NO_BREAK_EVEN.format(hidden)))
    refuse_deleted((first, kwargs), "Make it again, or pass `run=False`, which needs its shape only.")
    phases, plain, hidden = _timed(jitted, first, kwargs)
    if plain is None:
        notes = [*notes, _NO_BREAK_EVEN.format(hidden)]
    else:
        found += rules.break_even(phases, plain)
    return Findings(name, tuple(found), phases, plain, (*notes, *phases.notes))


def _found_in_the_trace(jitted: Any, signature: Signature, traced: Any) -> Iterator[Finding]:
    yield from rules.carries(signature, traced)
    yield from rules.constants(jitted, traced)
    yield from rules.unrolled(traced)
    yield from rules.donation(jitted, signature, traced.lower())
    yield from rules.host(jaxpr_scan.host_calls(traced.jaxpr))


def _blind_spots(fn: Any, jaxpr: Any) -> Iterator[str]:
    """Yield a note for each rule that lacks what JAX keeps private."""
    if jit_options(fn) is None:
        yield f"{NO_OPTIONS}, so static values were not looked at."
    if not jaxpr_scan.knows_places(jaxpr):
        yield "Unrolled loops were not looked at: JAX does not expose the lines that an operation came from."


def _timed(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Phases, float | None, str]:
    """Return the phases, the seconds of a plain call, and why these are not known if they are not."""
    call = first_call(fn, args, kwargs)
    steady = time_alone(call.fn, call.fresh, once=call.donates, budget=_BUDGET)
    plain = getattr(fn, "__wrapped__", None)
    if plain is None:
        return phases_of(call, steady), None, "JAX does not expose the plain function."
    try:
        return phases_of(call, steady), _seconds_of_plain(plain, call, steady), ""
    except Exception as error:  # what works on tracers may fail on arrays
        return phases_of(call, steady), None, f"the plain function raised {type(error).__name__}."


def _seconds_of_plain(plain: Callable[..., Any], call: FirstCall, steady: float) -> float:
    for _ in range(2):  # the first call compiles each of the operations
        args, kwargs = call.fresh()
        start = perf_counter()
        jax.block_until_ready(plain(*args, **kwargs))
        seconds = perf_counter() - start
        if seconds < _LONG:
            return call.seconds_of(plain, steady, check=None, budget=_BUDGET)
    return seconds


def _why_not_run(jaxpr: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    if jaxpr_scan.host_calls(jaxpr):
        return "the function calls back to Python, so it was not run."
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs))):
        return "a `jax.ShapeDtypeStruct` has no numbers. Pass an array of that shape."
    if jax.config.jax_disable_jit:
        return "`jax_disable_jit` is on, so a jitted call runs one operation at a time. Switch it off."
    return ""
