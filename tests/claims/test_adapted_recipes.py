"""Recipes with another dtype, transformation or sharding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify

try:
    from jax import enable_x64
except ImportError:
    from jax.experimental import enable_x64


@pytest.mark.claim(
    "cast-down-and-back-may-be-removed",
    "Under jit, XLA may remove a cast to `bfloat16` and back, so that nothing is rounded; `lax.reduce_precision` rounds "
    "as outside of jit.",
)
@pytest.mark.platform("cpu")
def test_cast_down_and_back_may_be_removed():
    def cast(x, y):
        return (x.astype(jnp.bfloat16) * y.astype(jnp.bfloat16)).astype(jnp.float32)

    def reduced(x, y):
        x, y = (lax.reduce_precision(a, exponent_bits=8, mantissa_bits=7) for a in (x, y))
        return lax.reduce_precision(x * y, exponent_bits=8, mantissa_bits=7)

    x, y = jnp.linspace(1, 2, 1000) * 1.2345, jnp.linspace(3, 2, 1000)
    assert (cast(x, y) == reduced(x, y)).all()
    assert (cast(x, y) == jax.jit(reduced)(x, y)).all()
    assert (cast(x, y) != jax.jit(cast)(x, y)).mean() > 0.9


@pytest.mark.claim(
    "index-checks-go-inside-vmap",
    "`vmap` of a function that `checkify` checks for indices out of range reports the wrong index of a write.",
)
def test_index_checks_go_inside_vmap():
    checked = checkify.checkify(lambda x, i: x.at[i].set(9.0), errors=checkify.index_checks)
    good, _ = jax.vmap(checked)(jnp.ones((2, 4)), jnp.array([0, 1]))
    wrong, _ = jax.vmap(checked)(jnp.ones((2, 4)), jnp.array([0, 9]))
    assert good.get() is None
    assert "out-of-bounds" in wrong.get()


@pytest.mark.claim(
    "index-checks-around-vmap-refuse-good-indices",
    "`checkify` with index checks around the `vmap` of a write raises `IndexError`, although the indices are in range.",
)
def test_index_checks_around_vmap_refuse_good_indices():
    write = jax.vmap(lambda x, i: x.at[i].set(9.0))
    checked = checkify.checkify(write, errors=checkify.index_checks)
    with pytest.raises(IndexError, match="tuple index out of range"):
        checked(jnp.ones((2, 4)), jnp.array([0, 1]))


@pytest.mark.claim(
    "gradient-of-a-donating-function-may-need-the-donated",
    "`grad` of a jitted function that donates raises `RuntimeError` if the backward pass reads the donated argument.",
)
def test_gradient_of_a_donating_function_may_need_the_donated():
    def gradient(f):
        return jax.grad(lambda x: jax.jit(f, donate_argnums=0)(x).sum())(jnp.ones(4))

    np.testing.assert_array_equal(gradient(lambda x: 2 * x), 2 * jnp.ones(4))
    with pytest.raises(RuntimeError, match="deleted"):
        gradient(lambda x: x * x)


@pytest.mark.claim(
    "running-sum-in-bfloat16-stalls",
    "A sum of ones that `lax.scan` carries in `bfloat16` stops at 256; `jnp.cumsum` reaches 1000.",
)
def test_running_sum_in_bfloat16_stalls():
    ones = jnp.ones(1000, jnp.bfloat16)
    carried, _ = lax.scan(lambda total, x: (total + x, None), jnp.bfloat16(0), ones)
    assert carried == 256
    assert jnp.cumsum(ones)[-1] == 1000


@pytest.mark.claim(
    "associative-scan-passes-stacks",
    "`lax.associative_scan` calls its function with stacks of partial results, not with two of them.",
)
def test_associative_scan_passes_stacks():
    shapes = []

    def add(left, right):
        shapes.append((left.shape, right.shape))
        return left + right

    lax.associative_scan(add, jnp.arange(8.0))
    assert ((4,), (4,)) in shapes
    assert () not in {shape for pair in shapes for shape in pair}


DONATED = """
import warnings

import jax, jax.numpy as jnp
import numpy as np

mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())


def outcome(x, **shardings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jax.jit(lambda x: 2 * x, donate_argnums=0, **shardings)(x)
    return x.is_deleted(), any("not usable" in str(one.message) for one in caught)


print(outcome(jax.device_put(jnp.ones(16), split)))
print(outcome(jnp.ones(16), in_shardings=split))
print(outcome(jax.device_put(jnp.ones(16), split), out_shardings=whole))
"""


@pytest.mark.claim(
    "donation-needs-the-same-sharding",
    "A donated argument is kept if `in_shardings` moves it, without a warning, and if the result has another sharding.",
)
def test_donation_needs_the_same_sharding(child):
    same, moved, other = child(DONATED, devices=4).splitlines()
    assert (same, moved) == ("(True, False)", "(False, False)")
    assert other.startswith("(False")


@pytest.mark.claim(
    "array-made-for-a-device-is-committed",
    "An array that `jnp.ones` makes for a given device is committed to it, unlike one made without.",
)
def test_array_made_for_a_device_is_committed():
    device = jax.devices()[0]
    assert jnp.ones(3, device=device).committed
    assert not jnp.ones(3).committed


@pytest.mark.claim(
    "gradient-through-an-x64-block-may-fail",
    "`jax.grad` of a `float32` function with an x64 block in its body raises `TypeError` if the block takes a maximum; "
    "called in an x64 block it works.",
)
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype float64")
def test_gradient_through_an_x64_block_may_fail():

    @jax.jit
    def largest(x):
        with enable_x64(True):
            return jnp.max(x.astype(jnp.float64)).astype(jnp.float32)

    x = jnp.arange(3.0)
    assert largest(x) == 2
    with pytest.raises(TypeError, match="same dtypes"):
        jax.grad(largest)(x)
    with enable_x64(True):
        assert jax.grad(largest)(x).tolist() == [0, 0, 1]


@pytest.mark.claim(
    "float-checks-overlook-the-nan-of-cholesky",
    "`checkify.float_checks` reports the `nan` of `jnp.log`, and not that of `jnp.linalg.cholesky` or `jnp.linalg.qr`.",
)
def test_float_checks_overlook_the_nan_of_cholesky():
    def reported(function, x):
        error, result = jax.jit(checkify.checkify(function, errors=checkify.float_checks))(x)
        assert jnp.isnan(result).any()
        return error.get() is not None

    assert reported(jnp.log, -jnp.eye(2))
    assert not reported(jnp.linalg.cholesky, -jnp.eye(2))
    assert not reported(lambda x: jnp.linalg.qr(x)[1], jnp.full((2, 2), jnp.nan))


@pytest.mark.claim(
    "false-times-infinity-in-bfloat16",
    "On a CPU, `False * inf` is 0 in `float32` and `nan` in `bfloat16`.",
)
@pytest.mark.platform("cpu")
def test_false_times_infinity_in_bfloat16():
    no, infinity = jnp.array([False]), jnp.array([jnp.inf])
    assert (no * infinity)[0] == 0
    assert jnp.isnan(no * infinity.astype(jnp.bfloat16))[0]


PLACED = """
import jax, jax.numpy as jnp
import numpy as np

devices = jax.devices()
mesh = jax.sharding.Mesh(np.array(devices), ("i",))
split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
for zeros in (lambda: jnp.zeros(8, device=split), jax.jit(lambda: jnp.zeros(8, device=split))):
    print(len(zeros().sharding.device_set))
second, spread = jax.device_put(jnp.ones(8), devices[1]), jax.device_put(jnp.ones(8), split)
for captured in (second, spread):
    print(jax.jit(lambda: captured * 2)().devices() == {devices[0]})
    print(jax.jit(lambda x: captured * x)(jnp.ones(8)).devices() == {devices[0]})
"""


@pytest.mark.claim(
    "device-of-new-zeros-is-ignored-under-jit",
    "`jnp.zeros(8, device=sharding)` splits the array over four devices; under jit it puts it on one.",
)
def test_device_of_new_zeros_is_ignored_under_jit(child):
    assert child(PLACED, devices=4).splitlines()[:2] == ["4", "1"]


@pytest.mark.claim(
    "captured-array-does-not-choose-the-device",
    "A jitted function runs on the default device although an array that it captures is on another device, or split over "
    "four.",
)
def test_captured_array_does_not_choose_the_device(child):
    assert child(PLACED, devices=4).splitlines()[2:] == ["True"] * 4


@pytest.mark.claim(
    "block-until-ready-overlooks-unknown-classes",
    "`jax.block_until_ready` waits for the entries of a list, and not for those of an object whose class is not registered.",
)
def test_block_until_ready_overlooks_unknown_classes():
    class Result:
        def __init__(self, value):
            self.value = value

    class Late:
        waits = 0

        def block_until_ready(self):
            self.waits += 1
            return self

    late = Late()
    jax.block_until_ready([late])
    assert late.waits == 1
    jax.block_until_ready(Result(late))
    assert late.waits == 1


@pytest.mark.claim(
    "probability-decides-the-dtype-of-bernoulli",
    "With 64-bit types, `jax.random.bernoulli(key, 0.5)` draws other values, and with a `float32` probability the same.",
)
def test_probability_decides_the_dtype_of_bernoulli():
    key = jax.random.key(0)

    def draws(probability):
        with enable_x64(True):
            wide = jax.random.bernoulli(key, probability, (64,))
        return np.asarray(jax.random.bernoulli(key, probability, (64,))), np.asarray(wide)

    assert not np.array_equal(*draws(0.5))
    assert np.array_equal(*draws(jnp.float32(0.5)))


@pytest.mark.claim(
    "array-of-a-python-number-is-weak",
    "`jnp.full(shape, 2.0)` has a weak type, so it does not use what was compiled for a `ShapeDtypeStruct`; with a dtype it does.",
)
def test_array_of_a_python_number_is_weak():
    traces = []

    @jax.jit
    def f(x):
        traces.append(x)
        return x * 2

    f(jnp.full(8, 2.0, jnp.float32))
    f(jnp.full(8, 3.0, jnp.float32))
    assert len(traces) == 1
    weak = jnp.full(8, 2.0)
    assert weak.weak_type
    f(weak)
    assert len(traces) == 2


@pytest.mark.claim(
    "clearing-the-outer-function-keeps-the-trace-of-the-inner",
    "After `clear_cache()` of a jitted function, a jitted function inside it is not traced again; after `jax.clear_caches()` "
    "it is.",
)
def test_clearing_the_outer_function_keeps_the_trace_of_the_inner():
    traces = []

    @jax.jit
    def inner(x):
        traces.append(x)
        return x + 1

    outer = jax.jit(lambda x: inner(x))
    outer(1.0)
    outer.clear_cache()
    outer(1.0)
    assert len(traces) == 1
    jax.clear_caches()
    outer(1.0)
    assert len(traces) == 2


@pytest.mark.claim(
    "asarray-of-a-python-number-stays-weak",
    "With a `bfloat16` array, `jnp.asarray(0.1)` gives `bfloat16` and `jnp.float32(0.1)` gives `float32`.",
)
def test_asarray_of_a_python_number_stays_weak():
    weights = jnp.ones(3, jnp.bfloat16)
    for scaled in (lambda w, rate: w * rate, jax.jit(lambda w, rate: w * rate)):
        assert scaled(weights, jnp.asarray(0.1)).dtype == jnp.bfloat16
        assert scaled(weights, jnp.float32(0.1)).dtype == jnp.float32


@pytest.mark.claim(
    "dict-in-a-static-field-may-change-unnoticed",
    "After a dict in a static field has changed, a jitted function returns the old result for it, and even for a new object with an "
    "equal dict.",
)
def test_dict_in_a_static_field_may_change_unnoticed():
    class Layer:
        def __init__(self, weight, settings):
            self.weight, self.settings = weight, settings

    jax.tree_util.register_pytree_node(
        Layer, lambda one: ((one.weight,), one.settings), lambda settings, leaves: Layer(*leaves, settings)
    )
    scale = jax.jit(lambda layer: layer.weight * layer.settings["factor"])
    settings = {"factor": 2}
    assert scale(Layer(1.0, settings)) == 2
    settings["factor"] = 10
    assert scale(Layer(1.0, settings)) == 2
    assert scale(Layer(1.0, {"factor": 10})) == 2


@pytest.mark.claim(
    "inverted-python-flag-is-true",
    "`~flag` inverts a traced flag; for a static one, a Python `True`, it is -2, which counts as true.",
)
@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")
def test_inverted_python_flag_is_true():
    def choose(flag):
        return jnp.where(~flag, 1, 2)

    assert jax.jit(choose)(True) == 2
    assert jax.jit(choose, static_argnames="flag")(flag=True) == 1


@pytest.mark.claim(
    "minus-infinity-rounds-large-integers",
    "`jnp.where(mask, x, -jnp.inf)` turns integers into `float32`, so `argmax` of it may miss the largest one.",
)
def test_minus_infinity_rounds_large_integers():
    x = jnp.array([100_000_000, 100_000_001, 7])
    masked = jnp.where(jnp.array([True, True, False]), x, -jnp.inf)
    assert masked.dtype == jnp.float32
    assert (jnp.argmax(x), jnp.argmax(masked)) == (1, 0)


@pytest.mark.claim(
    "put-without-a-place-leaves-an-array-on-the-host",
    "`jax.device_put(x)` leaves an array in the host's pinned memory, and with `jax.memory.Space.Device` it moves it.",
)
@pytest.mark.skipif(not hasattr(jax, "memory"), reason="not applicable: this release has no jax.memory")
def test_put_without_a_place_leaves_an_array_on_the_host():
    pinned = jax.device_put(jnp.ones(3), jax.memory.Space.Host)
    assert jax.device_put(pinned).sharding.memory_kind == pinned.sharding.memory_kind == "pinned_host"
    assert jax.device_put(pinned, jax.memory.Space.Device).sharding.memory_kind == "device"


@pytest.mark.wrong_twin("running-sum-in-bfloat16-stalls")
def test_wrong_twin_the_running_sum_goes_on():
    ones = jnp.ones(1000, jnp.bfloat16)
    carried, _ = lax.scan(lambda total, x: (total + x, None), jnp.bfloat16(0), ones)
    assert carried == 1000
