"""A jitted function made anew, as one that no cache of JAX has seen, so that each step is really done."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.stages

from jitguide._jax import NO_OPTIONS, jit_options


def jit_anew(fn: Callable) -> tuple[Any, tuple[str, ...]]:
    """Return `fn` jitted anew, as a function that no cache of JAX has seen, and notes."""
    if not isinstance(fn, jax.stages.Wrapped):
        return jax.jit(_renewed(fn)), ()
    plain, options = getattr(fn, "__wrapped__", None), jit_options(fn)
    if plain is None or options is None:
        return fn, (f"{NO_OPTIONS}, so steps that are cached already show as free.",)
    return jit_with(_renewed(plain), options), ()


def jit_with(fn: Callable, options: dict[str, Any]) -> Any:
    """Return `jax.jit(fn, **options)`, where JAX has warned of a deprecated option before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return jax.jit(fn, **options)


def _renewed(fn: Callable) -> Callable:
    # JAX's caches go by function object; names of parameters still come from the function inside.
    @functools.wraps(fn, updated=())
    def renewed(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return renewed
