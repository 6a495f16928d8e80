"""Name, constants and donated arguments of a compiled function, and notes on its result."""

from typing import Any

import jax
import numpy as np

from jitguide import _jaxprs
from jitguide._jax import library_calls
from jitguide._stages.model import Constant
from jitguide._stages.source import Shown


def name_of(traced: Any, fn: Any) -> str:
    """Return the function's name; an object that is called goes by its class."""
    name = str(getattr(traced, "fun_name", ""))
    named = name and not name.startswith("<unnamed")  # what JAX calls a callable object
    return name if named else str(getattr(fn, "__name__", type(fn).__name__))


def constants(jaxpr: Any) -> tuple[Constant, ...]:
    """Return the arrays that a jaxpr captured, the bodies of its equations included, each once."""
    arrays = (c for c in _jaxprs.constants(jaxpr) if np.ndim(c) or c.nbytes > 8)
    return tuple(Constant(_jaxprs.short_type(c), int(c.nbytes)) for c in arrays)


def donated(traced: Any) -> tuple[str, ...]:
    leaves = jax.tree.leaves(getattr(traced, "args_info", ()), is_leaf=lambda x: hasattr(x, "donated"))
    names = _jaxprs.argument_names(traced.jaxpr, len(leaves))
    return tuple(n for n, leaf in zip(names, leaves, strict=True) if getattr(leaf, "donated", False))


def notes(loops: bool, hlo: str, shown: Shown, devices: int) -> list[str]:
    """Return the notes needed to read the result rightly."""
    found = []
    if calls := library_calls(hlo):
        found.append(f"Flops and bytes are not available: XLA does not count {', '.join(calls)}.")
    elif loops:
        found.append("Flops and bytes count the body of a loop once, not once per step.")
    if devices > 1:
        found.append(f"Cost and memory are those of one of the {devices} devices.")
    if shown.left_out:
        total = len(shown.texts) + shown.left_out
        found.append(
            f"Of the source, the first {len(shown.texts):,} of {total:,} lines are shown. What comes from the "
            'others stands under "(no line shown)"; to see it, look at a smaller function.'
        )
    if not shown.texts:
        found.append(
            "The source of this function is not shown: it was not found, or it is part of a library."
        )
    elif shown.origin and not any(line for line, _ in shown.origin):
        found.append("Links to the source are not available: JAX names no line of it.")
    return found
