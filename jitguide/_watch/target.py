"""The function that `watch` is given: how a call reaches the jitted function inside, and what is passed on to it."""

import functools
import threading
import types
from collections.abc import Callable
from typing import Any, cast

import jax
import jax.stages

from jitguide._callables import held_in, peeled, with_inner


class Entered(threading.local):
    """The call of a library's wrapper that this thread is in: the wrapper, and what it was given."""

    wrapper: Any = None
    call: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})


def entry_of(fn: Any, inner: Callable[..., Any], entered: Entered) -> Callable[..., Any]:
    """Return a function that is called as `fn`, calls `inner` in place of the jitted function, and fills `entered`."""
    core, bound, named = peeled(fn)
    if not held_in(core):
        return functools.partial(inner, *bound, **named)
    twin = with_inner(core, inner)

    def enter(*args: Any, **kwargs: Any) -> Any:
        before = entered.wrapper, entered.call
        call = (*bound, *args), {**named, **kwargs}
        entered.wrapper, entered.call = core, call
        try:
            return twin(*call[0], **call[1])
        finally:
            entered.wrapper, entered.call = before

    return enter


class Stand:
    """Stands in the place of a function: what it does not have itself comes from there."""

    _fn: Any

    @property
    def __jitguide_wrapped__(self) -> Any:
        """The jitted function itself; by this name other instruments know a watched one."""
        return self._fn

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else types.MethodType(cast(Callable[..., Any], self), owner)

    def __getattr__(self, name: str) -> Any:
        if name == "_fn":  # an unfinished object, as `copy` makes
            raise AttributeError(name)
        return getattr(self._fn, name)

    # In full, because `isinstance(f, jax.stages.Wrapped)` looks for them in the class.
    def lower(self, *args: Any, **kwargs: Any) -> jax.stages.Lowered:
        """Lower without calling, as `lower` of a jitted function does."""
        return self._fn.lower(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> jax.stages.Traced:
        """Trace without calling, as `trace` of a jitted function does."""
        return self._fn.trace(*args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return shapes and dtypes of the result, as `eval_shape` of a jitted function does."""
        return self._fn.eval_shape(*args, **kwargs)
