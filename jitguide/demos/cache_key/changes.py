"""Change one thing about a call, and count what JAX does: the experiment behind the table of the cache key.

Runs of the Python body are counted by a wrapper, lowerings and compiles by `jitguide.watch`. Whether a call
left the fast path is told by Python's profiler: a call on the fast path runs no Python code of JAX's module for
jit. (`jax.no_tracing()` would tell as well, but a first call that it refuses keeps that signature slow.)
"""

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any

import jax

from jitguide import _jax, watch
from jitguide._display import Displayed, Table

_HEADER = ("change", "fast path", "traces", "lowerings", "compiles")
_NOT_KNOWN = "Whether a call left the fast path is not known: JAX does not expose its module for jit."
_bodies_run = 0


def counted(body: Callable[..., Any]) -> Callable[..., Any]:
    """Return a new function that does what `body` does; `Changes` counts how often its Python code runs.

    Each call returns another function, so that an experiment can start with one that JAX has never seen.

    Example:
        >>> from jitguide.demos.cache_key import counted
        >>> counted(abs)(-2)
        2
    """

    @functools.wraps(body)
    def function(*args: Any, **kwargs: Any) -> Any:
        global _bodies_run
        _bodies_run += 1
        return body(*args, **kwargs)

    return function


@dataclass(frozen=True)
class Change:
    """What one changed call made JAX do.

    Attributes:
        what: The change, in words.
        fast: Whether the call stayed on the fast path; None for what is not a call of a jitted function, and where
            JAX does not expose it.
        traces: How often the Python code of a `counted` body ran.
        lowerings: How many programs were lowered to StableHLO.
        compiles: How many programs were compiled, or read from the persistent cache.
    """

    what: str
    fast: bool | None
    traces: int
    lowerings: int
    compiles: int

    @property
    def work(self) -> str:
        """The row in words, such as "hit", "leaves the fast path" or "lowers, compiles"."""
        counts = {"traces": self.traces, "lowers": self.lowerings, "compiles": self.compiles}
        done = ", ".join(step for step, count in counts.items() if count)
        quiet = "hit" if _jax.jit_file() else "not known"
        return done or ("leaves the fast path" if self.fast is False else quiet)


class Changes(Displayed):
    """A table of changed calls, filled row by row with `see` and `count`.

    Warm the function up first, then change one thing at a time. Each row builds on those before it: what was
    compiled once stays compiled.

    Args:
        title: What the changes have in common.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jitguide.demos.cache_key import Changes, counted
        >>> f = jax.jit(counted(jnp.sin))
        >>> table = Changes("Shape")
        >>> _ = f(jnp.ones(3))
        >>> table.see("as before", f, jnp.ones(3))
        >>> table.see("longer", f, jnp.ones(4))
        >>> print(table)
        Shape
        change     fast path  traces  lowerings  compiles
        as before  hit             –          –         –
        longer     left            1          1         1
    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.rows: list[Change] = []

    def see(self, what: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Call a jitted function, and add a row for what that made JAX do.

        Args:
            what: The change, in words.
            call: The jitted function.
            args: Passed to it; they are made before anything is counted.
            kwargs: The same, by keyword.
        """
        self._add(what, lambda: call(*args, **kwargs), has_fast_path=True)

    def count(self, what: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Add a row for something other than a call, such as `f.lower`, which has no fast path."""
        self._add(what, lambda: call(*args, **kwargs), has_fast_path=False)

    def _add(self, what: str, action: Callable[[], Any], has_fast_path: bool) -> None:
        before = _bodies_run
        with watch() as seen, _python_of_jit() as frames:
            jax.block_until_ready(action())
        fast = not frames if has_fast_path and _jax.jit_file() else None
        compiles = seen.compiles + seen.cache_reads
        self.rows.append(Change(what, fast, _bodies_run - before, seen.lowerings, compiles))

    def counts(self) -> Counter[str]:
        """Return how many rows there are of each kind of work; see `Change.work`."""
        return Counter(row.work for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as JSON-ready data."""
        return {"title": self.title, "rows": [asdict(row) for row in self.rows]}

    def _table(self) -> Table:
        path = {True: "hit", False: "left", None: ""}
        counts = ((row, (row.traces, row.lowerings, row.compiles)) for row in self.rows)
        cells = [[row.what, path[row.fast], *(n or "–" for n in numbers)] for row, numbers in counts]
        notes = [] if _jax.jit_file() else [_NOT_KNOWN]
        return Table(_HEADER, cells, numeric=(2, 3, 4), title=self.title, notes=notes)


@contextmanager
def _python_of_jit() -> Iterator[list[str]]:
    """Collect the names of the functions of JAX's module for jit that the block runs in this thread."""
    names: list[str] = []
    file = _jax.jit_file()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename == file:
            names.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield names
    finally:
        sys.setprofile(before)
