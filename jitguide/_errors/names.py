"""Public names of the running JAX, to tell a removed name from one that an older JAX lacks."""

import functools
import importlib
import pkgutil
import warnings
from importlib.util import find_spec
from types import ModuleType

import jax

from jitguide._errors import patterns

_DEEPEST = 2  # `jax.numpy.linalg`; below are kernels and dialects, which take seconds to import


def exists(message: str) -> bool:
    """Return whether a message misses a name of JAX that the running JAX has.

    Example:
        >>> exists("AttributeError: module 'jax.random' has no attribute 'key'")
        True
        >>> exists("AttributeError: module 'jax.random' has no attribute 'KeyArray'")
        False
    """
    return any(
        _has(m["module"] or m["owner"] or m["source"], m["attribute"] or m["name"])
        for m in patterns.MISSING_NAME.finditer(message)
    )


@functools.cache
def _has(module: str, name: str | None) -> bool:
    with warnings.catch_warnings(action="ignore"):
        try:
            owner = importlib.import_module(module)
            warnings.simplefilter("error")  # a deprecated name may be gone in a later JAX
            return name is None or hasattr(owner, name) or find_spec(f"{module}.{name}") is not None
        except Exception:
            return False


def public(module: ModuleType = jax) -> dict[str, list[str]]:
    """Return the public names of JAX by module, for where it cannot be imported."""
    path, depth = getattr(module, "__path__", []), module.__name__.count(".")
    parts = [part for _, part, _ in pkgutil.iter_modules(path) if not part.startswith("_")]
    names = {name for name in (*dir(module), *parts) if not name.startswith("_")}
    found = {module.__name__: sorted(names)}
    for part in parts if depth < _DEEPEST else ():
        with warnings.catch_warnings(action="ignore"):
            try:
                found |= public(importlib.import_module(f"{module.__name__}.{part}"))
            except ImportError:  # of a package that this part needs
                continue
    return found
