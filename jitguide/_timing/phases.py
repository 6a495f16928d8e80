"""What the first call of a jitted function pays for: `phases` times each step apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.stages

from jitguide._arguments import Arguments, is_number, refuse_deleted, refuse_tracing
from jitguide._callables import refuse_ufunc
from jitguide._display import AsData, Displayed, Table, duration
from jitguide._timing.compare import time_alone
from jitguide._timing.equality import Check
from jitguide._timing.first_call import BUDGET, FirstCall, first_call

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEPS = ("trace", "lower", "compile", "first_run")


@dataclass(frozen=True, repr=False)
class Phases(Displayed, AsData):
    """Where the time of a first call goes, in seconds.

    Attributes:
        trace: Running the Python function with tracers, which gives a jaxpr.
        lower: Turning the jaxpr into StableHLO.
        compile: Turning StableHLO into a program for the device, which XLA does. On a GPU it includes autotuning: a
            note then says what a second compile without it took, if the first took long.
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

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the numbers, without the function."""
        return {**vars(self), "_call": None}

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
            TypeError: `eager` is not a number or a function, or returns something that is not an array.
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
        return plot_phases({step: getattr(self, step) for step in _STEPS}, self.steady, even, ax)

    def _table(self) -> Table:
        whole = self.first_call or 1  # they may all be zero
        found = {step.replace("_", " "): getattr(self, step) for step in _STEPS}
        steps = [(name, duration(seconds), f"{seconds / whole:.0%}") for name, seconds in found.items()]
        calls = {"first call": self.first_call, "later call": self.steady}
        rows = [*steps, *((name, duration(seconds), "") for name, seconds in calls.items())]
        return Table(("step", "time", "share"), rows, numeric=(1, 2), notes=self.notes, fit=True)


def phases_of(call: FirstCall, steady: float) -> Phases:
    """Return the steps of a first call beside the seconds of a later one."""
    return Phases(**call.seconds, steady=steady, notes=call.notes, _call=call)


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
    steady = time_alone(call.fn, call.fresh, once=call.donates, budget=BUDGET)
    return phases_of(call, steady)


def _validate(fn: Any, arguments: Arguments) -> None:
    if isinstance(fn, jax.stages.Compiled):
        raise TypeError(
            "`fn` is compiled already: its trace, lowering and compile are over. Pass the function that "
            "it was made from."
        )
    if not callable(fn):
        raise TypeError(
            f"`fn` must be a function, got {type(fn).__name__}, which cannot be called. Pass the "
            "function and its arguments apart: `phases(f, x)`."
        )
    refuse_ufunc("phases(fn, ...)", fn)
    refuse_tracing("phases", arguments)
    refuse_deleted(arguments, "Make it again.")
