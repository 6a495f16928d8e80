"""Where general rules stop."""

import functools
import inspect
import io
import json
import math
import os
import subprocess
import sys
import warnings
from contextlib import redirect_stdout

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

ON_FOUR_DEVICES = """
import json
import logging
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

logging.getLogger("jax").setLevel(logging.CRITICAL)
devices = jax.devices()
split = NamedSharding(Mesh(np.array(devices), ("i",)), P("i"))
facts = {"count": len(devices)}


def donated(function):
    x = jax.device_put(jnp.ones(8), split)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jax.block_until_ready(jax.jit(function, donate_argnums=0)(x))
    return [x.is_deleted(), len(caught)]


def message(call):
    try:
        return str(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


facts["sum"] = donated(lambda x: x.sum())
facts["joined"] = donated(lambda x: jnp.concatenate([x, x]))
facts["same"] = donated(lambda x: 2 * x)

shapes = []


def seen(x):
    shapes.append(list(np.shape(x)))
    return np.asarray(x) * 2


spread = jax.device_put(jnp.arange(8.0), split)
called = jax.jit(lambda x: jax.pure_callback(seen, jax.ShapeDtypeStruct((8,), jnp.float32), x))
facts["doubled"] = called(spread).tolist()
facts["callback"] = shapes


@jax.jit
def ordered(x):
    jax.debug.print("{s}", s=x.sum(), ordered=True)
    return x


facts["ordered"] = message(lambda: ordered(spread).block_until_ready())

plus = jax.jit(lambda x: x + 1)
compiled = plus.lower(jnp.ones(8)).compile()
with jax.default_device(devices[2]):
    elsewhere = jnp.ones(8)
facts["uncommitted"] = message(lambda: compiled(elsewhere).devices() == {devices[0]})
facts["committed"] = message(lambda: compiled(jax.device_put(jnp.ones(8), devices[1])).devices())
facts["jaxpr"] = str(jax.make_jaxpr(lambda x: jax.device_put(x, devices[1]))(1.0))
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def facts():
    settings = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run(
        [sys.executable, "-c", ON_FOUR_DEVICES],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.claim(
    "split-array-is-refused-for-donation-without-a-warning",
    "Donating an array that is split over several devices along automatic axes, where the results have other sizes, "
    "does nothing, without a warning; a result of the same size takes its memory.",
)
def test_split_array_is_refused_for_donation_without_a_warning(facts):
    assert facts["count"] == 4
    assert facts["sum"] == facts["joined"] == [False, 0]
    assert facts["same"] == [True, 0]


@pytest.mark.wrong_twin("split-array-is-refused-for-donation-without-a-warning")
def test_wrong_twin_split_array_warns(facts):
    assert facts["sum"] == [False, 1]


@pytest.mark.claim(
    "callback-on-a-split-array-gets-all-of-it",
    "A `pure_callback` in a jitted function of an array that is split over four devices is called once, with the "
    "whole array.",
)
def test_callback_on_a_split_array_gets_all_of_it(facts):
    assert facts["callback"] == [[8]]
    assert facts["doubled"] == [2.0 * i for i in range(8)]


@pytest.mark.claim(
    "ordered-print-is-for-one-device",
    "A jitted function with an ordered `jax.debug.print` raises `ValueError` when it is called with an array that "
    "is split over several devices.",
)
def test_ordered_print_is_for_one_device(facts):
    assert facts["ordered"].startswith("ValueError: ")


@pytest.mark.claim(
    "compiled-moves-uncommitted-arrays",
    "A compiled function takes an uncommitted array from another device and moves it; for a committed one it raises "
    "`ValueError`.",
)
def test_compiled_moves_uncommitted_arrays(facts):
    assert facts["uncommitted"] == "True"
    assert facts["committed"].startswith("ValueError: ")


@pytest.mark.claim(
    "device-put-in-a-jaxpr-names-its-device",
    "A `device_put` to a device inside of a function is an equation of the jaxpr, and names the device.",
)
def test_device_put_in_a_jaxpr_names_its_device(facts):
    assert "device_put" in facts["jaxpr"]
    assert "CpuDevice(id=1)" in facts["jaxpr"] or "TFRT_CPU_1" in facts["jaxpr"]


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "memory-error-counts-all-temporaries",
    "On a CPU, the number of bytes in an out-of-memory error can be that of the temporary arrays of a function "
    "together, which `memory_analysis` gives in advance.",
)
def test_memory_error_counts_all_temporaries():
    def two_tables(x):
        product, difference = x[:, None] * x[None, :], jnp.sin(x)[:, None] - x[None, :]
        return (product @ difference).sum() + (difference @ product).sum()

    x = jnp.ones(2**21)
    compiled = jax.jit(two_tables).lower(x).compile()
    needed = compiled.memory_analysis().temp_size_in_bytes
    assert needed >= 2 * 4 * x.size**2
    with pytest.raises(Exception, match=f"allocating {needed} bytes"):
        compiled(x).block_until_ready()


@pytest.mark.claim(
    "donation-to-a-larger-type-is-ignored-silently",
    "Donating an array to a result with as many elements of a larger dtype does nothing, without a warning.",
)
def test_donation_to_a_larger_type_is_ignored_silently():
    for narrow, wide in ((jnp.bfloat16, jnp.float32), (jnp.float32, jnp.complex64)):
        x = jnp.ones(4, narrow)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            jax.jit(lambda x, wide=wide: x.astype(wide), donate_argnums=0)(x)
        assert not x.is_deleted()


@pytest.mark.claim(
    "vmap-and-grad-of-a-donating-function-donate",
    "`vmap` or `grad` of a jitted function that donates deletes the argument, unlike a call inside another jitted "
    "function.",
)
def test_vmap_and_grad_of_a_donating_function_donate():
    double = jax.jit(lambda x: 2 * x, donate_argnums=0)
    batched, differentiated, inner = jnp.ones(4), jnp.ones(4), jnp.ones(4)
    jax.vmap(double)(batched)
    jax.grad(lambda x: double(x).sum())(differentiated)
    jax.jit(lambda x: double(x))(inner)
    assert (batched.is_deleted(), differentiated.is_deleted(), inner.is_deleted()) == (True, True, False)


def temporary_bytes(function, *args):
    compiled = jax.jit(function, donate_argnums=0).lower(*args).compile()
    return compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "reads-before-two-writes-may-copy",
    "A jitted function of a donated array that reads two elements and then writes both may need a copy of "
    "the whole array; reading and writing them as one window with `dynamic_slice` and "
    "`dynamic_update_slice` does not.",
)
def test_reads_before_two_writes_may_copy():
    def swap(x):
        first, second = x[0], x[1]
        return x.at[0].set(second).at[1].set(first)

    def swap_window(x, i):
        pair = lax.dynamic_slice(x, (i,), (2,))
        return lax.dynamic_update_slice(x, pair[::-1], (i,))

    x = jax.ShapeDtypeStruct((100_000,), jnp.float32)
    assert temporary_bytes(swap, x) >= 400_000
    assert temporary_bytes(swap_window, x, 0) < 1000
    assert jax.jit(swap_window)(jnp.arange(4.0), 1).tolist() == [0.0, 2.0, 1.0, 3.0]


@pytest.mark.claim(
    "captured-uniform-array-hides-in-the-text",
    "A captured array of a million zeros takes a few characters of the lowered text.",
)
def test_captured_uniform_array_hides_in_the_text():
    def length(table):
        return len(jax.jit(lambda x: x * table).lower(1.0).as_text())

    assert length(jnp.zeros(1_000_000)) < 2000
    assert length(jnp.arange(1_000_000.0)) > 8_000_000


@pytest.mark.claim(
    "checkpoint-traces-under-disable-jit",
    "`jax.checkpoint` traces its function under `disable_jit` as well.",
)
def test_checkpoint_traces_under_disable_jit():
    seen = []

    def body(x):
        seen.append(isinstance(x, jax.core.Tracer))
        return 2 * x

    with jax.disable_jit():
        jax.jit(body)(1.0)
        jax.checkpoint(body)(1.0)
    assert seen == [False, True]


@pytest.mark.claim(
    "product-of-an-empty-shape-is-a-float-in-numpy",
    "`np.prod(x.shape)` is a float for a scalar `x`, so `reshape` refuses it; `math.prod` and `-1` work "
    "for scalars too.",
)
def test_product_of_an_empty_shape_is_a_float_in_numpy():
    with pytest.raises(TypeError):
        jax.jit(lambda x: x.reshape(np.prod(x.shape)))(1.0)
    for shape in ((), (3,), (2, 3), (0, 2)):
        x, size = jnp.ones(shape), math.prod(shape)
        assert jax.jit(lambda x: x.reshape(math.prod(x.shape)))(x).shape == (size,)
        assert jax.jit(lambda x: x.reshape(-1))(x).shape == (size,)


@pytest.mark.claim(
    "static-minus-zero-shares-the-program-of-zero",
    "`-0.0` as a static argument gets the program made for `0.0`, since the two are equal.",
)
def test_static_minus_zero_shares_the_program_of_zero():
    @functools.partial(jax.jit, static_argnames="n")
    def sign(x, n):
        return x * math.copysign(1.0, n)

    assert (float(sign(1.0, n=0.0)), float(sign(1.0, n=-0.0))) == (1.0, 1.0)


@pytest.mark.claim(
    "fresh-static-nan-recompiles",
    "A `nan` that is created again for each call, as a static argument, traces each time, since it equals "
    "nothing.",
)
def test_fresh_static_nan_recompiles():
    traces = []

    @functools.partial(jax.jit, static_argnames="n")
    def add(x, n):
        traces.append(n)
        return x + n

    for _ in range(3):
        add(1.0, n=float("nan"))
    assert len(traces) == 3


@pytest.mark.claim(
    "float64-fallback-warns-while-tracing-only",
    "A `float64` array that left an `enable_x64` block becomes `float32` when a number is added to it under jit: the "
    "first call warns, later ones do not; functions of that array alone, such as `jnp.sin`, keep `float64`.",
)
def test_float64_fallback_warns_while_tracing_only():
    with jax.enable_x64(True):
        wide = jnp.float64(1.0) / 3
    add = jax.jit(lambda x: x + 1)
    warned = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert (wide.dtype, add(wide).dtype) == ("float64", "float32")
        warned.append(len(caught) > 0)
    assert warned == [True, False]
    assert jnp.sin(wide).dtype == (-wide).dtype == "float64"


@pytest.mark.claim(
    "casts-between-integers-wrap-around",
    "A cast from an integer type to a narrower one wraps around, so `int32` 300 becomes `int8` 44; a cast from a float "
    "stops at the largest value.",
)
def test_casts_between_integers_wrap_around():
    cast = jax.jit(lambda x: x.astype(jnp.int8))
    for narrow in (cast, lambda x: x.astype(jnp.int8)):
        assert (int(narrow(jnp.int32(300))), int(narrow(jnp.float32(300)))) == (44, 127)


@pytest.mark.claim(
    "integer-division-by-zero-gives-a-number",
    "Dividing an integer by zero with `//` or `%` raises nothing and gives an integer, with jit and without.",
)
def test_integer_division_by_zero_gives_a_number():
    def both(a, b):
        return a // b, a % b

    for divide in (both, jax.jit(both)):
        quotient, rest = divide(jnp.int32(7), jnp.int32(0))
        assert quotient.dtype == rest.dtype == jnp.int32


@pytest.mark.claim(
    "float-branch-is-not-unified-with-half-precision",
    "Of two branches of `cond`, a Python float agrees with `float32`, and not with `bfloat16` or `float16`.",
)
def test_float_branch_is_not_unified_with_half_precision():
    def chosen(dtype):
        return lax.cond(True, lambda: jnp.ones((), dtype), lambda: 1.0).dtype

    assert chosen(jnp.float32) == jnp.float32
    for dtype in (jnp.bfloat16, jnp.float16):
        with pytest.raises(TypeError):
            chosen(dtype)


@pytest.mark.claim(
    "guard-in-a-branch-fires-under-vmap",
    "A callback that raises in one branch of `cond` is called under `vmap` also for a batch in which the "
    "other branch is taken throughout.",
)
def test_guard_in_a_branch_fires_under_vmap():
    if "vmap_method" not in inspect.signature(jax.pure_callback).parameters:
        pytest.skip("not applicable: `pure_callback` has no `vmap_method`.")
    called = []

    def note(x):
        called.append(float(np.ravel(x)[0]))
        return np.float32(0)

    def guard(x):
        number = jax.ShapeDtypeStruct((), jnp.float32)
        bad = functools.partial(jax.pure_callback, note, number, vmap_method="sequential")
        return lax.cond(x < 0, bad, lambda x: x, x)

    assert (float(jax.jit(guard)(1.0)), called) == (1.0, [])
    assert jax.jit(jax.vmap(guard))(jnp.arange(1.0, 4.0)).tolist() == [1.0, 2.0, 3.0]
    assert called


@pytest.mark.claim(
    "debug-print-shows-the-forward-pass",
    "Under `grad`, `jax.debug.print` in the function prints the value of the forward pass; a `jax.custom_vjp` around "
    "the identity prints the gradient.",
)
def test_debug_print_shows_the_forward_pass():
    @jax.custom_vjp
    def show_gradient(x):
        return x

    def backward(_, gradient):
        jax.debug.print("gradient {g}", g=gradient)
        return (gradient,)

    show_gradient.defvjp(lambda x: (x, None), backward)

    def loss(x):
        jax.debug.print("value {x}", x=x)
        return show_gradient(x) ** 2

    text = io.StringIO()
    with redirect_stdout(text):
        jax.jit(jax.grad(loss))(3.0)
        jax.effects_barrier()
    assert sorted(text.getvalue().splitlines()) == ["gradient 6.0", "value 3.0"]


@pytest.mark.claim(
    "jit-updates-a-ref-in-place",
    "A jitted function that gets a `Ref` of `jax.new_ref` changes what is in it, without a result and without a copy "
    "of the array.",
)
def test_jit_updates_a_ref_in_place():
    ref = jax.new_ref(jnp.zeros(100_000))

    @jax.jit
    def count(ref, i):
        ref[i] += 1.0

    for i in (0, 1, 1):
        count(ref, i)
    assert ref[...][:3].tolist() == [1.0, 2.0, 0.0]
    assert count.lower(ref, 0).compile().memory_analysis().temp_size_in_bytes < 1000


@pytest.mark.claim(
    "array-in-a-hashable-wrapper-can-be-static",
    "An object that holds a NumPy array and has `__hash__` and `__eq__` by its content can be a static argument: "
    "equal contents share one trace.",
)
def test_array_in_a_hashable_wrapper_can_be_static():
    class Fixed:
        def __init__(self, array):
            self.array = np.array(array)
            self.key = (self.array.dtype, self.array.shape, self.array.tobytes())

        def __hash__(self):
            return hash(self.key)

        def __eq__(self, other):
            return isinstance(other, Fixed) and self.key == other.key

    traces = []

    @functools.partial(jax.jit, static_argnames="mask")
    def chosen(x, mask):
        traces.append(mask)
        return x[mask.array]

    for mask in ([True, False, True], [True, False, True], [False, True, False]):
        result = chosen(jnp.arange(3.0), mask=Fixed(mask))
    assert (result.tolist(), len(traces)) == ([1.0], 2)


@pytest.mark.claim(
    "equation-counts-can-be-dumped",
    "With `jax_dump_ir_modes` set to `eqn_count_pprof`, JAX writes a profile of how many equations each source line "
    "contributes, into the folder of `jax_dump_ir_to`.",
)
def test_equation_counts_can_be_dumped(tmp_path):
    jax.config.update("jax_dump_ir_modes", "stablehlo")  # the default; an old JAX does not know the option
    script = "import jax\nf = jax.jit(lambda x: sum(jax.numpy.sin(x) * i for i in range(20)))\nf(1.0)\n"
    settings = {
        "JAX_DUMP_IR_TO": str(tmp_path),
        "JAX_DUMP_IR_MODES": "eqn_count_pprof",
        "JAX_PLATFORMS": "cpu",
    }
    subprocess.run([sys.executable, "-c", script], env={**os.environ, **settings}, check=True)
    assert [path for path in tmp_path.rglob("*") if "eqn_count" in path.name or path.suffix == ".pb"]


@pytest.mark.claim(
    "precision-argument-is-in-the-jaxpr",
    "`precision=` of one matrix product is written into its equation, as a `Precision` or a `DotAlgorithmPreset`.",
)
def test_precision_argument_is_in_the_jaxpr():
    a = jnp.ones((2, 2))
    for precision, text in (("highest", "HIGHEST"), (lax.DotAlgorithmPreset.F32_F32_F32, "F32_F32_F32")):
        jaxpr = jax.make_jaxpr(lambda a, precision=precision: jnp.matmul(a, a, precision=precision))(a)
        assert text in str(jaxpr)
