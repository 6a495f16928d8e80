"""Look over a jitted function as a doctor would, and say what costs time or memory for nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.stages

from jitguide._anew import unbound
from jitguide._arguments import donates_any
from jitguide._callables import require_jitted
from jitguide._check import jaxpr_scan, rules
from jitguide._check.costs import Costs, compile_costs, run_costs
from jitguide._check.rules import Finding
from jitguide._display import html_table
from jitguide._jax import NO_OPTIONS, at_top_level, jit_options
from jitguide._timing.inputs import refuse_deleted
from jitguide._watch.signature import Signature, show, signature_of
from jitguide._watch.watch import Watched

LOOKED_AT = (
    "retraces",
    "static values",
    "captured constants",
    "unrolled loops",
    "donation",
    "host round trips",
    "break-even",
)
_UNKNOWN = (
    "the function was compiled before, so the time of its compile is not known. A new process, without the "
    "persistent cache, can tell."
)


@dataclass(frozen=True)
class Findings:
    """What `check` found.

    Attributes:
        function: Name of the function.
        findings: The findings; empty if all is well.
        costs: Seconds of the phases and of one call; None where not measured.
        notes: What could not be looked at, and what else to bear in mind.
    """

    function: str
    findings: tuple[Finding, ...]
    costs: Costs
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
        return [line for line in (str(self.costs), *self.notes) if line]

    def _title(self) -> str:
        count = len(self.findings)
        if not count:
            judged = self.costs.break_even is not None
            looked_at = [what for what in LOOKED_AT if judged or what != "break-even"]
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
        return html_table(header, rows, title=self._title(), notes=self._notes())

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as JSON-ready data."""
        return asdict(self) | {"findings": [asdict(f) for f in self.findings]}


def check(
    fn: Callable, /, *args: Any, calls: Sequence[Sequence[Any]] = (), run: bool = True, **kwargs: Any
) -> Findings:
    """Return what in a jitted function costs time or memory for nothing, found from example calls.

    Donated example arguments are copied first, so they stay usable. A function that calls back to Python is
    traced and compiled, never run. After how many calls the compile is earned back is known only if the
    function had not been compiled before.

    Args:
        fn: A jitted function.
        args: Positional arguments of one example call, or `jax.ShapeDtypeStruct` in place of arrays.
        calls: Further example calls as tuples of positional arguments: real calls show real retraces. Without
            `args` and `kwargs`, the first of them is the example that is looked at closely.
        run: Whether the function may be run, jitted and plain, to find the break-even.
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
    fn, bound = _unwrap(fn)
    taken = _taken_as_options(fn, calls, run)
    examples = [bound + call for call in _validated(calls)]
    if args or kwargs or not examples:
        examples.insert(0, bound + args)
    signatures = [_signature(fn, example, kwargs, taken) for example in examples]
    name, first, signature = getattr(fn, "__name__", "fn"), examples[0], signatures[0]
    found, notes = [*rules.retraces(name, signatures), *rules.statics(signatures)], taken
    if not all(rules.is_hashable(a.value) for a in signature.arguments.values() if a.static):
        notes.append("Nothing else was looked at: it cannot be traced.")
        return Findings(name, tuple(found), Costs(), tuple(notes))
    costs, traced, lowered = compile_costs(fn, first, kwargs)
    found += [
        *rules.carries(signature, traced),
        *rules.constants(fn, traced),
        *rules.unrolled(traced),
        *rules.donation(fn, signature, lowered),
    ]
    notes += _blind_spots(fn, traced.jaxpr)
    host = jaxpr_scan.host_calls(traced.jaxpr)
    found += rules.host(host)
    hidden = _why_not_run(host, first, kwargs)
    if run and not hidden:
        refuse_deleted((first, kwargs), "Make it again, or pass `run=False`, which needs its shape only.")
        costs = run_costs(costs, fn, first, kwargs, copy=donates_any(lowered.args_info))
        found += rules.break_even(costs)
        if costs.break_even is None:
            hidden = "JAX does not tell the plain function." if costs.plain is None else _UNKNOWN
    if run and hidden:
        notes.append(f"Break-even was not looked at: {hidden}")
    return Findings(name, tuple(found), costs, tuple(notes))


def _blind_spots(fn: Callable, jaxpr: Any) -> Iterator[str]:
    """Yield a note for each rule that lacks what JAX keeps private."""
    if jit_options(fn) is None:
        yield f"{NO_OPTIONS}, so static values were not looked at."
    if not jaxpr_scan.knows_places(jaxpr):
        yield "Unrolled loops were not looked at: JAX does not expose the lines that an operation came from."


def _why_not_run(host: list, args: tuple, kwargs: dict[str, Any]) -> str:
    if host:
        return "the function calls back to Python, so it was not run."
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs))):
        return "a `jax.ShapeDtypeStruct` has no numbers. Pass an array of that shape."
    if jax.config.jax_disable_jit:
        return "`jax_disable_jit` is on, so a jitted call runs one operation at a time. Switch it off."
    return ""


def _unwrap(fn: Any) -> tuple[Callable, tuple]:
    """Return the jitted function, and the object if it is a method of one."""
    fn, bound = unbound(fn)
    fn = fn._fn if isinstance(fn, Watched) else fn
    require_jitted("check(fn, ...)", fn)
    if at_top_level() is False:
        raise RuntimeError(
            "check(fn, ...) compiles and runs the function, which cannot be done inside a function that is "
            "being traced. Call it outside of jit, grad and vmap."
        )
    return fn, bound


def _taken_as_options(fn: Callable, calls: Any, run: Any) -> list[str]:
    """Return a note for each option given that is a parameter of the function as well."""
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError):  # a few callables of C have no signature
        parameters = {}
    given = {"calls": not (isinstance(calls, tuple) and not calls), "run": run is not True}
    notes = [
        f"`{name}` is an option of `check` and did not reach the function. To pass one on, check "
        f"`jax.jit(functools.partial(f, {name}=...))`."
        for name, is_given in given.items()
        if is_given and name in parameters
    ]
    if not isinstance(run, bool):
        text = f"`run` must be True or False, and got {show(run)} of type {type(run).__name__}."
        raise TypeError(" ".join([text, *notes[-1:]]))
    return notes


def _validated(calls: Any) -> list[tuple]:
    """Return the example calls as tuples of positional arguments."""
    for call in calls if isinstance(calls, list | tuple) else (calls,):
        if not isinstance(call, list | tuple):
            raise TypeError(
                "`calls` must be a list of example calls, each a tuple of positional arguments, and got "
                f"{show(call)} of type {type(call).__name__}. Write `calls=[(x,), (y,)]`."
            )
    return [tuple(call) for call in calls]


def _signature(fn: Callable, args: tuple, kwargs: dict[str, Any], taken: list[str]) -> Signature:
    """Return the signature of an example call, after testing that JAX can trace its arguments."""
    name = getattr(fn, "__name__", "fn")
    try:
        inspect.signature(fn).bind(*args, **kwargs)
    except TypeError as error:
        remedy = " ".join(taken) or "Pass example arguments after the function, as in a call of it."
        raise TypeError(
            f"check(fn, ...) cannot call `{name}` with these arguments: {error}. {remedy}"
        ) from None
    signature = signature_of(fn, args, kwargs)
    for argument in signature.arguments.values():
        if argument.static and not argument.declared and jit_options(fn) is not None:
            raise TypeError(
                f"check(fn, ...) cannot trace `{name}`: argument `{argument.name}` is {show(argument.value)} "
                f"of type {type(argument.value).__name__}, which is no array, number or tree of them. Pass "
                f"an array, or make it static with `{rules.option('static', fn, signature, argument.name)}`."
            )
    return signature
