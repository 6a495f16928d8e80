"""Cache keys, parameters, stages, the cost of a call."""

import functools
import inspect
import os
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec, SingleDeviceSharding

X = jnp.arange(4.0)


def jitted(body=lambda x: x * 2, **options):
    """A jitted copy of body, and the list that grows by one whenever its Python code runs."""
    runs = []

    def function(*args, **kwargs):
        runs.append(1)
        return body(*args, **kwargs)

    return jax.jit(function, **options), runs


def double(x):
    return x * 2


def goes_through_python(f, *args):
    """Whether a warm call leaves the fast path: `no_tracing` refuses those that do."""
    if not hasattr(jax, "no_tracing"):
        pytest.skip("not applicable: jax.no_tracing is not in this JAX")
    try:
        with jax.no_tracing():
            f(*args)
    except RuntimeError as error:
        if "no_tracing" not in str(error):
            raise
        return True
    return False


# Caches


@pytest.mark.claim(
    "numpy-leaves-the-fast-path-once",
    "The first NumPy array in place of a JAX array leaves the fast path, and the next ones do not.",
)
def test_numpy_leaves_the_fast_path_once(counted):
    refused, accepted = jitted()[0], jitted()[0]
    host = np.ones(4, np.float32)
    for f in (refused, accepted):
        f(X)
    assert goes_through_python(refused, host)
    accepted(host)
    counted()
    assert not goes_through_python(accepted, host + 1)
    assert not counted()


@pytest.mark.wrong_twin("numpy-leaves-the-fast-path-once")
def test_wrong_twin_numpy_stays_on_the_fast_path():
    f, _ = jitted()
    f(X)
    assert not goes_through_python(f, np.ones(4, np.float32))


@pytest.mark.claim(
    "fast-path-takes-the-object-itself",
    "The fast path compares functions by identity, the trace cache by `==`: an equal bound method finds the "
    "trace, and leaves the fast path.",
)
def test_fast_path_takes_the_object_itself():
    class Scale:
        def __init__(self):
            self.runs = []

        def apply(self, x):
            self.runs.append(1)
            return x * 2

    scale = Scale()
    kept = jax.jit(scale.apply)
    kept(X)
    assert not goes_through_python(jax.jit(kept.__wrapped__), X)
    assert goes_through_python(jax.jit(scale.apply), X)
    jax.jit(scale.apply)(X)
    assert len(scale.runs) == 1


@pytest.mark.claim(
    "unread-options-share-the-entry",
    "`keep_unused` and `inline` are not part of the fast path's key: the same function wrapped with one of "
    "them runs the program of the first wrapper, although `lower()` shows another.",
)
@pytest.mark.parametrize("option", ["keep_unused", "inline"])
def test_unread_options_share_the_entry(option):
    def first(x, y):
        return x * 2

    jax.jit(first)(X, X)
    other = jax.jit(first, **{option: True})
    assert not goes_through_python(other, X, X)
    if option == "keep_unused":
        inputs = [f.lower(X, X).as_text().count("%arg1:") for f in (jax.jit(first), other)]
        assert inputs == [0, 1]


@pytest.mark.claim(
    "user-context-is-in-the-key",
    "`jax.make_user_context` puts a value of your own into the key: each value traces once, and hits after.",
)
def test_user_context_is_in_the_key():
    if not hasattr(jax, "make_user_context"):
        pytest.skip("not applicable: jax.make_user_context is not in this JAX")
    context, (f, runs) = jax.make_user_context(), jitted()
    seen = []
    for value in (1, 1, 2, 1):
        with context(value):
            f(X)
        seen.append(len(runs))
    assert seen == [1, 1, 2, 2]


@pytest.mark.claim(
    "new-user-context-retraces-everything",
    "Making a user context makes every function that was compiled before trace and compile again.",
)
@pytest.mark.hostile("scalar", "empty", "bfloat16", "split", "jit", "vmap", "scan", "bound method")
def test_new_user_context_retraces_everything(case):
    if not hasattr(jax, "make_user_context"):
        pytest.skip("not applicable: jax.make_user_context is not in this JAX")
    f, runs = jitted()
    x, called = case.array, case.place(f)
    called(x), called(x)
    jax.make_user_context()
    called(x)
    assert len(runs) == 2


@pytest.mark.claim(
    "layout-recompiles",
    "An array in another memory layout keeps the trace, and lowers and compiles again.",
)
def test_layout_recompiles(counted):
    layout = pytest.importorskip("jax.experimental.layout", reason="not applicable: no module for layouts")
    if not hasattr(layout, "Format"):
        pytest.skip("not applicable: layouts have other names in this JAX")
    f, runs = jitted()
    square = jnp.ones((2, 2))
    device = SingleDeviceSharding(jax.devices()[0])
    turned = jax.device_put(square, layout.Format(layout.Layout(major_to_minor=(1, 0)), device))
    f(square)
    counted()
    f(turned)
    done = counted()
    assert (len(runs), done["lowerings"], done["compiles"]) == (1, 1, 1)


@pytest.mark.claim(
    "default-device-in-use-retraces",
    "`jax.default_device` traces and compiles again even if it names the device that is in use anyway.",
)
def test_default_device_in_use_retraces(counted):
    f, runs = jitted()
    f(X)
    counted()
    with jax.default_device(next(iter(X.devices()))):
        f(X)
    assert (len(runs), counted()["compiles"]) == (2, 1)


@pytest.mark.claim(
    "failed-first-call-stays-slow",
    "A signature whose first call raised stays off the fast path, however often it is called afterwards, "
    "until `clear_cache()`.",
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, FloatingPointError])
def test_failed_first_call_stays_slow(error):
    fail = [True]

    def body(x):
        if fail and error is not FloatingPointError:
            raise error
        return jnp.log(x)

    f = jax.jit(body)
    with pytest.raises(error), jax.debug_nans(True):
        f(-X)
    fail.clear()
    for _ in range(3):
        f(X)
    assert goes_through_python(f, X)
    f.clear_cache()
    f(X)
    assert not goes_through_python(f, X)


@pytest.mark.wrong_twin("failed-first-call-stays-slow")
def test_wrong_twin_a_successful_call_forgives_a_failed_one():
    f, _ = jitted()
    with pytest.raises(RuntimeError), jax.no_tracing():
        f(X)
    f(X)
    assert not goes_through_python(f, X)


@pytest.mark.claim(
    "effects-leave-the-fast-path",
    "A function with `jax.debug.print`, `jax.debug.callback`, `io_callback` or a `Ref` argument goes through "
    "Python at every call; one with `pure_callback` does not.",
)
@pytest.mark.parametrize("kind", ["print", "callback", "io", "ref", "pure"])
def test_effects_leave_the_fast_path(kind, capsys):
    from jax.experimental import io_callback

    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)
    if kind == "ref" and not hasattr(jax, "new_ref"):
        pytest.skip("not applicable: jax.new_ref is not in this JAX")
    bodies = {
        "print": lambda x: [x, jax.debug.print("{}", x)],
        "callback": lambda x: [x, jax.debug.callback(lambda _: None, x)],
        "io": lambda x: io_callback(np.sin, shape, x),
        "ref": lambda ref: ref[...],
        "pure": lambda x: jax.pure_callback(np.sin, shape, x),
    }
    f, argument = jax.jit(bodies[kind]), jax.new_ref(X) if kind == "ref" else X
    f(argument), f(argument)
    assert goes_through_python(f, argument) is (kind != "pure")
    jax.effects_barrier()


@pytest.mark.wrong_twin("effects-leave-the-fast-path")
def test_wrong_twin_debug_callbacks_stay_on_the_fast_path():
    f = jax.jit(lambda x: [x, jax.debug.callback(lambda _: None, x)])
    f(X), f(X)
    assert not goes_through_python(f, X)


@pytest.mark.claim(
    "callback-in-a-cond-leaves-the-fast-path",
    "A function with a `jax.debug.callback` in a branch of `cond` goes through Python when it is warm, "
    "also when the branch does not run.",
)
def test_callback_in_a_cond_leaves_the_fast_path():
    ran = []

    @jax.jit
    def f(x, now):
        jax.lax.cond(now, lambda: jax.debug.callback(lambda: ran.append(1)), lambda: None)
        return x + 1

    f(X, False), f(X, False)
    assert goes_through_python(f, X, False)
    jax.effects_barrier()
    assert not ran


@pytest.mark.claim(
    "vmap-of-jitted-works-in-python-each-time",
    "A warm `vmap(jit(f))` works in Python at each call; a warm `jit(vmap(f))` stays on the fast path.",
)
def test_vmap_of_jitted_works_in_python_each_time():
    outside, inside = jax.jit(jax.vmap(double)), jax.vmap(jax.jit(double))
    for f in (outside, inside):
        f(X), f(X)
    assert goes_through_python(inside, X)
    assert not goes_through_python(outside, X)


@pytest.mark.claim(
    "looking-after-a-call-is-free",
    "After a call, `trace`, `lower` and `compile` for the same types find their work done.",
)
def test_looking_after_a_call_is_free(counted):
    f, runs = jitted()
    f(X)
    counted()
    f.trace(X).lower().compile()
    done = counted()
    assert (len(runs), done["lowerings"], done["compiles"]) == (1, 0, 0)


@pytest.mark.claim(
    "cache-size-counts-fast-path-entries",
    "The private `_cache_size()` counts entries of the fast path, not programs: a NumPy array in place of a "
    "JAX array adds one, and compiles nothing.",
)
def test_cache_size_counts_fast_path_entries(counted):
    f, _ = jitted()
    if not hasattr(f, "_cache_size"):
        pytest.skip("not applicable: the private counter is gone")
    f(X)
    counted()
    f(np.ones(4, np.float32))
    assert f._cache_size() == 2
    assert not counted()["compiles"]


@pytest.mark.claim(
    "persistent-cache-leaves-out-quick-programs",
    "By default the persistent cache leaves out a program that took less than a second to compile.",
)
def test_persistent_cache_leaves_out_quick_programs(tmp_path):
    program = "import jax; jax.jit(lambda x: x * 2)(1.0); print(jax.config.jax_persistent_cache_min_compile_time_secs)"
    settings = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    settings.pop("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", None)
    run = subprocess.run(
        [sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=True
    )
    assert float(run.stdout) == 1
    assert not any(tmp_path.iterdir())


# What jit takes, and what it returns


@pytest.mark.claim(
    "function-is-positional-only", "jit takes the function by position: `jax.jit(fun=f)` raises `TypeError`."
)
def test_function_is_positional_only():
    with pytest.raises(TypeError, match="positional"):
        jax.jit(fun=double)


@pytest.mark.claim(
    "generators-are-refused",
    "A generator function is refused when it is wrapped, an `async` one when it is called.",
)
def test_generators_are_refused(recwarn):
    def generator(x):
        yield x

    async def coroutine(x):
        return x

    with pytest.raises(TypeError, match="generator function"):
        jax.jit(generator)
    f = jax.jit(coroutine)
    with pytest.raises(TypeError, match="coroutine"):
        f(X)


@pytest.mark.claim(
    "function-must-have-a-hash",
    "A callable object without a hash can be wrapped, and raises `TypeError` when it is called.",
)
def test_function_must_have_a_hash():
    class Double:
        __hash__ = None

        def __call__(self, x):
            return x * 2

    f = jax.jit(Double())
    with pytest.raises(TypeError, match="unhashable"):
        f(X)


@pytest.mark.claim(
    "both-static-options-are-taken-as-written",
    "`static_argnums` and `static_argnames` given together do not complete each other: a parameter that "
    "has a number and not a name there is traced when it is passed by keyword.",
)
def test_both_static_options_are_taken_as_written():
    kinds = []

    def f(x, n):
        kinds.append(isinstance(n, int))
        return x * n

    one = jax.jit(f, static_argnums=1)
    one(X, 2), one(X, n=2)
    both = jax.jit(f, static_argnums=1, static_argnames=())
    both(X + 0j, 2), both(X + 0j, n=2)
    assert kinds == [True, True, True, False]


@pytest.mark.claim(
    "in-shardings-refuse-keywords",
    "With `in_shardings` a keyword argument raises `ValueError`.",
)
def test_in_shardings_refuse_keywords():
    f = jax.jit(double, in_shardings=SingleDeviceSharding(jax.devices()[0]))
    assert f(X).shape == (4,)
    with pytest.raises(ValueError, match="kwargs"):
        f(x=X)


@pytest.mark.claim(
    "partition-spec-needs-a-mesh",
    "A `PartitionSpec` in `in_shardings` needs a mesh around the call: without one it raises `RuntimeError`.",
)
def test_partition_spec_needs_a_mesh():
    with pytest.raises(RuntimeError, match="mesh"):
        jax.jit(double, in_shardings=PartitionSpec())(X)


@pytest.mark.claim(
    "unknown-compiler-option-is-refused",
    "A compiler option that XLA does not know raises `JaxRuntimeError` when the function is called.",
)
def test_unknown_compiler_option_is_refused():
    if "compiler_options" not in inspect.signature(jax.jit).parameters:
        pytest.skip("not applicable: jit has no compiler_options in this JAX")
    f = jax.jit(double, compiler_options={"no_such_option": True})
    with pytest.raises(Exception, match="No such compile option") as caught:
        f(X)
    assert caught.type.__name__ in ("JaxRuntimeError", "XlaRuntimeError")


@pytest.mark.claim(
    "compiler-options-count-at-the-outside-only",
    "A jitted function with `compiler_options` cannot be called inside another jitted function.",
)
def test_compiler_options_count_at_the_outside_only():
    if "compiler_options" not in inspect.signature(jax.jit).parameters:
        pytest.skip("not applicable: jit has no compiler_options in this JAX")
    inner = jax.jit(double, compiler_options={"xla_embed_ir_in_executable": True})
    assert inner(X).shape == (4,)
    with pytest.raises(ValueError, match="top-level"):
        jax.jit(lambda x: inner(x) + 1)(X)


@pytest.mark.claim(
    "inline-leaves-one-function",
    "An inner function jitted with `inline=True` is part of the outer one in the StableHLO; by default it is "
    "a function of its own there.",
)
def test_inline_leaves_one_function():
    counts = []
    for inline in (False, True):
        inner = jax.jit(lambda x: x * 2, inline=inline)
        outer = jax.jit(lambda x, inner=inner: inner(inner(x)))
        counts.append(outer.lower(X).as_text().count("func.func"))
    assert counts == [2, 1]


@pytest.mark.claim(
    "wrappers-are-unequal",
    "Two wrappers of one function are two objects and not equal, and both are `jax.stages.Wrapped`.",
)
def test_wrappers_are_unequal():
    one, two = jax.jit(double), jax.jit(double)
    assert one != two
    assert isinstance(one, jax.stages.Wrapped)
    assert not isinstance(double, jax.stages.Wrapped)


@pytest.mark.claim("jitted-function-cannot-be-pickled", "A jitted function cannot be pickled.")
def test_jitted_function_cannot_be_pickled():
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        pickle.dumps(jax.jit(double))
    assert pickle.loads(pickle.dumps(double)) is double


@pytest.mark.claim(
    "cached-factory-hits",
    "A factory under `functools.cache` returns the same function for the same settings, so that wrapping "
    "its result again hits.",
)
def test_cached_factory_hits():
    runs = []

    @functools.cache
    def make(factor):
        return lambda x: runs.append(1) or x * factor

    for factor in (2, 3, 2, 3):
        jax.jit(make(factor))(X)
    assert len(runs) == 2


@pytest.mark.claim(
    "untyped-factory-mixes-equal-numbers",
    "A factory of two arguments under `functools.cache` gives the function of 2 for 2.0, and so its dtype; "
    "`lru_cache(maxsize=None, typed=True)` keeps the two apart.",
)
def test_untyped_factory_mixes_equal_numbers():
    def make(factor, offset):
        return lambda x: x * factor + offset

    for cached, dtype in (
        (functools.cache(make), "int32"),
        (functools.lru_cache(maxsize=None, typed=True)(make), "float32"),
    ):
        integers = jnp.arange(3)
        assert jax.jit(cached(2, 0))(integers).dtype == "int32"
        assert jax.jit(cached(2.0, 0))(integers).dtype == dtype


# Stages


@pytest.mark.claim(
    "traced-can-be-called",
    "A `Traced` can be called, without its static values, and goes through `grad`, `vmap` and `jit`; the "
    "Python body does not run.",
)
def test_traced_can_be_called():
    f, runs = jitted(lambda x, n: (x * n).sum(), static_argnums=1)
    traced = f.trace(X, 3)
    if not callable(traced):
        pytest.skip("not applicable: a Traced cannot be called in this JAX")
    assert traced(X) == 18
    assert jax.grad(traced)(X).tolist() == [3, 3, 3, 3]
    assert jax.vmap(traced)(jnp.stack([X, X])).tolist() == [18, 18]
    assert jax.jit(traced.__call__)(X) == 18
    assert len(runs) == 1


@pytest.mark.claim(
    "lowers-for-an-absent-platform",
    "`lower(lowering_platforms=…)` writes the StableHLO for a platform that is not there.",
)
def test_lowers_for_an_absent_platform():
    f, _ = jitted(lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos))
    if not hasattr(f, "trace"):
        pytest.skip("not applicable: jitted functions have no trace() in this JAX")
    traced = f.trace(X)
    assert "cosine" in traced.lower(lowering_platforms=("tpu",)).as_text()
    assert "cosine" not in traced.lower(lowering_platforms=("cpu",)).as_text()


@pytest.mark.claim(
    "lowered-text-has-two-dialects",
    "The text of a lowered function comes as `stablehlo` or as `hlo`; an unknown dialect raises `ValueError`.",
)
def test_lowered_text_has_two_dialects():
    lowered = jax.jit(double).lower(X)
    assert lowered.as_text() == lowered.as_text("stablehlo")
    assert lowered.as_text("hlo").startswith("HloModule")
    with pytest.raises(ValueError, match="dialect"):
        lowered.as_text("llvm")


@pytest.mark.claim(
    "debug-info-names-source-lines",
    "`as_text(debug_info=True)` names the source file of each operation; without it, it does not.",
)
def test_debug_info_names_source_lines():
    lowered = jax.jit(double).lower(X)
    with_lines = lowered.as_text(debug_info=True)
    assert "test_reference_caches.py" in with_lines
    assert "test_reference_caches.py" not in lowered.as_text()


@pytest.mark.claim(
    "compiled-overlooks-weak-types",
    "A compiled function takes a Python float for `float32`, and a strongly typed array where it was compiled "
    "for a Python float; an int it refuses.",
)
def test_compiled_overlooks_weak_types():
    strong = jax.jit(double).lower(jax.ShapeDtypeStruct((), jnp.float32)).compile()
    weak = jax.jit(double).lower(3.0).compile()
    assert strong(3.0) == weak(jnp.float32(3)) == 6
    with pytest.raises(TypeError, match="float32"):
        strong(3)


@pytest.mark.claim(
    "args-info-tells-what-is-donated",
    "`args_info` of a lowered and of a compiled function holds shape, dtype and whether the argument is "
    "donated.",
)
def test_args_info_tells_what_is_donated():
    lowered = jax.jit(lambda x, y: x + y, donate_argnums=0).lower(X, 1.0)
    for stage in (lowered, lowered.compile()):
        (x, y), _ = stage.args_info
        assert (x.shape, x.dtype, x.donated, y.donated) == ((4,), jnp.float32, True, False)


@pytest.mark.wrong_twin("args-info-tells-what-is-donated")
def test_wrong_twin_args_info_ignores_donation():
    (x,), _ = jax.jit(double, donate_argnums=0).lower(X).args_info
    assert not x.donated


@pytest.mark.claim(
    "donation-shows-in-memory-analysis",
    "`memory_analysis().alias_size_in_bytes` is the memory that donated arguments lend to results.",
)
def test_donation_shows_in_memory_analysis():
    sizes = []
    for donate in ((), 0):
        memory = jax.jit(double, donate_argnums=donate).lower(X).compile().memory_analysis()
        if memory is None:
            pytest.skip("not applicable: this backend does not report memory")
        sizes.append(memory.alias_size_in_bytes)
    assert sizes == [0, X.nbytes]


@pytest.mark.claim(
    "stages-cannot-be-pickled",
    "A lowered and a compiled function cannot be pickled: `jax.export` writes functions that can be kept.",
)
def test_stages_cannot_be_pickled():
    lowered = jax.jit(double).lower(X)
    for stage in (lowered, lowered.compile()):
        with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
            pickle.dumps(stage)


SHARDINGS = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2,), ("i",))
split, whole = NamedSharding(mesh, P("i")), NamedSharding(mesh, P())
x = jnp.arange(4.0)
f = jax.jit(lambda x: x * 2, in_shardings=split)
print(f(x).sharding.spec == P("i"))
for placed in (jax.device_put(x, jax.devices()[1]), jax.device_put(x, whole)):
    try:
        f(placed)
    except ValueError as error:
        print("does not match" in str(error))
with jax.set_mesh(mesh):
    g = jax.jit(lambda x: x * 2, in_shardings=P("i"))
    spec = g.lower(x).compile().input_shardings[0][0].spec
    print(spec == P("i"), g(x).sharding.is_fully_replicated)
lowered, second = jax.jit(lambda x: x * 3).lower(x), jax.devices()[1]
for attempt in (
    lambda: lowered.compile(device_assignment=(second,)),
    lambda: lowered.compile()(jax.device_put(x, second)),
):
    try:
        attempt()
    except ValueError as error:
        print(str(error).split(" ")[0])
"""


@pytest.fixture(scope="module")
def shardings():
    """What a process with two CPU devices prints."""
    if not hasattr(jax, "set_mesh") or not hasattr(jax, "make_mesh"):
        pytest.skip("not applicable: jax.set_mesh is not in this JAX")
    flags = "--xla_force_host_platform_device_count=2"
    settings = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    return subprocess.run(
        [sys.executable, "-c", SHARDINGS], env=settings, capture_output=True, text=True, check=True
    ).stdout.split("\n")


@pytest.mark.claim(
    "in-shardings-over-several-devices-must-match",
    "An argument that was placed on purpose raises `ValueError` where `in_shardings` spreads it over several "
    "devices in another way; one that was not is split.",
)
def test_in_shardings_over_several_devices_must_match(shardings):
    assert shardings[:3] == ["True", "True", "True"]


@pytest.mark.claim(
    "in-shardings-leave-the-type-alone",
    "Under an explicit mesh, `in_shardings` splits an input over the devices, and the result is whole: the "
    "type that was traced is not split.",
)
def test_in_shardings_leave_the_type_alone(shardings):
    assert shardings[3] == "True True"


@pytest.mark.claim(
    "compile-takes-no-other-devices",
    "`lowered.compile(device_assignment=…)` refuses devices other than those of the arguments.",
)
def test_compile_takes_no_other_devices(shardings):
    assert shardings[4] == "device_assignment"


@pytest.mark.claim(
    "compiled-refuses-arrays-elsewhere",
    "A compiled function refuses an array that was placed on another device: it moves nothing.",
)
def test_compiled_refuses_arrays_elsewhere(shardings):
    assert shardings[5] == "Computation"
