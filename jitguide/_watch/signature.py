"""What one call looks like to `jax.jit`: the part of the call that JAX's caches look at.

A signature keeps shapes and types, never the arrays, and can be taken after the call: an array that was
donated still knows its type. Static values are kept, as JAX keeps them too. A watched function keeps them after its
caches were cleared as well, to tell a call that JAX has forgotten from a new one.
"""

import inspect
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.tree_util as tree
import numpy as np

from jitguide import _callables, _jax
from jitguide._otherwise import otherwise
from jitguide._text import show

_ARRAYS = (jax.Array, np.ndarray, np.generic)
STATIC = "static"  # the origin of a leaf that is compiled in
# Settings that are part of JAX's cache key, by experiment: tests/test_watch.py sees each cause a trace.
_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_rank_promotion",
    "jax_numpy_dtype_promotion",
    "jax_default_device",
    "jax_threefry_partitionable",
)
# Private names that repeat what is read publicly, or that differ from call to call.
_SKIPPED_CONTEXT = frozenset({*_SETTINGS, "abstract_mesh_context_manager", "axis_env_state"})


@dataclass(frozen=True)
class Leaf:
    """One array or scalar among the arguments, of which only a jax.Array has the last three; or a static leaf."""

    path: str
    origin: str
    aval: Any
    committed: bool | None = None
    sharding: Any = None
    layout: Any = None
    value: Any = field(default=None, compare=False)  # of a static leaf

    @property
    def type(self) -> str:
        """Dtype and shape as JAX writes them, such as `float32[8]`."""
        return str(self.aval).lstrip("~")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape; empty for a leaf that has none."""
        return tuple(getattr(self.aval, "shape", ()))

    @property
    def dtype(self) -> str:
        return str(getattr(self.aval, "dtype", self.aval))

    @property
    def weak(self) -> bool:
        """Whether the type is weak, as that of a Python number."""
        return bool(getattr(self.aval, "weak_type", False))


@dataclass(frozen=True)
class Argument:
    """One argument: a static value, or a tree of leaves."""

    name: str
    keyword: bool | None  # None where a library binds the arguments first
    static: bool
    value: Any
    structure: Any
    leaves: tuple[Leaf, ...]
    declared: bool = True  # False: taken as static only because JAX cannot trace it

    def __str__(self) -> str:
        if self.static:
            return f"{self.name} = {show(self.value)} (static)"
        if len(self.leaves) == 1 and not self.leaves[0].path:
            leaf = self.leaves[0]
            python = f" ({leaf.origin})" if leaf.origin.startswith("Python") else ""
            return f"{self.name}: {leaf.type}{python}"
        inside = ", ".join(f"{leaf.path}: {leaf.type}" for leaf in self.leaves[:3])
        more = f", … {len(self.leaves)} leaves" if len(self.leaves) > 3 else ""
        return f"{self.name}: {{{inside}{more}}}"


@dataclass(frozen=True)
class Signature:
    """One call: its arguments, the settings in effect, and the parameters left to their defaults."""

    arguments: dict[str, Argument]
    settings: dict[str, Any]
    defaults: dict[str, Any]

    def __str__(self) -> str:
        return ", ".join(str(argument) for argument in self.arguments.values())

    @property
    def traced(self) -> list[Argument]:
        """The arguments that are not static, in the order of the jaxpr: JAX sorts those passed by keyword."""
        traced = (a for a in self.arguments.values() if not a.static)
        return sorted(traced, key=lambda a: (bool(a.keyword), a.name if a.keyword else ""))


def signature_of(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], only_arrays: bool = False
) -> Signature:
    """Return the signature of the call `fn(*args, **kwargs)` of a jitted function; donated arrays are fine.

    `only_arrays` is whether every leaf that is not an array is static, as for `equinox.filter_jit`.
    """
    parameters = _callables.parameters_of(fn)
    names = _callables.static_names(fn, parameters)
    arguments = {}
    for name, keyword, value in _spelled(parameters, args, kwargs):
        arguments[name] = _argument(name, None if only_arrays else keyword, value, name in names, only_arrays)
    left_out = (p for p in parameters if p.default is not p.empty and p.name not in arguments)
    return Signature(arguments, _settings(), {p.name: p.default for p in left_out})


def passed(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Signature:
    """Return the signature of a call of `fn`, by what you pass, where a library turns that into something else."""
    inner, bound, named = _callables.peeled(fn)
    shared = _callables.shares_cache(inner)
    jitted = inner if shared else _callables.jitted_in(inner)
    return signature_of(jitted, (*bound, *args), {**named, **kwargs}, only_arrays=shared)


def outline_of(args: tuple[Any, ...], kwargs: Mapping[str, Any], values: bool) -> tuple[Any, ...]:
    """Return what tells a call from most others of its function; quick, and hashable.

    `values` is whether values count that are not arrays, because some may be static.
    """
    leaves, structure = tree.tree_flatten((args, dict(kwargs)))
    return structure, *[getattr(leaf, "shape", None) or _mark(leaf, values) for leaf in leaves]


def _mark(leaf: Any, values: bool) -> Any:
    return (type(leaf), leaf) if values and isinstance(leaf, Hashable) else type(leaf)


def _spelled(
    parameters: list[inspect.Parameter], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterable[tuple[str, bool, Any]]:
    """Yield name, whether it was passed by keyword, and value of each argument of a call."""
    for i, value in enumerate(args):
        yield _callables.argument_name(parameters, i), False, value
    # JAX sorts those passed by keyword: their order makes no difference. The function's own is the one you know.
    order = {parameter.name: i for i, parameter in enumerate(parameters)}
    for name in sorted(kwargs, key=lambda name: (order.get(name, len(order)), name)):
        yield name, True, kwargs[name]


def _argument(name: str, keyword: bool | None, value: Any, static: bool, only_arrays: bool) -> Argument:
    if not static:
        pairs, structure = tree.tree_flatten_with_path(value)
        leaves = [_leaf(tree.keystr(path), leaf, only_arrays) for path, leaf in pairs]
        if only_arrays or all(leaf.origin != STATIC for leaf in leaves):
            return Argument(name, keyword, False, None, structure, tuple(leaves))
    # What JAX cannot trace must be static, even when JAX does not tell which arguments are.
    return Argument(name, keyword, True, value, None, (), declared=static)


def _leaf(path: str, leaf: Any, only_arrays: bool) -> Leaf:
    try:
        if only_arrays and not isinstance(leaf, _ARRAYS):
            raise TypeError
        aval = jax.typeof(leaf)
    except Exception:
        return Leaf(path, STATIC, type(leaf), value=leaf)
    if not isinstance(leaf, jax.Array):
        return Leaf(path, _origin(leaf), aval)
    layout = getattr(_read(leaf, "format"), "layout", None)  # None for a donated array
    return Leaf(path, "jax.Array", aval, _read(leaf, "committed"), _read(leaf, "sharding"), layout)


def _origin(leaf: Any) -> str:
    if isinstance(leaf, np.ndarray | np.generic):
        return "NumPy array"
    if isinstance(leaf, bool | int | float | complex):
        return f"Python {type(leaf).__name__}"
    return type(leaf).__name__


@otherwise(None)  # an array may refuse, such as one that spans other processes
def _read(owner: Any, name: str) -> Any:
    return getattr(owner, name)


def _settings() -> dict[str, Any]:
    found = {name: _read(jax.config, name) for name in _SETTINGS}
    mesh = jax.sharding.get_abstract_mesh()
    found["mesh"] = None if mesh.empty else mesh
    more = _jax.trace_settings().items()
    return found | {name: value for name, value in more if name not in _SKIPPED_CONTEXT}
