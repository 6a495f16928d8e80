"""Every private or undocumented read of JAX, with what takes its place where JAX no longer offers it.

Reads of jaxprs are in `_jaxprs`; no other module makes any. `tests/test_jax_reads.py` takes each away in turn: results
must then show a note, "not available" or "not counted", never a wrong number.
"""

import inspect
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

from jitguide._otherwise import otherwise

try:
    from jax._src import core as _core
except ImportError:
    _core = None  # `at_top_level` then does without

PHASES = {  # the events of `jax.monitoring`; `_monitoring` first compares them with work of its own
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
COMPILE_LOGGER = "jax._src.interpreters.pxla"  # tells the shapes of what is compiled; left out without it
COMPILE_LOG = re.compile(r"with global shapes and types \((.*)\)\. Argument mapping")
SHAPED = re.compile(r"ShapedArray\(([^()]*?\])[^()]*\)")
CACHE_HIT = "/jax/compilation_cache/cache_hits"
NO_OPTIONS = "JAX does not expose the jit options of this function"
NO_FAST_PATH = "JAX does not expose the fast path of this function: a call that left it is listed as a hit."
_COST = ("flops", "bytes accessed", "transcendentals")
_MEMORY = ("argument", "output", "temp", "alias")
_LOOP = re.compile(r"^\s+(?:ROOT )?\S+ = .* while\(", re.MULTILINE)
# XLA counts the products that oneDNN computes on a CPU, but not those that cuBLAS computes on a GPU.
_LIBRARY_CALL = re.compile(r'custom_call_target="(?!__onednn)([^"]+)"')
_PLACEHOLDER = re.compile(r"\b(?:ArgInfo|ShapeDtypeStruct|\w*Sharding)'")
_REBUILT = (
    "JAX builds each object that you pass or return again, with placeholders for its arrays, and the class of one "
    "converts or checks what it is given. Pass and return its arrays, and build it inside the function; or make its "
    "`tree_unflatten` skip `__init__`: `new = object.__new__(cls)`, then set the attributes."
)


@otherwise(None)
def trace_cache_misses() -> int:
    """Return how many traces JAX made, reused ones left out. Without it, the self-test of `_monitoring` fails."""
    from jax._src.interpreters import partial_eval

    return int(partial_eval.trace_to_jaxpr.cache_info().misses)


def at_top_level() -> bool:
    """Return whether no transformation surrounds this call.

    Without `trace_ctx`, whether a new array is concrete: it is not under `jit`. Under `grad` and `vmap` it is, where
    a call without tracers is really made.
    """
    try:  # no decorator: `watch` asks this in each call
        return bool(_core.trace_ctx.is_top_level())
    except Exception:
        return not is_tracer(jax.device_put(0))


class _Asked:
    """Has the form of JAX's thread-local state, and asks a function for its value."""

    def __init__(self, ask: Callable[[], bool]):
        self.ask = ask

    value = property(lambda self: self.ask())


def surroundings() -> tuple[Any, object, Any, object]:
    """Return what holds the current trace and axes, each with its value outside of transformations.

    `watch` compares them in each call, which takes a tenth of the time of `at_top_level`. Without them, it asks that.
    """
    try:
        return _core.trace_state_strong_ref, _core.eval_trace, _core.axis_env_state, _core.top_axis_env
    except AttributeError:
        return _Asked(at_top_level), True, _Asked(at_top_level), True


def disabled() -> Any:
    """Return what holds whether jit is disabled now; `jax.config`, which is slower, without it."""
    asked = _Asked(lambda: bool(jax.config.jax_disable_jit))
    return getattr(jax._src.config, "disable_jit", asked)


@otherwise("")
def transformation() -> str:
    """Return what transforms this call, such as "vmap"; empty inside a trace. Without it, `watch` records no such call."""
    names = {"BatchTrace": "vmap", "LinearizeTrace": "grad", "JVPTrace": "jvp"}
    return names.get(type(_core.trace_ctx.trace).__name__, "")


def is_tracer(value: Any) -> bool:
    """Return whether a value is abstract. Without `jax.core.Tracer`, the names of its classes decide."""
    if (tracer := getattr(jax.core, "Tracer", None)) is not None:
        return isinstance(value, tracer)
    return any(kind.__name__.endswith("Tracer") for kind in type(value).__mro__)


def has_tracer(values: Any) -> bool:
    """Return whether a tree holds a tracer; dicts whose keys JAX cannot sort are looked into as well."""
    try:
        return any(map(is_tracer, jax.tree.leaves(values)))
    except Exception:
        children = values.values() if isinstance(values, dict) else values
        return isinstance(values, dict | list | tuple) and any(map(has_tracer, children))


@otherwise(None)
def jit_options(fn: Any) -> dict[str, Any]:
    """Return the options that `jax.jit` was given for `fn`, without those left to their defaults.

    Without them, `phases`, `check` and `watch` add a note, `stages` links by source line.
    """
    info = fn._jit_info
    names = [f"{kind}_arg{form}" for kind in ("static", "donate") for form in ("nums", "names")]
    given = {name: getattr(info, name) or None for name in (*names, "keep_unused", "inline")}
    given |= {name: getattr(info, name, None) for name in ("device", "backend")}  # deprecated
    given["compiler_options"] = dict(info.compiler_options_kvs) or None
    given |= {f"{side}_shardings": _shardings(info, side) for side in ("in", "out")}
    return {name: value for name, value in given.items() if value is not None}


def _shardings(info: Any, side: str) -> Any:
    from jax.experimental.layout import Format

    shardings, layouts = (getattr(info, f"{side}_{what}_leaves") for what in ("shardings", "layouts"))
    if all(leaf is None or type(leaf).__name__ == "UnspecifiedValue" for leaf in shardings):
        return None
    pairs = zip(shardings, layouts, strict=True)
    leaves = [sharding if layout is None else Format(layout, sharding) for sharding, layout in pairs]
    return jax.tree.unflatten(getattr(info, f"{side}_shardings_treedef"), leaves)


def fast_path_size(fn: Any) -> Callable[[], int] | None:
    """Return what counts the entries in the fast path of `fn`. Without it None: `watch` adds a note."""
    return getattr(fn, "_cache_size", None)


@otherwise(None)
def jit_file() -> str:
    """Return the file of the Python code that calls off the fast path run. Without it, they are "not known"."""
    return str(inspect.unwrap(type(jax.jit(len)).trace).__code__.co_filename)


@otherwise({})
def trace_settings() -> dict[str, Any]:
    """Return all settings in the key of JAX's trace cache. Without them, some reasons are "unknown"."""
    from jax._src import config

    return dict(zip(config.trace_context_names(), config.trace_context(), strict=True))


def setting(name: str, default: Any = None) -> Any:
    """Return an option of `jax.config`, also of one for the whole process; `default` if JAX does not expose it."""
    return getattr(jax.config, name, getattr(jax.config, "values", {}).get(name, default))


@otherwise((None, ()))
def tree_node(structure: Any) -> tuple[Any, list[Any]]:
    """Return data, None for a leaf, and children of a node of a tree. Without them, reasons show whole trees."""
    return structure.node_data(), structure.children()


@contextmanager
def placeholders_explained() -> Iterator[None]:
    """Add what to do to the error of a class that does not take what JAX's lowered and compiled functions put in it."""
    try:
        yield
    except Exception as error:
        if _PLACEHOLDER.search(str(error)):
            error.add_note(_REBUILT)
        raise


@otherwise(dict.fromkeys(_COST))
def cost_analysis(compiled: Any, hlo: str = "") -> dict[str, float | None]:
    """Return what XLA estimates that a compiled function costs; None for what it cannot tell.

    A backend may refuse, or give a list, -1 or NaN. Operations that XLA leaves out are zero. If the optimized HLO calls
    a library, the counts leave that call out, so they are None.
    """
    if library_calls(hlo):
        return dict.fromkeys(_COST)
    found = compiled.cost_analysis()
    found = dict(found[0] if isinstance(found, list | tuple) else found)
    left_out = {"flops": 0, "transcendentals": 0} if found and found.get("flops", 0) >= 0 else {}
    values = {name: found.get(name, left_out.get(name, math.nan)) for name in _COST}
    return {name: float(value) if 0 <= value < math.inf else None for name, value in values.items()}


@otherwise(dict.fromkeys(_MEMORY))
def memory_analysis(compiled: Any) -> dict[str, int | None]:
    """Return the bytes of arguments, outputs, temporaries and aliases (donated); None for what is not reported."""
    found = compiled.memory_analysis()
    return {name: getattr(found, f"{name}_size_in_bytes", None) for name in _MEMORY}


def nbytes(shape: tuple[int, ...], dtype: Any) -> int:
    """Return the bytes of an array; XLA packs numbers of 2 and 4 bits, to which NumPy gives a byte."""
    packed = re.match(r"(?:u?int|float)([24])(?!\d)", str(dtype))
    bits = int(packed[1]) if packed else 8 * getattr(dtype, "itemsize", 0)
    return math.ceil(math.prod(shape) * bits / 8)


@otherwise("")
def compiled_text(compiled: Any) -> str:
    """Return the optimized HLO of a compiled function. Where a backend refuses, `stages` adds a note."""
    return compiled.as_text() or ""


def has_loop(hlo: str) -> bool:
    """Return whether an optimized HLO text has a loop, whose body `cost_analysis` counts only once."""
    return _LOOP.search(hlo) is not None


def library_calls(hlo: str) -> list[str]:
    """Return the names of what an optimized HLO text calls outside of it, which `cost_analysis` does not count."""
    return sorted(set(_LIBRARY_CALL.findall(hlo)))


@otherwise(())
def sources() -> list[tuple[str, str]]:
    """Return the names and texts of JAX's own files. Without them, `explain` does not know where a message stands."""
    root = Path(jax.__file__).parent
    return [(p.relative_to(root.parent).as_posix(), p.read_text("utf-8")) for p in sorted(root.rglob("*.py"))]
