"""Watch a jitted function: what each call made JAX do, and why."""

from __future__ import annotations

import functools
import threading
import types
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, overload

import jax
import jax.stages

from jitguide import _events
from jitguide._calls import HEADER, NUMERIC, OUTCOMES, Call, advices, rows
from jitguide._history import history_of
from jitguide._reasons import COMPILE, FAST, TRACE, Reason, reason
from jitguide._render import html_table, table
from jitguide._seen import Seen
from jitguide._signature import Signature, signature_of

_NOT_COUNTED = (
    "JAX's events could not be counted: the self-test failed, or another program removed the listener. "
    "Outcomes marked \"not counted\" are unknown."
)


@overload
def watch(fn: None = None) -> Seen: ...
@overload
def watch(fn: Callable, *, static: Iterable[str] = ()) -> Watched: ...
def watch(fn: Callable | None = None, *, static: Iterable[str] = ()) -> Watched | Seen:
    """Return `fn` in a form that records what each call made JAX do, and why.

    Without a function, return a context manager that records what the code in its block makes JAX do, by
    function and line, but without reasons: those need the arguments of the calls.

    Args:
        fn: A jitted function. The result is called in its place.
        static: Names of static parameters; needed only where JAX does not tell them.

    Raises:
        TypeError: `fn` is not a jitted function.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jitguide import watch
        >>> double = watch(jax.jit(lambda x: x * 2))
        >>> for n in (3, 3, 4):
        ...     _ = double(jnp.ones(n))
        >>> [call.outcome for call in double.calls]
        ['compiled', 'hit', 'compiled']
        >>> print(double.last.reason)
        `x` changed shape, float32[3] → float32[4]: jit compiles once per shape. Pad to a few sizes, or mask.
    """
    if fn is None:
        return Seen()
    if isinstance(fn, Watched):
        return Watched(fn._fn, static)
    _refuse_what_is_not_jitted(fn)
    return Watched(fn, static)


def _refuse_what_is_not_jitted(fn: Any) -> None:
    if isinstance(fn, jax.stages.Compiled):
        raise TypeError(
            "watch(fn) needs a jitted function, and this is a compiled program: it never traces or compiles "
            "again, so there is nothing to watch. Pass the function that it was lowered from."
        )
    if not callable(fn):
        raise TypeError(
            f"watch(fn) needs a jitted function, and got {fn!r} of type {type(fn).__name__}, which cannot be called."
        )
    if isinstance(fn, types.MethodType) and isinstance(fn.__func__, jax.stages.Wrapped):
        name = fn.__func__.__name__
        raise TypeError(
            f"watch(fn) needs the jitted function itself, and `{name}` is a method bound to an object. Watch it "
            f"where the class defines it: write `@watch` above the line with `jax.jit`."
        )
    if not isinstance(fn, jax.stages.Wrapped):
        name = getattr(fn, "__name__", type(fn).__name__)
        raise TypeError(
            f"watch(fn) needs a jitted function, and `{name}` is not jitted. Write watch(jax.jit({name}))."
        )


class Watched:
    """A jitted function that records its calls; made by `watch`.

    It is called like the function and passes everything else (`lower`, `trace`, …) on to it. Calls from inside
    another traced function belong to that function's trace: they pass through and are not recorded.
    """

    def __init__(self, fn: Callable, static: Iterable[str] = ()) -> None:
        self._fn = fn
        self._static = tuple(static)
        self._size = getattr(fn, "_cache_size", None) or (lambda: None)  # private: finds "left the fast path"
        functools.update_wrapper(self, fn, updated=())
        self.__wrapped__ = getattr(fn, "__wrapped__", fn)
        self._names = _names_in_events(self.__wrapped__)
        self._history = history_of(self.__wrapped__)
        self._lock = threading.Lock()
        self._can_count: bool | None = None
        self._last_size = 0
        self._worked = False
        self.reset()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _at_top_level():
            return self._fn(*args, **kwargs)
        if self._can_count is None:
            self._can_count = _events.can_count()
        stack, events, size, error = _events.open_lists(), [], self._size(), None
        stack.append(events)
        start = perf_counter()
        try:
            return self._fn(*args, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            seconds = perf_counter() - start
            stack.pop()
            # A hit must stay cheap: nothing happened, so nothing is looked at.
            if events or error or not size or size != self._size() or self._must_look():
                if size or size is None or events or error or True:
                    self._record(_Facts(args, kwargs, events, seconds, size, error))
            else:
                with self._lock:
                    self._seconds.append(seconds)
