"""Which statements change the state of Python or JAX as a whole, and so belong to every later program."""

# ruff: noqa: SIM905 -- a list of words reads better so

from __future__ import annotations

import ast
import re

# Calls on imported modules that leave nothing behind, by the beginning of their full names.
_WITHOUT_EFFECT = (
    "jitguide", "time.", "statistics.", "math.", "functools.", "itertools.", "gc.", "numpy.testing.", "jax.numpy.",
    "jax.lax.", "jax.random.", "jax.nn.", "jax.tree", "jax.debug.", "jax.scipy.", "jax.export", "jax.profiler.",
    "matplotlib.pyplot.",
)  # fmt: skip
_PLAIN_JAX = {
    f"jax.{name}"
    for name in (
        "jit grad vmap pmap value_and_grad jvp vjp linearize hessian jacfwd jacrev make_jaxpr eval_shape "
        "block_until_ready device_put device_get checkpoint named_call named_scope devices live_arrays shard_map "
        "disable_jit effects_barrier ensure_compile_time_eval checking_leaks explain_cache_misses log_compiles "
        "pure_callback"
    ).split()
}
_KEPT_PLOTTING = ("matplotlib.pyplot.rc", "matplotlib.pyplot.style")


def imports(node: ast.stmt) -> dict[str, str]:
    """Return the names that an import binds, each with its full name.

    Example:
        >>> imports(ast.parse("import jax.numpy as jnp").body[0])
        {'jnp': 'jax.numpy'}
        >>> imports(ast.parse("from jax import lax").body[0])
        {'lax': 'jax.lax'}
    """
    if isinstance(node, ast.ImportFrom):
        return {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    names = node.names if isinstance(node, ast.Import) else []
    return {a.asname: a.name for a in names if a.asname} | {
        first: first for a in names if not a.asname for first in [a.name.partition(".")[0]]
    }


def full_name(node: ast.AST, imported: dict[str, str]) -> str | None:
    """Return the full name of what an expression starts with, if that was imported.

    Example:
        >>> full_name(ast.parse("jnp.sin(x).block_until_ready()", mode="eval").body, {"jnp": "jax.numpy"})
        'jax.numpy.sin'
    """
    first, *rest = re.split(r"[(\[]", ast.unparse(node))[0].split(".")
    return ".".join([imported[first], *rest]) if first in imported else None


def is_ambient(node: ast.stmt, imported: dict[str, str]) -> bool:
    """Return whether a statement that shows nothing changes the state of an imported module.

    Example:
        >>> names = {"jax": "jax", "jnp": "jax.numpy"}
        >>> is_ambient(ast.parse("jax.config.update('jax_enable_x64', True)").body[0], names)
        True
        >>> is_ambient(ast.parse("jnp.sin(1.0).block_until_ready()").body[0], names)
        False
    """
    match node:
        case ast.Expr(value=ast.Call() as place):
            name = full_name(place, imported) or ""
            kept = name.startswith(_KEPT_PLOTTING) or not name.startswith(_WITHOUT_EFFECT)
            return name not in ("", *_PLAIN_JAX) and kept
        case ast.Assign(targets=[place]) | ast.Delete(targets=[place]):
            return isinstance(place, ast.Attribute | ast.Subscript) and full_name(place, imported) is not None
    return False


def written_file(node: ast.stmt, imported: dict[str, str]) -> str | None:
    """Return the name of the file that a statement writes, as in `Path("a.txt").write_text(text)`.

    Example:
        >>> written_file(ast.parse("Path('a.txt').write_text(text)").body[0], {"Path": "pathlib.Path"})
        'a.txt'
    """
    found = re.match(r"(\w+)\(['\"](.+?)['\"]\)\.write_(?:text|bytes)\(", ast.unparse(node))
    return found[2] if found and imported.get(found[1]) == "pathlib.Path" else None
