"""The arguments of a measured call: copied where they are donated, refused where they cannot be measured."""

import math
from numbers import Real
from typing import Any

import jax

from jitguide._jax import at_top_level, has_tracer

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def is_number(value: object) -> bool:
    """Return whether `value` is a real number of Python or NumPy; a truth value is not."""
    return isinstance(value, Real) and not isinstance(value, bool)  # NumPy registers its scalars as `Real`


def require_seconds(name: str, value: object, advice: str) -> None:
    """Raise unless an argument is a positive number of seconds; `advice` is what to pass in its place."""
    if not is_number(value):
        raise TypeError(f"`{name}` must be a number of seconds, got {value!r}. {advice}")
    if not 0 < value < math.inf:  # type: ignore[operator] # it is a number
        raise ValueError(f"`{name}` must be a positive number of seconds, got {value!r}. {advice}")


def copies(arguments: Arguments) -> Arguments:
    """Return the arguments with a copy of each array."""
    copied: Arguments = jax.tree.map(lambda x: x.copy() if isinstance(x, jax.Array) else x, arguments)
    jax.block_until_ready(copied)
    return copied


def donates_any(args_info: Any) -> bool:
    """Return whether an argument is donated, by the `args_info` of a lowered function."""
    return any(getattr(leaf, "donated", False) for leaf in jax.tree.leaves(args_info))


def donates_object(owner: tuple[Any, ...], args_info: tuple[Any, ...]) -> bool:
    """Return whether the object of a method, if `owner` has one, is donated; `args_info` lacks a static one."""
    first = args_info[: len(owner)]
    return jax.tree.structure(first) == jax.tree.structure(owner) and donates_any(first)


def deleted(arguments: Arguments) -> str | None:
    """Return the path of the first argument whose memory was given away; None if there is none."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(arguments)[0]:
        if isinstance(leaf, jax.Array) and leaf.is_deleted():
            return f"{('args', 'kwargs')[path[0].idx]}{jax.tree_util.keystr(path[1:])}"
    return None


def refuse_deleted(arguments: Arguments, advice: str) -> None:
    """Raise if an argument was given away before the measurement began."""
    if where := deleted(arguments):
        raise ValueError(
            f"The argument {where} was deleted before the measurement began, most likely because an earlier "
            f"call donated it. {advice}"
        )


def refuse_tracing(caller: str, arguments: Any) -> None:
    """Raise inside a trace: a traced call computes nothing, so there is no time to measure."""
    if not at_top_level() or has_tracer(arguments):
        raise RuntimeError(
            f"`{caller}` was called inside a function that JAX is tracing (for jit, grad, vmap or scan), "
            "where calls are recorded and nothing is computed. Call it outside, with arrays."
        )


def traced(caller: str, jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Trace; JAX's error about an argument that isn't an array then says how to make that argument static, too."""
    try:
        return jitted.trace(*args, **kwargs)
    except TypeError as error:
        if "as an abstract array" in str(error):
            error.add_note(
                f"{caller} takes the options of jit from the function: to make this argument static, pass "
                "jax.jit(fn, static_argnames=...) in place of fn."
            )
        raise
