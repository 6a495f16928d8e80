"""What a jitted function donates, and copies of it, so that the reader's arrays stay alive."""

from __future__ import annotations

from typing import Any

import jax

from jitguide._timing.inputs import Arguments


def donates_any(args_info: Any) -> bool:
    """Return whether an argument is donated, by the `args_info` of a lowered function."""
    return any(getattr(leaf, "donated", False) for leaf in jax.tree.leaves(args_info))


def donates_object(owner: tuple, args_info: tuple) -> bool:
    """Return whether the object of a method is donated.

    Args:
        owner: The object, or nothing for a function.
        args_info: That of the positional arguments, among which a static object is missing.
    """
    first = args_info[: len(owner)]
    return jax.tree.structure(first) == jax.tree.structure(owner) and donates_any(first)


def copies(arguments: Arguments) -> Arguments:
    """Return the arguments with a copy of each array."""
    return jax.block_until_ready(
        jax.tree.map(lambda x: x.copy() if isinstance(x, jax.Array) else x, arguments)
    )
