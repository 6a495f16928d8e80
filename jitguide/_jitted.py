"""What an instrument asks of the function that it is given, refused in words where it is something else."""

from __future__ import annotations

from typing import Any

import jax.stages

from jitguide._signature import show

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


def require_jitted(caller: str, fn: Any) -> None:
    """Raise unless `fn` is a jitted function; `caller` is as for `require_function`."""
    require_function(caller, fn, "a jitted function")
    if not isinstance(fn, jax.stages.Wrapped):
        name = getattr(fn, "__name__", type(fn).__name__)
        jitted = f"jax.jit({name if name.isidentifier() else 'fn'})"
        raise TypeError(
            f"{caller} needs a jitted function, and `{name}` is not jitted. "
            f"Write {caller.replace('fn', jitted)}."
        )


def hint_at_static(caller: str, error: TypeError) -> None:
    """Add to JAX's error about an argument that is no array how to make that argument static."""
    if "as an abstract array" in str(error):
        error.add_note(
            f"{caller} takes the options of jit from the function: to make this argument static, pass "
            "jax.jit(fn, static_argnames=...) in place of fn."
        )
