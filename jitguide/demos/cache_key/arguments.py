"""Changes to what you pass: values, types, containers, static values, calling convention."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jitguide.demos.cache_key.changes import Changes, counted


class Pair(NamedTuple):
    """A named tuple of two."""

    a: Any
    b: Any


X = np.ones(4, np.float32)  # made a JAX array in each group, so that importing this module starts no device


@jax.tree_util.register_dataclass
@dataclass
class Model:
    """A container with an array in it and a setting."""

    weights: Any
    mode: str = field(metadata={"static": True})


@dataclass(frozen=True)
class Frozen:
    """A setting that is compared by content."""

    factor: int


class Plain:
    """A setting that is compared by identity."""

    factor = 2


def double(x: Any) -> Any:
    """Return x times two."""
    return x * 2


def total(tree: Any) -> Any:
    """Return the sum of all leaves of a tree."""
    return sum(jax.tree.leaves(tree))


def scale(x: Any, n: Any = 2) -> Any:
    """Return x times n, where n may be a number or an object with a factor."""
    return x * getattr(n, "factor", n)


def warm(body: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return a jitted function that JAX has not seen before, called once with `args`."""
    f = jax.jit(counted(body), **options)
    f(*args)
    return f


def shapes(t: Changes) -> None:
    """Values, shapes and dtypes."""
    x = jnp.asarray(X)
    f = warm(double, x)
    t.see("the same array again", f, x)
    t.see("an array of other values", f, x + 1)
    t.see("float32[4] → float32[8]", f, jnp.ones(8))
    t.see("float32[4] → float32[2,2]", f, jnp.ones((2, 2)))
    t.see("float32[4] → float32[1,4]", f, jnp.ones((1, 4)))
    for dtype in ("int32", "bool", "bfloat16", "complex64"):
        t.see(f"float32[4] → {dtype}[4]", f, x.astype(dtype))
    t.see("back to float32[4]", f, x)


def sources(t: Changes) -> None:
    """JAX arrays, NumPy arrays and lists."""
    x = jnp.asarray(X)
    f = warm(double, x)
    t.see("JAX array → NumPy array of float32", f, X)
    t.see("another NumPy array of float32", f, X + 1)
    t.see("NumPy array of float64, with 64-bit types off", f, X.astype(np.float64))
    t.see("read-only NumPy array", f, np.asarray(x))
    t.see("strided view of a NumPy array", f, np.ones(8, np.float32)[::2])
    t.see("back to the JAX array", f, x)
    f = warm(double, np.ones((2, 2), np.float32))
    t.see("NumPy array in C order → in Fortran order", f, np.ones((2, 2), np.float32, order="F"))
    f = warm(total, x)
    t.see("JAX array → list of four Python floats", f, [1.0] * 4)


def scalars(t: Changes) -> None:
    """Numbers and weak types."""
    f = warm(double, 3.0)
    t.see("3.0 → 4.0", f, 4.0)
    for value in (3, True, 3j):
        t.see(f"3.0 → {value!r}", f, value)
    t.see("3.0 → np.float32(3)", f, np.float32(3))
    t.see("np.float32(3) → np.float64(3)", f, np.float64(3))
    t.see("np.float32(3) → np.array(3, np.float32)", f, np.array(3, np.float32))
    t.see("np.float32(3) → jnp.float32(3)", f, jnp.float32(3))
    t.see("3.0 → jnp.asarray(3.0), which is weak too", f, jnp.asarray(3.0))
    t.see("back to 3.0", f, 3.0)
    f = warm(double, jnp.float32(3))
    t.see("strong float32[] → weak float32[]", f, jnp.asarray(3.0))
    f = warm(lambda carry: carry + jnp.float32(1), 0.0)
    t.see("0.0 → the first result, which is strong", f, f(0.0))
    t.see("the second result", f, f(f(0.0)))


def containers(t: Changes) -> None:
    """Containers."""
    x = jnp.asarray(X)
    f = warm(total, (x, x))
    t.see("tuple → list", f, [x, x])
    t.see("tuple → named tuple", f, Pair(x, x))
    t.see("tuple → longer tuple", f, (x, x, x))
    t.see("tuple → tuple with a None in it", f, (x, None, x))
    t.see("tuple → nested tuple", f, ((x,), x))
    t.see("tuple → dict", f, {"a": x, "b": x})
    t.see("dict in another order", f, {"b": x, "a": x})
    t.see("dict with another key", f, {"a": x, "c": x})
    t.see("dict → OrderedDict", f, OrderedDict(a=x, b=x))
    t.see("OrderedDict in another order", f, OrderedDict(b=x, a=x))
    t.see("one leaf of another dtype", f, (x, x.astype("int32")))
    f = warm(total, Model(x, "train"))
    t.see("registered dataclass: another object with the same static field", f, Model(x + 1, "train"))
    t.see("registered dataclass: another value in the static field", f, Model(x, "test"))
    t.see("registered dataclass: the first value again", f, Model(x, "train"))


def statics(t: Changes) -> None:
    """Static values."""
    x = jnp.asarray(X)
    f = warm(scale, x, 2, static_argnums=1)
    t.see("2 → 2", f, x, 2)
    t.see("2 → 3", f, x, 3)
    t.see("back to 2", f, x, 2)
    t.see("2 → 2.0", f, x, 2.0)
    t.see("2 → np.int64(2)", f, x, np.int64(2))
    f(x, 1)
    t.see("1 → True", f, x, True)
    f(x, Frozen(2))
    t.see("frozen dataclass → an equal one", f, x, Frozen(2))
    t.see("frozen dataclass → an unequal one", f, x, Frozen(3))
    plain = Plain()
    f(x, plain)
    plain.factor = 10
    t.see("object without __eq__, changed: the result is stale", f, x, plain)
    t.see("object without __eq__ → another with the same content", f, x, Plain())
    f = warm(lambda x, g: g(x), x, jnp.sin, static_argnums=1)
    t.see("function → the same function", f, x, jnp.sin)
    t.see("function → a lambda written into the call", f, x, lambda x: jnp.sin(x))
    t.see("the same lambda written again", f, x, lambda x: jnp.sin(x))


def conventions(t: Changes) -> None:
    """Keyword or position, defaults."""
    x = jnp.asarray(X)
    for kind, n, options in (("traced", 2.0, {}), ("static", 2, {"static_argnames": "n"})):
        f = warm(scale, x, n, **options)
        t.see(f"{kind} n: f(x, {n}) → f(x, n={n})", f, x, n=n)
        t.see(f"{kind} n: f(x=x, n={n})", f, x=x, n=n)
        t.see(f"{kind} n: f(n={n}, x=x)", f, n=n, x=x)
        t.see(f"{kind} n: f(x), where {n} is the default", f, x)
    f = warm(lambda *xs, **more: sum(xs) + total(more), x)
    t.see("one more in *args", f, x, x)
    t.see("a keyword in **kwargs", f, x, y=x)
    t.see("another keyword in **kwargs", f, x, z=x)
