"""Watch a jitted function: what each call made JAX do, and why."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, cast, overload

import jax
import jax.stages

from jitguide import _jax, _monitoring
from jitguide._callables import jitted_in, peeled, require_jitted, shares_cache, unwatched
from jitguide._otherwise import otherwise
from jitguide._watch.block import WatchedBlock
from jitguide._watch.cache_model import Work, history_of
from jitguide._watch.call_log import CallLog
from jitguide._watch.reasons import COMPILE, FAST, TRACE, Outcome, Reason, reason
from jitguide._watch.signature import Signature, outline_of, passed, signature_of
from jitguide._watch.target import Entered, Stand, entry_of

P = ParamSpec("P")
R = TypeVar("R")
_Args = tuple[Any, ...]
_Kwargs = dict[str, Any]
_Phases = dict[str, float]
_Error = BaseException | None

# Outcome of a call by the deepest phase that it reached, from the shallowest to the deepest.
_OUTCOMES: dict[str, Outcome] = {
    "trace": "traced",
    "lower": "lowered",
    "read": "read from the persistent cache",
    "compile": "compiled",
}
_NO_STATICS = f"{_jax.NO_OPTIONS}: where a static value changes, the reason may be unknown."
_IDLE = ("no fast path", "failed first call")
_KEPT = "the program is kept. The error came when it ran."
_MAY_BE_KEPT = "whether a program was made is not known."
# Of a `Ref` that the function makes for itself: its program has none, so calls take the fast path.
_OF_OWN_REFERENCE = "InternalMutableArrayEffect"
_RECENT = _monitoring.RECENT
_TRACE, _TOP, _AXES, _NO_AXES = _jax.surroundings()
_DISABLED = _jax.disabled()


@overload
def watch(fn: None = None, /) -> WatchedBlock: ...
@overload
def watch(fn: Callable[P, R], /) -> Watched[P, R]: ...
def watch(fn: Callable[P, R] | None = None, /) -> Watched[P, R] | WatchedBlock:
    """Return `fn` in a form that records what each call made JAX do, and why.

    Without a function, return a context manager that records what the code in its block makes JAX do, by
    function and line, but without reasons: those need the arguments of the calls. A function that is traced
    as part of another is not listed by itself.

    Args:
        fn: A jitted function. The result is called in its place.

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
        return WatchedBlock()
    fn = unwatched(fn)
    require_jitted("watch(fn)", fn)
    return (Watched if jitted_in(fn) is fn else _WatchedInside)(fn)


class _Before(NamedTuple):
    """What was known when a call began: size of JAX's cache, kinds of calls learned, the last event."""

    size: int
    learned: int
    event: tuple[int, _monitoring.Event]


class Watched(CallLog, Stand, Generic[P, R]):
    """A jitted function that records its calls; made by `watch`.

    It is called like the function and passes everything else (`lower`, `trace`, …) on to it. Calls from
    inside another traced function belong to that function's trace: they pass through and are not recorded.
    """

    def __init__(self, fn: Callable[P, R]) -> None:
        super().__init__()
        self._fn: Any = fn  # jitted: it has `lower`, `trace` and the rest
        self._jitted = jitted_in(fn)  # by `jax.jit` itself: `fn`, or inside of it
        self._entered = Entered()
        size, options = _jax.fast_path_size(self._jitted), _jax.jit_options(self._jitted)
        self._size: Callable[[], int] = size or (lambda: 0)
        unknown = {_jax.NO_FAST_PATH: size is None, _NO_STATICS: options is None}
        self._notes = tuple(note for note, lacks in unknown.items() if lacks)
        functools.update_wrapper(self, fn, updated=())
        self._shared = shares_cache(fn)
        self.__wrapped__: Callable[..., Any] = getattr(fn, "__wrapped__", fn)
        inner = getattr(self._jitted, "__wrapped__", self._jitted)
        self._name = _monitoring.reported_name(inner)
        self.__name__: str = _monitoring.shown_name(fn)
        self._history = history_of(getattr(peeled(fn)[0], "__wrapped__", inner) if self._shared else inner)
        statics = {"static_argnums", "static_argnames"} & {*(options or ())}
        self._values = self._shared or options is None or bool(statics)
        self._can_count = False
        self._last_size = 0
        self._worked = False

    def reset(self) -> None:  # documented where it is inherited from
        super().reset()
        # Whether a call was recorded and JAX reports its work: only then is a hit noted without a look at its arguments.
        self._ready = False

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        # A hit has to stay cheap, so nothing here calls more than it must.
        if _TRACE.value is not _TOP or _AXES.value is not _NO_AXES:
            return self._transformed(args, kwargs)
        if not self._ready:
            self._can_count = _monitoring.can_count()
        out: R
        history = self._history
        size, learned, event = self._size(), history.count, _RECENT[-1]
        start = perf_counter()
        try:
            out = self._jitted(*args, **kwargs)
        except BaseException as error:
            self._record(args, kwargs, perf_counter() - start, _Before(size, learned, event), error)
            raise
        seconds = perf_counter() - start
        # The arguments are looked at only where they may have no fast path. Those of the first call always
        # are, because the function may have been compiled before it was watched.
        if event is not _RECENT[-1] or size != self._size() or not self._ready or _DISABLED.value:
            self._record(args, kwargs, seconds, _Before(size, learned, event))
        elif not history.has_slow:
            self._seconds.append(seconds)
        elif (outline := outline_of(args, kwargs, self._values)) in history.outlines:
            self._add_idle(seconds, history.outlines[outline])
        else:
            self._record(args, kwargs, seconds, _Before(size, learned, event))
        return out

    def _transformed(self, args: _Args, kwargs: _Kwargs) -> R:
        """Call the function under `vmap` or `grad`, and record that if it did any work; inside a trace, only call it."""
        out: R
        by = _jax.transformation()
        if not by:
            out = self._fn(*args, **kwargs)
            return out
        start = perf_counter()
        with _monitoring.recording() as events:
            out = self._fn(*args, **kwargs)
        phases = {event.phase: event.seconds for event in events if event.function == self._name}
        if outcome := _deepest(phases):
            why = reason("transformed", self.__name__, now=by)
            self._add(outcome, perf_counter() - start, phases, why)
        return out

    def _record(
        self, args: _Args, kwargs: _Kwargs, seconds: float, before: _Before, error: _Error = None
    ) -> None:
        self._ready = self._can_count
        names = (self._name, _monitoring.UNNAMED) if self._can_count else ()
        here, newer = threading.get_ident(), _monitoring.since(before.event)
        own = (event for thread, event in newer if thread == here and event.function in names)
        phases = {event.phase: event.seconds for event in own}  # the outermost ends last
        try:
            outcome, why, signature = self._explain(args, kwargs, phases, before, error)
        except Exception:  # odd arguments must not break the user's call
            outcome, why, signature = _deepest(phases) or "not counted", None, ""
        if error and not why:
            outcome, why = "raised", self._raised(error, kept=False)
        if outcome == "hit" or (why and why.kind in _IDLE):
            if self._history.has_slow:
                self._history.mark(outline_of(args, kwargs, self._values), why)
            return self._add_idle(seconds, why)
        return self._add(outcome, seconds, phases, why, signature)

    def _explain(
        self, args: _Args, kwargs: _Kwargs, phases: _Phases, before: _Before, error: _Error
    ) -> tuple[Outcome, Reason | None, str]:
        """Return outcome, reason and signature of a call."""
        size = self._size()
        grown = size > before.size
        unwatched_calls = self._follow_size(before.size, size)
        now = self._signature(args, kwargs)
        if error is not None:
            kept = bool(phases.keys() & {"compile", "read"})
            self._history.note_error(now, kept=kept, grown=grown)
            return "raised", self._raised(error, kept), str(now)
        if jax.config.jax_disable_jit:
            return "left the fast path", reason("disabled", self.__name__), str(now)
        outcome = _deepest(phases)
        if outcome is None and not (self._can_count and _monitoring.is_listening()):
            _monitoring.ensure_listening()
            return "not counted", None, str(now)
        first, self._worked = not self._worked, True
        asked = outcome is not None or grown or first
        slow = asked and self._has_effects(args, kwargs)
        busy = outcome is None and self._name in {e.function for _, e in _monitoring.since(before.event)}
        if outcome is None and not (busy or grown or slow or self._history.is_slow(now)):
            if first or not self._seconds:
                self._history.note(now)
            return "hit", None, ""
        layer = TRACE if "trace" in phases else FAST if outcome is None else COMPILE
        idle = self.counts.keys() & {"hit", "left the fast path"}
        met = bool(idle) or (unwatched_calls and not self._shared)
        why = self._history.learn(Work(self.__name__, now, layer, before.learned, slow, first, met, busy))
        if outcome is None and why.kind == "unknown":  # another thread's call made the fast path grow
            return "hit", None, ""
        return outcome or "left the fast path", why, str(now)

    def _signature(self, args: _Args, kwargs: _Kwargs) -> Signature:
        """Return the signature of a call; where a library turns the arguments into others, of what you passed."""
        wrapper, call = self._entered.wrapper, self._entered.call
        return passed(wrapper, *call) if wrapper else signature_of(self._jitted, args, kwargs)

    def _follow_size(self, before: int, after: int) -> bool:
        """Note the size of JAX's cache; return whether calls went past this object since the last one."""
        last, self._last_size = self._last_size, after
        if before < last:
            self._history.forget()
        return before > last

    def _raised(self, error: BaseException, kept: bool) -> Reason:
        sure = self._can_count and _monitoring.is_listening()
        advice = _KEPT if kept else "" if sure else _MAY_BE_KEPT
        return reason("raised", self.__name__, now=type(error).__name__, advice=advice)

    @otherwise(False)
    def _has_effects(self, args: _Args, kwargs: _Kwargs) -> bool:
        """Return whether this kind of call always goes through Python; quick, as the trace is there."""
        effects = self._jitted.trace(*args, **kwargs).jaxpr.effects
        return any(type(effect).__name__ != _OF_OWN_REFERENCE for effect in effects)

    def __deepcopy__(self, memo: object = None) -> Watched[P, R]:
        return self  # as a function does

    __copy__ = __deepcopy__

    def clear_cache(self) -> None:
        """Clear the function's caches, as `clear_cache` of a jitted function does."""
        self._jitted.clear_cache()
        self._history.forget()


class _WatchedInside(Watched[P, R]):
    """A function with the jitted one inside, such as a bound method or what `eqx.filter_jit` makes."""

    def __init__(self, fn: Callable[P, R]) -> None:
        super().__init__(fn)
        self._entry = entry_of(fn, super().__call__, self._entered)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if not _jax.at_top_level():
            return self._transformed(args, kwargs)
        return cast(R, self._entry(*args, **kwargs))


def _deepest(phases: _Phases) -> Outcome | None:
    done = [outcome for phase, outcome in _OUTCOMES.items() if phase in phases]
    return done[-1] if done else None
