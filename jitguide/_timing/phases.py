"""What the first call of a jitted function pays for: `phases` times each step apart."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.stages

from jitguide import _monitoring
from jitguide._arguments import (
    Arguments,
    copies,
    donates_any,
    donates_object,
    is_number,
    refuse_deleted,
    refuse_tracing,
)
from jitguide._callables import fresh_jit, reached
from jitguide._display import AsData, Displayed, Table, duration
from jitguide._timing.compare import compare, time_alone
from jitguide._timing.equality import Check

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEPS = ("trace", "lower", "compile", "first_run")
_STEADY_BUDGET = 0.2  # seconds; the time of one function needs no more, see the accuracy benchmark


@dataclass(frozen=True, repr=False)
class Phases(Displayed, AsData):
    """Where the time of a first call goes, in seconds.

    Attributes:
        trace: Running the Python function with tracers, which gives a jaxpr.
        lower: Turning the jaxpr into StableHLO.
        compile: Turning StableHLO into a program for the device, which XLA does.
        first_run: Running that program for the first time, and filling the caches of the call.
        steady: A later call, which does nothing of the above.
        notes: Sentences on what to bear in mind.
    """

    trace: float
    lower: float
    compile: float
    first_run: float
    steady: float
    notes: tuple[str, ...] = ()
    _derived: ClassVar = ("first_call",)
    _call: FirstCall | None = field(default=None, repr=False, compare=False)

    @property
    def first_call(self) -> float:
        """Seconds of the four steps together."""
        return self.trace + self.lower + self.compile + self.first_run

    def break_even(self, eager: float | Callable[..., Any], *, check: Check = 1e-3) -> float:
        """Return after how many calls jit has taken no longer than not jitting, first call included.

        After n calls that is `n * eager` against `first_call + (n - 1) * steady`.

        Args:
            eager: Seconds of a call without jit; or the function, which is then timed side by side with the
                jitted one on the same arguments.
            check: How closely the results of that function have to agree with the jitted one's, as for
                `compare`.

        Returns:
            A whole number of calls, at least 1; infinity if a jitted call is not clearly faster. Where it is
            only a little faster, the gain is known roughly, and so is the number.

        Raises:
            TypeError: `eager` is neither a number nor a function, or returns something that is no array.
            ValueError: `eager` is not a positive number of seconds, or its results disagree.

        Example:
            >>> from jitguide._timing.phases import Phases
            >>> Phases(trace=0.25, lower=0.25, compile=0.4, first_run=0.1, steady=0.5).break_even(1.0)
            1.0
            >>> Phases(trace=1.0, lower=1.0, compile=7.0, first_run=1.5, steady=0.5).break_even(1.0)
            20.0
        """
        if callable(eager):
            if self._call is None:
                raise ValueError(
                    "`eager` is a function, and these phases hold no arguments to call it with. Pass its seconds."
                )
            eager = self._call.seconds_of(eager, self.steady, check)
        if not is_number(eager):
            raise TypeError(
                f"`eager` must be the seconds of a call without jit, or the function, got {eager!r}. "
                "Pass the function itself to have it timed."
            )
        if not 0 < eager < math.inf:
            raise ValueError(
                f"`eager` must be a positive number of seconds, got {eager!r}. Pass the function itself to "
                "have it timed."
            )
        saved = float(eager) - self.steady
        return float(max(math.ceil((self.first_call - self.steady) / saved), 1)) if saved > 0 else math.inf

    def plot(
        self, ax: Axes | None = None, *, eager: float | Callable[..., Any] | None = None, check: Check = 1e-3
    ) -> Axes:
        """Draw the steps of the first call as one stacked bar over a later call; needs matplotlib.

        Args:
            ax: Where to draw; a new figure if left out.
            eager: As for `break_even`, whose answer then stands beside the later call.
            check: As for `break_even`.
        """
        from jitguide._timing.plots import plot_phases

        even = None if eager is None else self.break_even(eager, check=check)
        return plot_phases(self, even, ax)

    def _rows(self) -> list[tuple[str, str, str]]:
        rows = [
            (step.replace("_", " "), duration(getattr(self, step)), f"{self._share(step):.0%}")
            for step in _STEPS
        ]
        return [
            *rows,
            ("first call", duration(self.first_call), ""),
            ("later call", duration(self.steady), ""),
        ]

    def _share(self, step: str) -> float:
        return getattr(self, step) / self.first_call if self.first_call else 0.0

    def _table(self) -> Table:
        return Table(("step", "time", "share"), self._rows(), numeric=(1, 2), notes=self.notes)


def phases(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Phases:
    """Time the steps of a jitted function's first call apart: trace, lower, compile, first run.

    A new function object is jitted, so that every step is really done, also for a function that has been
    called before. Functions that are jitted inside it and known already are not traced again.

    Args:
        fn: A plain function, or a jitted one, whose options (static and donated arguments, shardings)
            are kept.
        *args: Positional arguments of the call. If `fn` donates them, copies are passed, and of the object
            of a method as well.
        **kwargs: Keyword arguments of the call.

    Returns:
        `Phases`, in seconds.

    Raises:
        TypeError: `fn` is not a function that jit accepts.
        ValueError: An argument was deleted.
        RuntimeError: It was called inside a trace.

    Example:
        >>> import jax.numpy as jnp
        >>> from jitguide import phases
        >>> cost = phases(lambda x: jnp.sin(x) + 1, jnp.ones(100))
        >>> cost.compile > cost.steady
        True
    """
    _validate(fn, (args, kwargs))
    call = first_call(fn, args, kwargs)
    steady = time_alone(call.fn, call.fresh, once=call.donates, budget=_STEADY_BUDGET)
    return call.phases(steady)


@dataclass(frozen=True)
class FirstCall:
    """A first call that has been made and timed.

    Attributes:
        seconds: Seconds of each of its steps.
        fn: The jitted function with what is bound to it; its caches hold this call.
        arguments: Of the call. Donated ones are still there.
        donates: Whether the function donates some of them.
        bound: How many of the positional arguments were bound to the function that the caller passed.
        notes: Sentences on what to bear in mind.
    """

    seconds: dict[str, float]
    fn: Callable[..., Any]
    arguments: Arguments
    donates: bool
    bound: int
    notes: tuple[str, ...]

    def fresh(self) -> Arguments:
        """Return arguments for one more call."""
        return copies(self.arguments) if self.donates else self.arguments

    def phases(self, steady: float) -> Phases:
        """Return the steps beside the seconds of a later call."""
        return Phases(**self.seconds, steady=steady, notes=self.notes, _call=self)

    def seconds_of(
        self, eager: Callable[..., Any], steady: float, check: Check, budget: float = _STEADY_BUDGET
    ) -> float:
        """Return the seconds of a call of `eager`: those of a jitted one where the two cannot be told apart.

        The ratio is sure where the times are not, so it is applied to `steady`, the time of a jitted call.
        """
        # Arguments travel as one pair, so that no keyword can clash with an option of `compare`.
        variants = {
            "jit": lambda arguments: self.fn(*arguments[0], **arguments[1]),
            "eager": lambda arguments: eager(*arguments[0][self.bound :], **arguments[1]),
        }
        how: dict[str, Any] = {"control": False, "budget": budget, "check": check}
        try:
            if self.donates:
                result = compare(variants, setup=lambda: (self.fresh(),), **how)
            else:
                result = compare(variants, self.arguments, **how)
        except Exception as error:
            error.add_note(
                "'jit' is the function given to `phases`, 'eager' the one given to `break_even`, which takes "
                "`check` as `compare` does, and copies donated arguments itself."
            )
            raise
        if result.verdict("eager") != "slower":
            return steady  # a gain that cannot be told from noise is not a gain
        return steady / result.speedup("eager").value


def first_call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> FirstCall:
    """Make the first call of a function that no cache of JAX knows, and time its steps."""
    fn, bound, named = reached(fn)
    named = {name: value for name, value in named.items() if name not in kwargs}
    jitted, notes = fresh_jit(fn)
    seconds: dict[str, float] = {}
    _monitoring.ensure_listening()
    with _monitoring.recording() as events:
        traced = _timed(seconds, "trace", lambda: jitted.trace(*bound, *args, **named, **kwargs))
        lowered = _timed(seconds, "lower", lambda: traced.lower())
        _timed(seconds, "compile", lambda: lowered.compile())
    donates = donates_any(lowered.args_info)
    if donates_object(bound, lowered.args_info[0]):
        args = (*bound, *args)
    else:
        jitted, bound = functools.partial(jitted, *bound) if bound else jitted, ()
    call = functools.partial(jitted, **named) if named else jitted
    found = FirstCall(seconds, call, (args, kwargs), donates, len(bound), notes + _notes(events))
    arguments = found.fresh()
    # The stages above have filled the caches of the function: this call traces and compiles nothing.
    _timed(seconds, "first_run", lambda: jax.block_until_ready(call(*arguments[0], **arguments[1])))
    return found


def _validate(fn: Any, arguments: Arguments) -> None:
    if isinstance(fn, jax.stages.Compiled):
        raise TypeError(
            "`fn` is a compiled program, whose trace, lowering and compile are past. Pass the function that "
            "it was made from."
        )
    if not callable(fn):
        raise TypeError(
            f"`fn` must be a function, got {type(fn).__name__}, which cannot be called. Pass the "
            "function and its arguments apart: `phases(f, x)`."
        )
    refuse_tracing("phases", arguments)
    refuse_deleted(arguments, "Make it again.")


def _timed(seconds: dict[str, float], step: str, action: Callable[[], Any]) -> Any:
    start = perf_counter()
    result = action()
    seconds[step] = perf_counter() - start
    return result


def _notes(events: Iterable[_monitoring.Event]) -> tuple[str, ...]:
    notes = []
    if any(event.phase == "read" for event in events):
        notes.append("The program came from the persistent cache: `compile` is the time of reading it.")
    if jax.config.jax_disable_jit:
        notes.append(
            "`jax_disable_jit` is on: first run and later call ran one operation at a time, without the "
            "program that was compiled."
        )
    return tuple(notes)
