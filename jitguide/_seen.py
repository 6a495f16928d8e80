"""What a block of code makes JAX do, by function and line, for functions that are not watched themselves."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from jitguide import _events
from jitguide._calls import require_count
from jitguide._render import duration, html_table, table

_HEADER = ("function", "line", "traces", "lowerings", "compiles", "cache reads", "seconds")
_PHASES = ("trace", "lower", "compile", "read")
_NO_REASONS = "To learn why a function compiled, watch it: `watch(fn)` compares the arguments of its calls."
_BLIND = "JAX did not report its work as expected, so nothing was counted."


class Seen:
    """A context manager that counts what its block makes JAX do in this thread; made by `watch()`."""

    def __init__(self) -> None:
        self._found: list[_events.Event] = []
        self._recording: Any = None
        self._counted = True

    def __enter__(self) -> Seen:
        self._counted = _events.can_count()
        self._recording = _events.recording()
        self._found = self._recording.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        self._recording.__exit__(*details)
        self._counted = self._counted and _events.is_listening()

    @property
    def events(self) -> tuple[_events.Event, ...]:
        """Everything that was seen, in order; nested traces end, and stand, before the outer one."""
        return tuple(self._found)

    def count(self, phase: str, of: str | Callable | None = None) -> int:
        """Return how often a phase ("trace", "lower", "compile" or "read") ran, for one function or all.

        Raises:
            ValueError: `phase` is none of the four.
            TypeError: `of` is neither a function nor a name.
            RuntimeError: JAX did not report its work as expected, so there is no number to give.
        """
        if phase not in _PHASES:
            raise ValueError(f"`phase` must be one of {', '.join(map(repr, _PHASES))}, and got {phase!r}.")
        name = _name_of(of)
        if not self._counted:
            raise RuntimeError(_BLIND)
        return sum(e.phase == phase and name in (None, e.function) for e in self._found)

    @property
    def traces(self) -> int:
        """How many traces ran, those of inner functions included."""
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

    def _view(self) -> dict[str, Any]:
        groups: dict[tuple[str, str], list[_events.Event]] = {}
        for event in self._found:
            groups.setdefault((event.function, event.where), []).append(event)
        cells = []
        for (function, where), events in groups.items():
            numbers = [sum(e.phase == phase for e in events) for phase in _PHASES]
            cells.append([function, where, *numbers, duration(sum(e.seconds for e in events))])
        notes = (
            [_BLIND] if not self._counted else [_NO_REASONS] if cells else ["Nothing was traced or compiled."]
        )
        return {"header": _HEADER, "rows": cells, "numeric": range(2, 7), "notes": notes}

    def __repr__(self) -> str:
        return table(**self._view())

    def _repr_html_(self) -> str:
        return html_table(**self._view())

    def to_dict(self) -> dict[str, Any]:
        """Return the events as JSON-ready data."""
        return {"counted": self._counted, "events": [asdict(event) for event in self._found]}


@contextlib.contextmanager
def assert_compiles(expected: int, of: str | Callable | None = None) -> Iterator[Seen]:
    """Fail unless the block compiles exactly `expected` programs in this thread.

    Operations outside of jit compile programs of their own, once each; `of` leaves them out.

    Args:
        expected: Number of programs.
        of: Count only this function; a function or its name.

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
    with Seen() as seen:
        yield seen
    _check(seen, "compile", expected, of)


@contextlib.contextmanager
def assert_traces(expected: int, of: str | Callable | None = None) -> Iterator[Seen]:
    """Fail unless the block traces exactly `expected` times in this thread.

    Args:
        expected: Number of traces.
        of: Count only this function; a function or its name.

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
    with Seen() as seen:
        yield seen
    _check(seen, "trace", expected, of)


def _check(seen: Seen, phase: str, expected: int, of: str | Callable | None) -> None:
    try:
        found = seen.count(phase, of)
    except RuntimeError as error:
        raise AssertionError(str(error)) from None
    if found != expected:
        what = f" of `{_name_of(of)}`" if of is not None else ""
        counts = f"{phase.capitalize()}s{what} in this block: {found}; expected: {expected}."
        raise AssertionError(f"{counts}\n{seen!r}")


def _name_of(function: Any) -> str | None:
    """Return the name under which JAX reports a function; a name and None stand for themselves."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", function)
    if name is None or isinstance(name, str):
        return name
    raise TypeError(
        f"`of` must be a function or its name, and got {name!r} of type {type(name).__name__}. "
        "Leave it out to count all functions."
    )
