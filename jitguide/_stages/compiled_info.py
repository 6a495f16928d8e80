"""What is asked of JAX's objects besides their texts. What a backend does not give is None, never a guess."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jitguide._stages.hlo import Module
from jitguide._stages.model import Constant
from jitguide._stages.source import Shown
from jitguide._stages.tags import Nodes, bodies, open_jaxpr

_COST = ("flops", "bytes accessed", "transcendentals")
_MEMORY = ("argument", "output", "temp", "alias")


def options(jitted: Any) -> dict[str, Any]:
    """Return the options that `jitted` was made with, as far as JAX keeps them on the object."""
    info = getattr(jitted, "_jit_info", None)
    if info is None:
        return {}
    found = {
        key: getattr(info, key)
        for key in (
            "static_argnums",
            "static_argnames",
            "donate_argnums",
            "donate_argnames",
            "keep_unused",
            "inline",
            "device",
            "backend",
        )
        if getattr(info, key, None)
    }
    if compiler := getattr(info, "compiler_options_kvs", None):
        found["compiler_options"] = dict(compiler)
    for side in ("in", "out"):
        leaves = getattr(info, f"{side}_shardings_leaves", ())
        if any("Unspecified" not in type(leaf).__name__ for leaf in leaves):
            found[f"{side}_shardings"] = jax.tree.unflatten(
                getattr(info, f"{side}_shardings_treedef"), leaves
            )
    return found


def name_of(traced: Any, fn: Any) -> str:
    """Return the function's name; an object that is called goes by its class."""
    name = str(getattr(traced, "fun_name", ""))
    named = name and not name.startswith("<unnamed")  # what JAX calls a callable object
    return name if named else str(getattr(fn, "__name__", type(fn).__name__))


def cost(compiled: Any) -> dict[str, float | None]:
    """Return flops, bytes accessed and transcendentals as XLA estimates them, or None each.

    XLA leaves out what is zero, and gives a negative number where it cannot tell.
    """
    try:
        found = compiled.cost_analysis()
    except Exception:  # optional on a backend
        found = None
    found = found[0] if isinstance(found, (list, tuple)) and found else found
    found = found if isinstance(found, dict) else {}
    values = {name: found.get(name, 0.0 if found else None) for name in _COST}
    return {name: float(v) if v is not None and v >= 0 else None for name, v in values.items()}


def memory(compiled: Any) -> dict[str, int | None]:
    """Return bytes of arguments, outputs, temporaries and aliases (donated), each None where not reported."""
    try:
        found = compiled.memory_analysis()
    except Exception:  # optional on a backend
        found = None
    values = {name: getattr(found, f"{name}_size_in_bytes", None) for name in _MEMORY}
    return {name: int(v) if v is not None else None for name, v in values.items()}


def constants(jaxpr: Any) -> tuple[Constant, ...]:
    """Return the arrays that a jaxpr captured, the bodies of its equations included, each once."""
    seen: dict[int, Any] = {}
    todo, visited = [jaxpr], set()
    while todo:
        at = todo.pop()
        if id(at) in visited:
            continue
        visited.add(id(at))
        seen.update(
            (id(c), c) for c in getattr(at, "consts", ()) or () if np.ndim(c) or getattr(c, "nbytes", 0) > 8
        )
        todo += [body for equation in open_jaxpr(at).eqns for body in bodies(equation)]
    return tuple(
        sorted(
            (Constant(short_type(c), int(getattr(c, "nbytes", 0))) for c in seen.values()),
            key=lambda c: -c.bytes,
        )
    )


def short_type(value: Any) -> str:
    """Return the type of an array in the way jaxprs write it.

    Example:
        >>> short_type(np.zeros((2, 3), np.float32))
        'f32[2,3]'
    """
    name = str(getattr(value, "dtype", type(value).__name__))
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        if name.startswith(long):
            name = short + name[len(long) :]
            break
    return f"{name}[{','.join(map(str, np.shape(value)))}]"


def donated(traced: Any) -> tuple[str, ...]:
    """Return the names of the donated arguments."""
    leaves = jax.tree.leaves(getattr(traced, "args_info", ()), is_leaf=lambda x: hasattr(x, "donated"))
    names = getattr(getattr(open_jaxpr(traced.jaxpr), "debug_info", None), "arg_names", None) or ()
    names = names if len(names) == len(leaves) else [f"argument {i}" for i in range(len(leaves))]
    return tuple(str(n) for n, leaf in zip(names, leaves, strict=True) if getattr(leaf, "donated", False))


def notes(nodes: Nodes, module: Module, shown: Shown, devices: int) -> list[str]:
    """Return what a reader must know to read the result rightly."""
    found = []
    if _loops(nodes, module):
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
    return found


def _loops(nodes: Nodes, module: Module) -> bool:
    """Return whether the program loops: XLA unrolls some loops, and JAX lowers random numbers to others."""
    if module.entry:
        return any(i.opcode == "while" for i in module.instructions())
    return any(nodes.sites[n.site].equation.primitive.name in ("scan", "while") for n in nodes.all)
