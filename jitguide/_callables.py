"""What the caller passed as a function: unwrap it, and refuse what an instrument cannot use."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Iterable
from typing import Any

import jax
import jax.stages

from jitguide._jax import NO_OPTIONS, jit_options
from jitguide._text import show

_STAGED = (jax.stages.Traced, jax.stages.Lowered, jax.stages.Compiled)


def require_function(caller: str, fn: Any, kind: str = "a function") -> None:
    """Raise unless `fn` can be called and traced.

    Args:
        caller: The instrument as its call is written, such as "stages(fn, ...)".
        fn: What it was given.
        kind: What it needs, in words.

    Raises:
        TypeError: `fn` cannot be called, or is what `trace`, `lower` or `compile` returned.

    Example:
        >>> require_function("stages(fn, ...)", 3)
        Traceback (most recent call last):
        ...
        TypeError: stages(fn, ...) needs a function, and `fn` is 3 of type int, which cannot be called. ...
    """
    if isinstance(fn, _STAGED):
        raise TypeError(
            f"{caller} needs {kind}, and `fn` is a {type(fn).__name__} object, which stands for one program "
            "and never traces again. Pass the function that it was made from."
        )
    if not callable(fn):
        raise TypeError(
            f"{caller} needs {kind}, and `fn` is {show(fn)} of type {type(fn).__name__}, which cannot be "
            "called. Pass the function itself, not the result of calling it."
        )


def is_watched(fn: Any) -> bool:
    """Return whether `fn` is what `watch(fn)` returned."""
    return hasattr(type(fn), "__jitguide_wrapped__")


def unwatched(fn: Any) -> Any:
    """Return the function given to `watch`, or `fn` itself if it is not watched."""
    return fn.__jitguide_wrapped__ if is_watched(fn) else fn


def is_jitted(fn: Any) -> bool:
    """Return whether `fn` can be traced and lowered, as the result of `jax.jit` can."""
    return hasattr(fn, "trace") and hasattr(fn, "lower")


def reached(fn: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return the jitted function that a call of `fn` reaches, and the arguments bound on the way.

    It looks through `watch`, methods and `functools.partial`. Options such as `static_argnums` count what is
    bound as the first arguments, so it has to be passed to the jitted function, not jitted away. Where no
    jitted function is inside, the result is `fn` itself, not watched, and nothing.

    Example:
        >>> import functools, jax
        >>> power = jax.jit(pow, static_argnums=1)
        >>> reached(functools.partial(power, 3.0)) == (power, (3.0,), {})
        True
        >>> reached(abs)
        (<built-in function abs>, (), {})
    """
    inner, args, kwargs = unwatched(fn), tuple[Any, ...](), dict[str, Any]()
    while inspect.ismethod(inner) or isinstance(inner, functools.partial):
        if inspect.ismethod(inner):
            inner, args = unwatched(inner.__func__), (inner.__self__, *args)
        else:
            args, kwargs = (*inner.args, *args), {**inner.keywords, **kwargs}
            inner = unwatched(inner.func)
    return (inner, args, kwargs) if is_jitted(inner) else (unwatched(fn), (), {})


def parameters_of(fn: Any) -> list[inspect.Parameter]:
    """Return the parameters of a function; none for the few callables of C that do not tell."""
    try:
        return list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return []


def static_names(fn: Any, parameters: list[inspect.Parameter]) -> set[str]:
    """Return the names of the parameters that are static in a jitted function; none if JAX does not expose them."""
    options = jit_options(fn) or {}
    names = set(options.get("static_argnames", ()))
    order = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "argument")
    for number in options.get("static_argnums", ()):
        known = -len(order) <= number < len(order)
        names.add(order[number] if known else f"{rest}[{number - len(order)}]")
    return names


def fresh_jit(fn: Any) -> tuple[Any, tuple[str, ...]]:
    """Return `fn` jitted again, as a function that no cache of JAX knows, and notes."""
    if not isinstance(fn, jax.stages.Wrapped):
        return jax.jit(_copy_of(fn)), ()
    plain, options = getattr(fn, "__wrapped__", None), jit_options(fn)
    if plain is None or options is None:
        return fn, (f"{NO_OPTIONS}, so steps that are cached already show as free.",)
    return jit_with(_copy_of(plain), options), ()


def jit_with(fn: Any, options: dict[str, Any]) -> Any:
    """Return `jax.jit(fn, **options)`, where JAX has warned of a deprecated option before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return jax.jit(fn, **options)


def _copy_of(fn: Any) -> Any:
    # JAX's caches go by function object; names of parameters still come from the function inside.
    @functools.wraps(fn, updated=())
    def copy(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return copy


def require_jitted(caller: str, fn: Any) -> None:
    """Raise unless `fn` is a jitted function; `caller` is as for `require_function`."""
    require_function(caller, fn, "a jitted function")
    if not isinstance(fn, jax.stages.Wrapped):
        name = getattr(fn, "__name__", "")
        jitted = f"jax.jit({name if name.isidentifier() else 'fn'})"
        what = f"`{name}`" if name else f"`fn`, an object of type {type(fn).__name__},"
        raise TypeError(
            f"{caller} needs a jitted function, and {what} is not jitted. "
            f"Write {caller.replace('fn', jitted)}."
        )


def refuse_bound_method(fn: Any) -> None:
    """Raise if `fn` is a jitted method that is bound to an object: `watch` cannot stand in its place."""
    if isinstance(fn, types.MethodType) and isinstance(fn.__func__, jax.stages.Wrapped):
        name = fn.__func__.__name__
        raise TypeError(
            f"watch(fn) needs the jitted function itself, and `{name}` is a method bound to an object. Watch "
            "it where the class defines it: write `@watch` above the line with `jax.jit`."
        )


def static_names_in(static: Any, fn: Any) -> tuple[str, ...]:
    """Return the names in `static`, checked against the parameters of `fn` and what jit holds static.

    Raises:
        TypeError: `static` holds something that is no name.
        ValueError: A name is no parameter of `fn`, or jit traces it.
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


def hint_at_static(caller: str, error: TypeError) -> None:
    """Add to JAX's error about an argument that is no array how to make that argument static."""
    if "as an abstract array" in str(error):
        error.add_note(
            f"{caller} takes the options of jit from the function: to make this argument static, pass "
            "jax.jit(fn, static_argnames=...) in place of fn."
        )
