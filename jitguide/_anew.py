"""A jitted function made anew, as one that no cache of JAX has seen, so that each step is really done."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.stages

_OPTIONS = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline")


def jit_anew(fn: Callable) -> tuple[Any, tuple[str, ...]]:
    """Return `fn` jitted anew, as a function that no cache of JAX has seen, and notes."""
    if not isinstance(fn, jax.stages.Wrapped):
        return jax.jit(_renewed(fn)), ()
    plain, info = getattr(fn, "__wrapped__", None), getattr(fn, "_jit_info", None)
    if plain is None or info is None:  # both private in part: without them, time what can be timed
        return fn, ("JAX does not tell the options of this function: steps done before look free.",)
    options = {name: getattr(info, name) for name in _OPTIONS if getattr(info, name, None)}
    if kvs := getattr(info, "compiler_options_kvs", None):
        options["compiler_options"] = dict(kvs)
    lost = [name for name in ("device", "backend") if getattr(info, name, None) is not None]
    for name in ("in_shardings", "out_shardings"):
        if (tree := getattr(info, f"{name}_treedef", None)) is not None:
            options[name] = jax.tree.unflatten(tree, getattr(info, f"{name}_leaves"))
    if any(
        leaf is not None for name in ("in", "out") for leaf in getattr(info, f"{name}_layouts_leaves", ())
    ):
        lost.append("layouts")
    note = (f"Given to jit and not kept, so that this may be another program: {', '.join(lost)}.",)
    return jax.jit(_renewed(plain), **options), note if lost else ()


def _renewed(fn: Callable) -> Callable:
    # JAX's caches go by function object; names of parameters still come from the function inside.
    @functools.wraps(fn, updated=())
    def renewed(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return renewed
