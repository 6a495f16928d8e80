"""Public names of the running JAX, to tell a removed name from one that an older JAX lacks."""

import functools
import importlib
import warnings
from importlib.util import find_spec

from jitguide._errors import patterns


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
