"""Look over a jitted function as a doctor would, and say what costs time or memory for nothing."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.stages

from jitguide import _jaxprs, _rules
from jitguide._costs import Costs, compile_costs, run_costs
from jitguide._jitted import require_jitted
from jitguide._render import html_table
from jitguide._rules import Finding
from jitguide._signature import Signature, show, signature_of
from jitguide._variants import refuse_deleted
from jitguide._watch import Watched, at_top_level

LOOKED_AT = (
    "retraces",
    "static values",
    "captured constants",
    "unrolled loops",
    "donation",
    "host round trips",
    "break-even",
)


@dataclass(frozen=True)
class Findings:
    """What `check` found.

    Attributes:
        function: Name of the function.
        findings: The findings; empty if all is well.
        costs: Seconds of the phases and of one call; None where not measured.
        note: What could not be looked at, if anything.
    """

    function: str
    findings: tuple[Finding, ...]
    costs: Costs
    note: str = ""

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the findings, in order."""
        return tuple(finding.kind for finding in self.findings)

    def _notes(self) -> list[str]:
        return [line for line in (str(self.costs), self.note) if line]

    def _title(self) -> str:
        count = len(self.findings)
        if not count:
            return f"{self.function}: nothing found. Looked at {', '.join(LOOKED_AT)}."
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
    traced and compiled, never run.

    Args:
        fn: A jitted function.
        args: Positional arguments of one example call, or `jax.ShapeDtypeStruct` in place of arrays.
        calls: Further example calls as tuples of positional arguments: real calls show real retraces. Without
            `args` and `kwargs`, the first of them is the example that is looked at closely.
        run: Whether the function may be run, jitted and plain, to find the break-even.
        kwargs: Keyword arguments of the example call, and of all `calls`.

    Raises:
        TypeError: `fn` is not a jitted function, or cannot be called with the arguments.
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
    examples = [bound + call for call in _validated(calls)]
    if args or kwargs or not examples:
        examples.insert(0, bound + args)
    signatures = [_signature(fn, example, kwargs) for example in examples]
    name, first, signature = getattr(fn, "__name__", "fn"), examples[0], signatures[0]
    found = [*_rules.retraces(name, signatures), *_rules.statics(signatures)]
    if not all(_rules.is_hashable(a.value) for a in signature.arguments.values() if a.static):
        return Findings(name, tuple(found), Costs(), "Nothing else was looked at: it cannot be traced.")
    costs, traced, lowered = compile_costs(fn, first, kwargs)
    found += [
        *_rules.carries(signature, traced),
        *_rules.constants(fn, traced),
        *_rules.unrolled(traced),
        *_rules.donation(signature, lowered),
    ]
    host = _jaxprs.host_calls(traced.jaxpr)
    found += _rules.host(host)
    if run and not host and not _is_abstract(first, kwargs):
        refuse_deleted((first, kwargs), "Make it again, or pass `run=False`, which needs its shape only.")
        costs = run_costs(costs, fn, first, kwargs, copy=_donates(lowered))
        found += _rules.break_even(costs)
    return Findings(name, tuple(found), costs)


def _unwrap(fn: Any) -> tuple[Callable, tuple]:
    """Return the jitted function, and the object if it is a method of one."""
    bound = ()
    if isinstance(fn, types.MethodType) and isinstance(fn.__func__, jax.stages.Wrapped):
        fn, bound = fn.__func__, (fn.__self__,)
    fn = fn._fn if isinstance(fn, Watched) else fn
    require_jitted("check(fn, ...)", fn)
    if not at_top_level():
        raise RuntimeError(
            "check(fn, ...) compiles and runs the function, which cannot be done inside a function that is "
            "being traced. Call it outside of jit, grad and vmap."
        )
    return fn, bound


def _validated(calls: Any) -> list[tuple]:
    """Return the example calls as tuples of positional arguments."""
    for call in calls if isinstance(calls, list | tuple) else (calls,):
        if not isinstance(call, list | tuple):
            raise TypeError(
                "`calls` must be a list of example calls, each a tuple of positional arguments, and got "
                f"{show(call)} of type {type(call).__name__}. Write `calls=[(x,), (y,)]`."
            )
    return [tuple(call) for call in calls]


def _signature(fn: Callable, args: tuple, kwargs: dict[str, Any]) -> Signature:
    """Return the signature of an example call, after testing that JAX can trace its arguments."""
    name = getattr(fn, "__name__", "fn")
    try:
        inspect.signature(fn).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(
            f"check(fn, ...) cannot call `{name}` with these arguments: {error}. Pass example arguments "
            "after the function, as in a call of it."
        ) from None
    signature = signature_of(fn, args, kwargs)
    for argument in signature.arguments.values():
        if argument.static and not argument.declared:
            raise TypeError(
                f"check(fn, ...) cannot trace `{name}`: argument `{argument.name}` is {show(argument.value)} "
                f"of type {type(argument.value).__name__}, which is no array, number or tree of them. Pass "
                f"an array, or name it in `static_argnames`."
            )
    return signature


def _is_abstract(args: tuple, kwargs: dict[str, Any]) -> bool:
    return any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs)))


def _donates(lowered: jax.stages.Lowered) -> bool:
    return any(info.donated for info in jax.tree.leaves(lowered.args_info))
