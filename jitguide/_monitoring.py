"""What JAX reports while it works: traces, lowerings, compiles and reads from the persistent cache.

JAX calls a listener in the thread that does the work. One listener is registered for the process, at first
use; it hands each event to the lists that this thread has opened with `recording`. JAX does not document the
names of its events, so a self-test compiles a function of its own before anything is counted.
"""

import contextlib
import functools
import logging
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import Any

import jax
import jax.monitoring

from jitguide import _jax
from jitguide._files import owner
from jitguide._text import place

_PING = "/jitguide/ping"
UNNAMED = "<unnamed function>"  # what JAX calls an object with `__call__`


@dataclass(frozen=True)
class Event:
    """One thing that JAX did."""

    phase: str  # "trace", "lower", "compile" or "read" (an executable read from the persistent cache)
    function: str  # its name as JAX knows it, without `jit(...)`
    seconds: float
    where: str = ""  # file and line of the user's call, such as `train.py:12`; empty if unknown
    shapes: str = ""  # of the arguments of an executable that was made while a `logged` block was open
    yours: bool = False  # whether the module that called it has a function of yours by that name


class _Local(threading.local):
    def __init__(self) -> None:
        self.shapes = ""
        self.cache_hit = False
        self.pinged = False
        # Of each trace that goes on: misses of JAX's cache, and the error that was being handled, when it began.
        self.begun: list[tuple[int | None, BaseException | None]] = []
        self.failed: set[str] = set()  # functions whose last trace raised


_local = _Local()
# Lists that collect events: of this thread, and of this task of asyncio.
_open: ContextVar[tuple[list[Event], ...]] = ContextVar("jitguide_open", default=())
_lock = threading.Lock()
WORK: dict[str, int] = {}  # function -> how many phases ended, in all threads
# Of all threads, with their numbers. `watch` compares the last one before and after each call; the phases of a function
# end after those of all functions inside it, so the newest are enough.
RECENT: deque[tuple[int, Event]] = deque([(0, Event("", "", 0.0))], maxlen=4096)
_verdict: bool | None = None  # of the self-test; None until it has run


def _on_duration(event: str, seconds: float, **details: object) -> None:
    # An exception here would surface in the user's own call, so a surprise is dropped, never raised.
    with contextlib.suppress(Exception):
        if event == _PING:
            _local.pinged = True
        phase = _jax.PHASES.get(event)
        if phase is None:
            return
        name = re.sub(r"^jit\((.*)\)$", r"\1", str(details.get("fun_name", "")))
        if phase == "trace" and _was_reused(name):
            return
        WORK[name] = WORK.get(name, 0) + 1
        if phase == "compile":
            phase, _local.cache_hit = ("read" if _local.cache_hit else "compile"), False
        shapes, _local.shapes = (_local.shapes, "") if phase in ("compile", "read") else ("", _local.shapes)
        lists = _open.get()
        frame = _your_frame() if lists else None
        where = place(frame.f_code.co_filename, frame.f_lineno) if frame else ""
        seen = Event(phase, name, float(seconds), where, shapes, _is_yours(name, frame))
        RECENT.append((threading.get_ident(), seen))
        for events in lists:
            events.append(seen)


def _on_start(event: str, *_: object, **__: object) -> None:
    if _jax.PHASES.get(event) == "trace":
        _local.begun.append((_jax.trace_cache_misses(), sys.exc_info()[1]))


def _was_reused(name: str) -> bool:
    """Return whether the trace that ends now was found in the cache: JAX sometimes reports those as well.

    A trace that raises leaves an entry in that cache, so the next one is found there although it runs. JAX
    tells no more than a name, so the next one is the next of this name.
    """
    misses, error = _local.begun.pop() if _local.begun else (None, None)
    ran_before, raises = name in _local.failed, sys.exc_info()[1] is not error
    (_local.failed.add if raises else _local.failed.discard)(name)
    found = misses is not None and misses == _jax.trace_cache_misses()
    return found and not (ran_before or raises)


def _on_event(event: str, **_: object) -> None:
    if event == _jax.CACHE_HIT:
        _local.cache_hit = True


def _your_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    found = None  # that of another library, where there is none of yours
    while frame is not None and (whose := owner(frame.f_code.co_filename)) != "you":
        found = found or (frame if whose == "library" else None)
        frame = frame.f_back
    return frame or found


def _is_yours(name: str, frame: FrameType | None) -> bool:
    # Of a module only: to ask a frame for its locals would keep what they hold alive.
    value = frame and frame.f_globals.get(name)
    method = frame and name.startswith("_") and name in frame.f_code.co_names  # such as `self._inner`
    return bool(method) or (callable(value) and not str(getattr(value, "__module__", "")).startswith("jax"))


def is_listening() -> bool:
    """Return whether JAX still calls our listener: `clear_event_listeners()` elsewhere removes it too."""
    _local.pinged = False
    jax.monitoring.record_event_duration_secs(_PING, 0.0)
    return _local.pinged


def ensure_listening() -> None:
    """Register the listener unless it is registered already."""
    with _lock:
        if not is_listening():
            with contextlib.suppress(Exception):  # one alone may have been removed: none is to be there twice
                jax.monitoring.unregister_scalar_listener(_on_start)
                jax.monitoring.unregister_event_listener(_on_event)
            jax.monitoring.register_event_duration_secs_listener(_on_duration)
            jax.monitoring.register_scalar_listener(_on_start)
            jax.monitoring.register_event_listener(_on_event)


def since(mark: tuple[int, Event]) -> list[tuple[int, Event]]:
    """Return the events of all threads after `mark`, which was the last of `RECENT`."""
    entries = list(RECENT)
    places = [place for place, entry in enumerate(entries) if entry is mark]
    return entries[places[0] + 1 :] if places else entries


@contextlib.contextmanager
def recording() -> Iterator[list[Event]]:
    """Collect the events of this thread, or of this task of asyncio, in a list while the block runs."""
    events: list[Event] = []
    _open.set((*_open.get(), events))
    try:
        yield events
    finally:
        # By identity: two empty lists are equal, and blocks may close in another order than they opened.
        _open.set(tuple(other for other in _open.get() if other is not events))


class _Shapes(logging.Filter):
    """Takes the shapes of a compile from JAX's log, and lets pass what was logged without it."""

    users = 0
    level = before = logging.WARNING

    def filter(self, record: logging.LogRecord) -> bool:
        if found := _jax.COMPILE_LOG.search(record.getMessage()):
            _local.shapes = _jax.SHAPED.sub(r"\1", found[1]).rstrip(",")
        return record.levelno >= self.level


_shapes = _Shapes()


@contextlib.contextmanager
def logged() -> Iterator[None]:
    """Let events of executables carry the shapes of their arguments, which only JAX's log tells."""
    logger = logging.getLogger(_jax.COMPILE_LOGGER)
    with _lock:
        _shapes.users += 1
        if _shapes.users == 1:
            _shapes.level, _shapes.before = logger.getEffectiveLevel(), logger.level
            logger.addFilter(_shapes)
            logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        with _lock:
            _shapes.users -= 1
            if not _shapes.users:
                logger.removeFilter(_shapes)
                logger.setLevel(_shapes.before)


def reported_name(fun: Callable[..., Any]) -> str:
    """Return the name under which JAX reports a function: that of a partial is the inner one."""
    while isinstance(fun, functools.partial) and not hasattr(fun, "__name__"):
        fun = fun.func
    return getattr(fun, "__name__", UNNAMED)


def shown_name(fun: Any) -> str:
    """Return the name of a function, or of what is inside; of an object with `__call__`, that of its class."""
    while getattr(fun, "__name__", UNNAMED) == UNNAMED:
        inner = getattr(fun, "func" if isinstance(fun, functools.partial) else "__wrapped__", None)
        if inner is None:
            return type(fun).__name__
        fun = inner
    return str(fun.__name__)


def can_count() -> bool:
    """Return whether events mean what this package thinks they mean; tested once per process.

    The self-test jits a new function twice: that must be one lowering, one compile and one trace, because the second
    trace is found in JAX's cache.
    """
    global _verdict
    ensure_listening()
    if _verdict is None:
        _verdict = _self_test()
    return bool(_verdict)


def _self_test() -> bool | None:
    def jitguide_self_test() -> int:
        return 0

    token = _open.set(())
    try:
        with recording() as events, jax.log_compiles(False), jax.explain_cache_misses(False):
            jax.jit(jitguide_self_test).trace().lower().compile()
            jax.jit(jitguide_self_test).trace()
    except Exception:
        return None  # such as inside `jax.no_tracing()`: nothing was learned, so test again later
    finally:
        _open.reset(token)
    phases = [e.phase.replace("read", "compile") for e in events if e.function == "jitguide_self_test"]
    return sorted(phases) == ["compile", "lower", "trace"]
