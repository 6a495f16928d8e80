"""What a block of code makes JAX do, by function and line, for functions that are not watched themselves."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from jitguide import _monitoring
from jitguide._display import Displayed, Table, duration
from jitguide._watch.call_log import require_count

_HEADER = ("function", "line", "traces", "lowerings", "compiles", "cache reads", "seconds")
_PHASES = ("trace", "lower", "compile", "read")
_NO_REASONS = "To learn why a function compiled, watch it: `watch(fn)` compares the arguments of its calls."
_INNER = (
    "JAX does not report every trace: not that of a jitted function inside another trace, nor under grad or "
    "vmap outside of jit. To count those, count in the function's body, which runs once per trace."
)
_BLIND = "JAX did not report its work as expected, so nothing was counted."


class WatchedBlock(Displayed):
    """A context manager that counts what its block makes JAX do in this thread; made by `watch()`.

    It counts what JAX reports, under the names of functions. The trace of a jitted function is not reported
    where another trace contains it, nor under `grad` or `vmap` outside of jit.
    """

    def __init__(self) -> None:
        self._found: list[_monitoring.Event] = []
        self._recording: Any = None
        self._counted = True

    def __enter__(self) -> WatchedBlock:
        self._counted = _monitoring.can_count()
        self._recording = _monitoring.recording()
        self._found = self._recording.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        self._recording.__exit__(*details)
        self._counted = self._counted and _monitoring.is_listening()

    @property
    def events(self) -> tuple[_monitoring.Event, ...]:
        """Everything that was seen, in the order in which it ended."""
        return tuple(self._found)

    def count(self, phase: str, of: str | Callable[..., Any] | None = None) -> int:
        """Return how often a phase ("trace", "lower", "compile" or "read") ran, for all functions or some.

        Args:
            phase: The phase.
            of: Count only functions of this name; a function stands for its name.

        Raises:
            ValueError: `phase` is none of the four.
            TypeError: `of` is neither a function nor a name.
            RuntimeError: JAX did not report its work as expected, so there is no number to give.
        """
        if phase not in _PHASES:
            raise ValueError(f"`phase` must be one of {', '.join(map(repr, _PHASES))}, got {phase!r}.")
        name = _name_of(of)
        if not self._counted:
            raise RuntimeError(_BLIND)
        return sum(e.phase == phase and name in (None, e.function) for e in self._found)

    @property
    def traces(self) -> int:
        """Number of traces that JAX reported; it leaves out those inside another trace, and under `grad` or `vmap`."""
        return self.count("trace")

    @property
    def lowerings(self) -> int:
        """How many lowerings to StableHLO ran."""
        return self.count("lower")

    @property
    def compiles(self) -> int:
        """How many programs XLA compiled; reads from the persistent cache are not among them."""
        return self.count("compile")

    @property
    def cache_reads(self) -> int:
        """How many programs were read from the persistent cache."""
        return self.count("read")

    def _table(self) -> Table:
        groups: dict[tuple[str, str], list[_monitoring.Event]] = {}
        for event in self._found:
            groups.setdefault((event.function, event.where), []).append(event)
        cells = []
        for (function, where), events in groups.items():
            numbers = [sum(e.phase == phase for e in events) for phase in _PHASES]
            cells.append([function, where, *numbers, duration(sum(e.seconds for e in events))])
        notes = (
            [_BLIND] if not self._counted else [_NO_REASONS] if cells else ["Nothing was traced or compiled."]
        )
        return Table(_HEADER, cells, numeric=range(2, 7), notes=notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the events as JSON-ready data."""
        return {"counted": self._counted, "events": [asdict(event) for event in self._found]}


@contextlib.contextmanager
def assert_compiles(expected: int, of: str | Callable[..., Any] | None = None) -> Iterator[WatchedBlock]:
    """Fail unless the block compiles exactly `expected` programs in this thread.

    Operations outside of jit compile programs of their own, once each; `of` leaves them out.

    Args:
        expected: Number of programs.
        of: Count only functions of this name; a function stands for its name, and a misspelt name counts
            nothing.

    Raises:
        AssertionError: Another number was compiled; the message lists them with their lines.
        TypeError: `expected` is no number, or `of` neither a function nor a name.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jitguide import assert_compiles
        >>> double = jax.jit(lambda x: x * 2)
        >>> x = jnp.ones(3)
        >>> with assert_compiles(1):
        ...     for _ in range(3):
        ...         x = double(x)
    """
    require_count(expected)
    _name_of(of)  # raises before the block runs
    with WatchedBlock() as seen:
        yield seen
    _check(seen, "compile", expected, of)


@contextlib.contextmanager
def assert_traces(expected: int, of: str | Callable[..., Any] | None = None) -> Iterator[WatchedBlock]:
    """Fail unless the block traces exactly `expected` times in this thread.

    The block must call the jitted function, `lower` it or pass it to `make_jaxpr`: JAX does not report the
    trace of a jitted function inside another one, nor under `grad` or `vmap` outside of jit.

    Args:
        expected: Number of traces.
        of: Count only functions of this name; a function stands for its name, and a misspelt name counts
            nothing.

    Raises:
        AssertionError: Another number was traced; the message lists them with their lines.
        TypeError: `expected` is no number, or `of` neither a function nor a name.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jitguide import assert_traces
        >>> double = jax.jit(lambda x: x * 2)
        >>> x = jnp.ones(3)
        >>> with assert_traces(1, of="<lambda>"):
        ...     x = double(double(x))
    """
    require_count(expected)
    _name_of(of)  # raises before the block runs
    with WatchedBlock() as seen:
        yield seen
    _check(seen, "trace", expected, of)


def _check(seen: WatchedBlock, phase: str, expected: int, of: str | Callable[..., Any] | None) -> None:
    try:
        found = seen.count(phase, of)
    except RuntimeError as error:
        raise AssertionError(str(error)) from None
    if found != expected:
        what = f" of `{_name_of(of)}`" if of is not None else ""
        counts = f"{phase.capitalize()}s{what} in this block: {found}; expected: {expected}."
        hint = _hint(phase, found, expected, of)
        raise AssertionError(f"{counts}\n{hint}{seen!r}")


def _hint(phase: str, found: int, expected: int, of: str | Callable[..., Any] | None) -> str:
    if found < expected and phase == "trace":
        return f"{_INNER}\n"
    if found > expected and callable(of):
        return f"JAX reports names only: another function named `{_name_of(of)}` counts too.\n"
    return ""


def _name_of(function: Any) -> str | None:
    """Return the name under which JAX reports a function; a name and None stand for themselves."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", function)
    if name is None or isinstance(name, str):
        return name
    raise TypeError(
        f"`of` must be a function or its name, got {name!r} of type {type(name).__name__}. "
        "Leave it out to count all functions."
    )
