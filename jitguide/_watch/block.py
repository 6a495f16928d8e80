"""What a block of code makes JAX do, by function and line, for functions that are not watched themselves."""

import contextlib
import difflib
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, Self

import jax
import jax.numpy

from jitguide import _monitoring
from jitguide._callables import jitted_in
from jitguide._display import Displayed, Table, duration
from jitguide._watch.call_log import Wanted, require_count

_HEADER = ("function", "line", "traces", "lowered", "compiled", "read", "time")
_PHASES = ("trace", "lower", "compile", "read")
_LISTED, _NAMED = 20, 2  # executables in a message, functions in notes
_NO_REASONS = "To learn why a function compiled, watch it: `watch(fn)` compares the arguments of its calls."
_OFTEN = 3  # executables for the same shapes; a second one is often due to a weak type or a commitment
_RECREATED = (
    "`{}`{} compiled {} times for the same shapes. If a loop passes a new function to `jax.jit` in each iteration, "
    "such as a lambda or a partial, make the jitted function once, outside of the loop. If not, a static value may change."
)
_INNER = (
    "JAX does not report every trace: not that of a jitted function inside another trace, nor under grad or "
    "vmap outside of jit. To count those, count in the function's body, which runs once per trace."
)
_BLIND = "JAX did not report its work as expected, so nothing was counted."
_ELSEWHERE = "Other threads traced or compiled meanwhile; `watch()` counts its own thread."
_monitoring.ensure_listening()  # so that names of functions are known that compile before the first block


class WatchedBlock(Displayed):
    """A context manager that counts what its block makes JAX do in this thread; made by `watch()`.

    It counts what JAX reports, under the names of functions. The trace of a jitted function is not reported
    where another trace contains it, nor under `grad` or `vmap` outside of jit. Of two tasks of asyncio, each counts its own.
    """

    def __init__(self) -> None:
        self._found: list[_monitoring.Event] = []
        self._counted = True
        self._elsewhere = False

    def __enter__(self) -> Self:
        self._counted = _monitoring.can_count()
        self._open = contextlib.ExitStack()
        self._open.enter_context(_monitoring.logged())
        self._found = self._open.enter_context(_monitoring.recording())
        self._before = sum(dict(_monitoring.WORK).values())
        return self

    def __exit__(self, *details: Any) -> None:
        work = sum(dict(_monitoring.WORK).values()) - self._before
        self._open.close()
        self._found = [*self._found]  # a task that this block started may go on
        self._counted = self._counted and _monitoring.is_listening()
        self._elsewhere = work > len(self._found)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_open": None}

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
            TypeError: `of` is not a function or a name.
            RuntimeError: JAX did not report its work as expected, so there is no number to give.
        """
        if phase not in _PHASES:
            raise ValueError(f"`phase` must be one of {', '.join(map(repr, _PHASES))}, got {phase!r}.")
        return len(self._which((phase,), _name_of(of)))

    def _which(self, phases: tuple[str, ...], name: str | None) -> list[_monitoring.Event]:
        if not self._counted:
            raise RuntimeError(_BLIND)
        return [e for e in self._found if e.phase in phases and name in (None, e.function)]

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
            key = (event.function, event.where) if _is_your_own(event) else ("operations of JAX", "")
            groups.setdefault(key, []).append(event)
        rows = sorted(groups.items(), key=lambda row: -_seconds(row[1]))
        rows += [(("all", ""), self._found)] if len(rows) > 1 else []
        cells = []
        for key, events in rows:
            numbers = [sum(event.phase == phase for event in events) for phase in _PHASES]
            cells.append([*key, *numbers, duration(_seconds(events))])
        notes = [*self._recreated(), _NO_REASONS] if cells else ["Nothing was traced or compiled here."]
        notes = [*(notes if self._counted else [_BLIND]), *([_ELSEWHERE] if self._elsewhere else [])]
        return Table(_HEADER, cells, numeric=range(2, 7), notes=notes, fit=True)

    def _recreated(self) -> list[str]:
        """Return a note on each function that was compiled several times for the same shapes, the most often first."""
        made = [e for e in self._found if e.phase in ("compile", "read") and e.shapes and _is_your_own(e)]
        often: dict[tuple[str, str], int] = {}
        for (name, where, _), count in Counter((e.function, e.where, e.shapes) for e in made).most_common():
            if count >= _OFTEN:
                often.setdefault((name, where), count)
        named = [(name, where and f" at {where}", count) for (name, where), count in often.items()]
        return [_RECREATED.format(*one) for one in named[:_NAMED]]

    def to_dict(self) -> dict[str, Any]:
        """Return the events as JSON-ready data."""
        return {"counted": self._counted, "events": [asdict(event) for event in self._found]}


def _seconds(events: list[_monitoring.Event]) -> float:
    return sum(event.seconds for event in events)


def _is_your_own(event: _monitoring.Event) -> bool:
    """Return whether it is about no operation of JAX, such as `add`, which compiles by itself outside of jit."""
    name = event.function.strip("_")
    return event.yours or not any(hasattr(module, name) for module in (jax.numpy, jax.lax, jax.random))


def assert_compiles(
    expected: int | None = None, of: str | Callable[..., Any] | None = None, *, at_most: int | None = None
) -> contextlib.AbstractContextManager[WatchedBlock]:
    """Fail unless the block makes exactly `expected` executables in this thread, or in `asyncio.to_thread`.

    An executable that is read from the persistent cache counts like one that is compiled, so a test gives
    the same result with and without that cache. What the process made before counts for nothing: to be
    independent of the order of tests, give `at_most`, or clear the function's cache first.
    Use it in a `with` statement: on a line of its own it checks nothing but its arguments.
    Operations outside of jit make executables of their own, once each; `of` leaves them out.

    Args:
        expected: Number of executables.
        of: Count only functions of this name; a function stands for its name.
        at_most: The largest number, in place of `expected`.

    Raises:
        AssertionError: Another number was made; the message lists them with their lines and shapes.
        ValueError: No function of the name `of` was seen at work: it is misspelt, or of a function around the jitted one.
        TypeError: The count is not an integer, two or no counts are given, or `of` is not a function or a name.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jitguide import assert_compiles
        >>> double = jax.jit(lambda x: x * 2)
        >>> x = jnp.ones(3)
        >>> with assert_compiles(1):
        ...     for _ in range(3):
        ...         x = double(x)
    """
    return _asserted(("compile", "read"), require_count(expected, at_most), of, _name_of(of))


def assert_traces(
    expected: int | None = None, of: str | Callable[..., Any] | None = None, *, at_most: int | None = None
) -> contextlib.AbstractContextManager[WatchedBlock]:
    """Fail unless the block traces exactly `expected` times in this thread.

    The block must call the jitted function, `lower` it or pass it to `make_jaxpr`: JAX does not report the
    trace of a jitted function inside another one, nor under `grad` or `vmap` outside of jit.

    Arguments and errors are those of `assert_compiles`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jitguide import assert_traces
        >>> double = jax.jit(lambda x: x * 2)
        >>> x = jnp.ones(3)
        >>> with assert_traces(1, of="<lambda>"):
        ...     x = double(double(x))
    """
    return _asserted(("trace",), require_count(expected, at_most), of, _name_of(of))


@contextlib.contextmanager
def _asserted(
    phases: tuple[str, ...], wanted: Wanted, of: str | Callable[..., Any] | None, name: str | None
) -> Iterator[WatchedBlock]:
    __tracebackhide__ = True
    with WatchedBlock() as seen:
        yield seen
    try:
        found = seen._which(phases, name)
    except RuntimeError as error:
        raise AssertionError(str(error)) from None
    _require_known(of, name)
    if not wanted.fits(len(found)):
        what = f" of `{name}`" if name is not None else ""
        counts = f"{phases[0].capitalize()}s{what} in this block: {len(found)}; expected: {wanted}."
        made = [f"  {e.function}({e.shapes}) at {e.where or 'an unknown line'}\n" for e in found[:_LISTED]]
        more = [f"  and {len(found) - _LISTED} more\n"] if len(found) > _LISTED else []
        hint = _hint(phases[0], len(found), wanted, of)
        raise AssertionError("".join([counts, "\n", *made, *more, hint, repr(seen)]))


def _require_known(of: str | Callable[..., Any] | None, name: str | None) -> None:
    """Raise if JAX has not reported a function of this name; a jitted one that was not called yet may be meant."""
    if name is None or name in _monitoring.WORK or (callable(of) and jitted_in(of) is not None):
        return
    close = difflib.get_close_matches(name, [*_monitoring.WORK], n=3)
    meant = f"; did you mean {' or '.join(map(repr, close))}?" if close else "."
    given = repr(of) if isinstance(of, str) else f"not a jitted function, its name is {name!r}"
    raise ValueError(
        f"`of` is {given}, and no function of that name was traced or compiled in this process{meant} "
        "Pass the jitted function itself."
    )


def _hint(phase: str, found: int, wanted: Wanted, of: str | Callable[..., Any] | None) -> str:
    if found < wanted.number and phase == "trace":
        return f"{_INNER}\n"
    if found < wanted.number:
        return "What was made before the block is not made again.\n"
    if callable(of):
        return f"JAX reports names only: another function named `{_name_of(of)}` counts too.\n"
    return ""


def _name_of(function: Any) -> str | None:
    """Return the name under which JAX reports a function; a name and None stand for themselves."""
    inner = jitted_in(function) if callable(function) else None
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function if inner is None else inner, "__name__", function)
    if name is None or isinstance(name, str):
        return name
    raise TypeError(
        f"`of` must be a function or its name, got {name!r} of type {type(name).__name__}. "
        "Leave it out to count all functions."
    )
