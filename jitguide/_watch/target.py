"""The function that `watch` is given: how a call reaches the jitted function inside, and what is passed on to it."""

import functools
import inspect
import threading
import types
from collections.abc import Callable, Iterable
from typing import Any, cast

import jax
import jax.stages

from jitguide._callables import held_in, parameters_of, peeled, static_names, with_inner
from jitguide._jax import jit_options


class Entered(threading.local):
    """The call of a library's wrapper that this thread is in: the wrapper, and what it was given."""

    def __init__(self) -> None:
        self.wrapper: Any = None
        self.call: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})


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


def static_names_in(static: Any, fn: Any) -> tuple[str, ...]:
    """Return the names in `static`, checked against the parameters of `fn` and what jit holds static.

    Raises:
        TypeError: `static` holds something that is not a name.
        ValueError: A name is not a parameter of `fn`, or jit traces it.
    """
    names = (static,) if isinstance(static, str) or not isinstance(static, Iterable) else tuple(static)
    parameters = parameters_of(fn)
    known = {p.name for p in parameters}
    told = static_names(fn, parameters) if jit_options(fn) is not None else None
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"`static` must hold names of parameters, and holds {name!r} of type {type(name).__name__}. "
                'Write `static=["n"]`.'
            )
        if not parameters or (told is not None and name in told):
            continue
        open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        if name.partition("[")[0] not in known and not open_ended:
            listed = ", ".join(f"`{p.name}`" for p in parameters)
            raise ValueError(f"`static` holds {name!r}, and the parameters of the function are {listed}.")
        if told is not None:
            raise ValueError(
                f"`static` holds {name!r}, and jit traces it. Leave it out, or make it static with "
                f"`jax.jit(fn, static_argnames={name!r})`."
            )
    return names


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
