"""Changes to what surrounds a call: the function and its options, devices, settings, threads, stages."""

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.experimental.layout import Format, Layout
from jax.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

from jitguide.demos.cache_key.arguments import X, double, scale, warm
from jitguide.demos.cache_key.changes import Changes, counted


def functions(t: Changes) -> None:
    """The function, and how it is wrapped."""
    x = jnp.asarray(X)
    body, scaled = counted(double), counted(scale)
    kept = functools.partial(scaled, n=2)
    jax.jit(body)(x), jax.jit(kept)(x)
    t.see("jax.jit(f) written again", jax.jit(body), x)
    t.see("jax.jit(f, keep_unused=True)", jax.jit(body, keep_unused=True), x)
    t.see("jax.jit(f, inline=True)", jax.jit(body, inline=True), x)
    t.see("jax.jit(f, donate_argnums=())", jax.jit(body, donate_argnums=()), x)
    options = {"xla_embed_ir_in_executable": True}
    t.see("jax.jit(f, compiler_options=…)", jax.jit(body, compiler_options=options), x)
    t.see("the same compiler_options again", jax.jit(body, compiler_options=dict(options)), x)
    t.see("jax.jit(f, donate_argnums=0)", jax.jit(body, donate_argnums=0), jnp.array(X))
    t.see("jax.jit(jax.jit(f))", jax.jit(jax.jit(body)), x)
    t.see("jax.jit(partial) with the same partial", jax.jit(kept), x)
    t.see("jax.jit(partial(f, n=2)), recreated", jax.jit(functools.partial(scaled, n=2)), x)
    t.see("jax.jit(lambda x: f(x)), recreated", jax.jit(lambda x: body(x)), x)
    t.see("jax.jit(jax.vmap(f)), recreated", jax.jit(jax.vmap(body)), x)
    read = {"factor": 2.0}
    f = warm(lambda x: x * read["factor"], x)
    read["factor"] = 3.0
    t.see("a global that f reads has changed: the result is stale", f, x)


def places(t: Changes) -> None:
    """Devices, sharding and layout."""
    x, device = jnp.asarray(X), jax.devices()[0]
    f = warm(double, x)
    t.see("uncommitted → committed to the same device", f, jax.device_put(x, device))
    t.see("committed to the same device again", f, jax.device_put(x + 1, device))
    t.see("back to uncommitted", f, x)
    with jax.default_device(device):
        t.see("under jax.default_device(the same device)", f, x)
    if len(jax.devices()) >= 4:
        _more_places(t, f, x)
    square = jnp.ones((2, 2))
    f = warm(double, square)
    turned = Format(Layout(major_to_minor=(1, 0)), SingleDeviceSharding(device))
    t.see("default layout → column-major layout", f, jax.device_put(square, turned))
    t.see("column-major layout again", f, jax.device_put(square, turned))


def _more_places(t: Changes, f: Callable[..., Any], x: Any) -> None:
    second, four = jax.devices()[1], jax.devices()[:4]
    mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,), devices=four)
    explicit = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Explicit,), devices=four)
    t.see("committed to another device", f, jax.device_put(x, second))
    t.see("split over four devices", f, jax.device_put(x, NamedSharding(mesh, PartitionSpec("i"))))
    t.see("copied to four devices", f, jax.device_put(x, NamedSharding(mesh, PartitionSpec())))
    split = NamedSharding(explicit, PartitionSpec("i"))
    t.see("split over four devices, explicit mesh", f, jax.device_put(x, split))
    with jax.default_device(second):
        t.see("NumPy array under jax.default_device(another)", f, X)
        t.see("uncommitted JAX array under jax.default_device(another)", f, x)
    with jax.set_mesh(mesh):
        t.see("under jax.set_mesh(mesh)", f, x)
    t.see("back to one device", f, x)


# Every setting that has a context manager of its own among JAX's public names, with a value that it does not
# have by default. Left out: `default_device`, which is among the places, and what stops or replaces the call.
SETTINGS: dict[str, object] = {
    "default_matmul_precision": "highest",
    "enable_x64": True,
    "numpy_dtype_promotion": "strict",
    "numpy_rank_promotion": "warn",
    "threefry_partitionable": False,
    "debug_key_reuse": True,
    "allow_f16_reductions": False,
    "auto_pcast": False,
    "remove_size_one_mesh_axis_from_type": True,
    "softmax_custom_jvp": True,
    "default_prng_impl": "rbg",
    "enable_custom_prng": True,
    "legacy_prng_key": "warn",
    "debug_nans": True,
    "debug_infs": True,
    "check_tracer_leaks": True,
    "enable_checks": True,
    "log_compiles": True,
    "explain_cache_misses": True,
    "transfer_guard": "log",
    "array_garbage_collection_guard": "log",
    "thread_guard": True,
    "jax2tf_associative_scan_reductions": True,
    "named_scope": "layer",
}


def settings(t: Changes) -> None:
    """Settings."""
    x = jnp.asarray(X)
    f = warm(double, x)
    for name, value in SETTINGS.items():
        with getattr(jax, name)(value):
            t.see(f"jax.{name}({value!r})", f, x)
    with jax.default_matmul_precision("highest"):
        t.see("jax.default_matmul_precision('highest') again", f, x)
    t.see("no setting", f, x)
    with jax.disable_jit():
        t.see("jax.disable_jit()", f, x)
    context = jax.make_user_context()
    t.see("no setting, after jax.make_user_context() was called", f, x)
    for value, what in ((1, "1"), (1, "1 again"), (2, "2")):
        with context(value):
            t.see(f"user context with the value {what}", f, x)


def transformations(t: Changes) -> None:
    """Transformations and effects: calls after warm-up."""
    x = jnp.asarray(X)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    f, body = warm(double, x), counted(double)
    calls = {
        "jit(grad(f))": (jax.jit(jax.grad(counted(double))), 1.0),
        "grad(jit(f))": (jax.grad(jax.jit(counted(double))), 1.0),
        "jit(vmap(f))": (jax.jit(jax.vmap(body)), x),
        "vmap(jit(f))": (jax.vmap(f), x),
        "f with jax.pure_callback": (jax.jit(lambda x: jax.pure_callback(np.sin, shape, x)), x),
        "f with jax.debug.callback": (jax.jit(lambda x: [x, jax.debug.callback(id, x)]), x),
        "f with io_callback": (jax.jit(lambda x: io_callback(np.sin, shape, x)), x),
        "f with a Ref as argument": (jax.jit(lambda ref: ref[...]), jax.new_ref(x)),
    }
    for text, (call, argument) in calls.items():
        call(argument)
        t.see(f"{text}, called again", call, argument)


def stages(t: Changes) -> None:
    """Steps taken by hand."""
    x = jnp.asarray(X)
    f = jax.jit(counted(double))
    t.count("new f: f.trace(x)", f.trace, x)
    t.count("f.lower(x)", f.lower, x)
    t.count("f.lower(x).compile()", lambda: f.lower(x).compile())
    t.see("f(x), the first call", f, x)
    t.count("f.lower(x).compile() after the call", lambda: f.lower(x).compile())
    t.count("f.eval_shape(x) after the call", f.eval_shape, x)
    t.count("jax.make_jaxpr(f)(x) after the call", jax.make_jaxpr(f), x)
    shape = jax.ShapeDtypeStruct((5,), jnp.float32)
    t.count("f.lower(ShapeDtypeStruct).compile()", lambda: f.lower(shape).compile())
    t.see("f(array of that type)", f, jnp.ones(5))
    f = jax.jit(counted(double))
    t.count("new f: jax.eval_shape(f, x)", jax.eval_shape, f, x)
    t.see("f(x)", f, x)


def processes(t: Changes) -> None:
    """Threads, nesting, failing, clearing."""
    x = jnp.asarray(X)
    f, g = warm(double, x), warm(scale, x)
    thread = threading.Thread(target=t.see, args=("the same call from another thread", f, x))
    thread.start()
    thread.join()
    outer = jax.jit(lambda x: f(x) + 1)
    t.see("first call of an outer jitted function that calls f", outer, x)
    t.see("f itself, afterwards", f, x)
    _failing(t, x)
    f.clear_cache()
    t.see("another function after f.clear_cache()", g, x)
    t.see("f after f.clear_cache()", f, x)
    jax.clear_caches()
    t.see("f after jax.clear_caches()", f, x)


def _failing(t: Changes, x: Any) -> None:
    f = jax.jit(counted(double))
    with contextlib.suppress(RuntimeError), jax.no_tracing():
        f(x)
    t.see("a new function whose first call raised", f, x)
    t.see("the same, called a third time", f, x)
    t.see("the same, called a fourth time", f, x)
    f.clear_cache()
    f(x)
    t.see("the same, after f.clear_cache() and one call", f, x)


def keys(t: Changes) -> None:
    """Random keys."""
    f = warm(jax.random.bits, jax.random.key(0))
    t.see("key(0) → key(1)", f, jax.random.key(1))
    t.see("key(0) → PRNGKey(0), the old kind", f, jax.random.PRNGKey(0))
    t.see('key(0) → key(0, impl="rbg")', f, jax.random.key(0, impl="rbg"))
