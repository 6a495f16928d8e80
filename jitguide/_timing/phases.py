"""What the first call of a jitted function pays for: `phases` times each step apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from jitguide._arguments import refuse_deleted, refuse_tracing, require_seconds
from jitguide._callables import require_function
from jitguide._display import AsData, Displayed, Table, duration
from jitguide._timing.compare import time_alone
from jitguide._timing.first_call import first_call

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BUDGET = 0.2  # seconds; the time of one function needs no more, see the accuracy benchmark
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

    @property
    def first_call(self) -> float:
        """Seconds of the four steps together."""
        return self.trace + self.lower + self.compile + self.first_run

    def break_even(self, eager: float) -> float:
        """Return after how many calls jit has taken no longer than not jitting, first call included.

        After n calls that is `n * eager` against `first_call + (n - 1) * steady`.

        Args:
            eager: Seconds of a call without jit, such as `compare({"plain": f, "jit": jax.jit(f)}, x)["plain"].median`.
                Its verdict says whether the gain is sure: where it is small, so is the certainty of the number.

        Returns:
            A whole number of calls, at least 1; infinity if a jitted call is not faster.

        Raises:
            TypeError: `eager` is not a number.
            ValueError: `eager` is not a positive number of seconds.

        Example:
            >>> from jitguide._timing.phases import Phases
            >>> Phases(trace=0.25, lower=0.25, compile=0.4, first_run=0.1, steady=0.5).break_even(1.0)
            1.0
            >>> Phases(trace=1.0, lower=1.0, compile=7.0, first_run=1.5, steady=0.5).break_even(1.0)
            20.0
        """
        require_seconds(
            "eager", eager, "Time the function by `compare`, and pass `compare(...)[name].median`."
        )
        saved = float(eager) - self.steady
        return float(max(math.ceil((self.first_call - self.steady) / saved), 1)) if saved > 0 else math.inf

    def plot(self, ax: Axes | None = None, *, eager: float | None = None) -> Axes:
        """Draw the steps of the first call as one stacked bar over a later call; needs matplotlib.

        Args:
            ax: Where to draw; a new figure if left out.
            eager: As for `break_even`, whose answer then stands beside the later call.
        """
        from jitguide._timing.plots import plot_phases

        even = None if eager is None else self.break_even(eager)
        return plot_phases({step: getattr(self, step) for step in _STEPS}, self.steady, even, ax)

    def _table(self) -> Table:
        whole = self.first_call or 1  # they may all be zero
        found = {step.replace("_", " "): getattr(self, step) for step in _STEPS}
        steps = [(name, duration(seconds), f"{seconds / whole:.0%}") for name, seconds in found.items()]
        calls = {"first call": self.first_call, "later call": self.steady}
        rows = [*steps, *((name, duration(seconds), "") for name, seconds in calls.items())]
        return Table(("step", "time", "share"), rows, numeric=(1, 2), notes=self.notes, fit=True)


def phases(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Phases:
    """Time the steps of a jitted function's first call apart: trace, lower, compile, first run.

    A new function object is jitted, so that every step is really done, also for a function that has been
    called before. Functions that are jitted inside it and known already are not traced again. It runs many
    times, and a `Ref` that it writes changes each time.

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
    require_function("phases(fn, ...)", fn)
    refuse_tracing("phases", (args, kwargs))
    refuse_deleted((args, kwargs), "Make it again.")
    call = first_call(fn, args, kwargs)
    steady = time_alone(call.fn, call.fresh, once=call.donates, budget=_BUDGET)
    return Phases(**call.seconds, steady=steady, notes=call.notes)
