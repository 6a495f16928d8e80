"""Numbers that differ from NumPy's, or from those without jit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hostile import x64


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "equal-squares-may-not-cancel-under-jit",
    "On a CPU, `x2**2 - x1**2` of equal inputs is 0 without jit, and may be a small number of either sign under jit, so "
    "that its square root is `nan`; `(x2 - x1) * (x2 + x1)` is 0 in both.",
)
def test_equal_squares_may_not_cancel_under_jit():
    x = jnp.linspace(0.1, 5.0, 1000)

    def difference(x1, x2):
        return x2**2 - x1**2

    def factored(x1, x2):
        return (x2 - x1) * (x2 + x1)

    assert not difference(x, x).any()
    compiled = np.asarray(jax.jit(difference)(x, x))
    assert (compiled < 0).any()
    assert (compiled > 0).any()
    assert np.abs(compiled).max() < 1e-5
    assert np.isnan(jax.jit(lambda a, b: jnp.sqrt(difference(a, b)))(x, x)).any()
    assert not factored(x, x).any()
    assert not jax.jit(factored)(x, x).any()


@pytest.mark.platform("cpu")
@pytest.mark.wrong_twin("equal-squares-may-not-cancel-under-jit")
def test_wrong_twin_equal_squares_cancel_under_jit():
    x = jnp.linspace(0.1, 5.0, 1000)
    assert not jax.jit(lambda a, b: b**2 - a**2)(x, x).any()


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "debug-nans-finds-no-nan-without-jit",
    "On a CPU, if a `nan` appears under jit and not without it, `debug_nans` raises `FloatingPointError` and says that the "
    "de-optimized function did not produce it.",
)
def test_debug_nans_finds_no_nan_without_jit():
    x = jnp.linspace(0.1, 5.0, 1000)

    @jax.jit
    def root(x1, x2):
        return jnp.sqrt(x2**2 - x1**2)

    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="de-optimized function did not"):
        root(x, x)


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "subnormals-count-as-zero",
    "On a CPU, JAX's arithmetic takes a subnormal number for 0, in `float32` and in `float64`: it equals 0, its sum with 0 "
    "is 0 and its logarithm is `-inf`; NumPy keeps it.",
)
def test_subnormals_count_as_zero():
    def check(tiny):
        assert tiny > 0
        assert np.isfinite(np.log(tiny))
        x = jnp.asarray(tiny)
        assert x.dtype == tiny.dtype
        assert x == 0
        assert x + 0 == 0
        assert jnp.log(x) == -jnp.inf
        assert jax.jit(jnp.log)(x) == -jnp.inf
        assert jnp.isfinite(jnp.log(jnp.maximum(x, jnp.finfo(x.dtype).tiny)))

    check(np.float32(1e-40))
    with x64():
        check(np.float64(1e-310))
        assert jnp.isfinite(jnp.log(np.float64(1e-40)))


@pytest.mark.claim(
    "unsigned-plus-signed-needs-64-bits",
    "`uint32` + `int32` is promoted to `int64`, which is `int32` while 64-bit types are off: 4294967295 becomes −1, without "
    "a warning; with 64-bit types it stays.",
)
def test_unsigned_plus_signed_needs_64_bits(recwarn):
    def total(a, b):
        return a + b

    for function in (total, jax.jit(total)):
        narrow = function(jnp.uint32(2**32 - 1), jnp.int32(0))
        assert narrow.dtype == jnp.int32
        assert narrow == -1
        assert not recwarn.list
        with x64():
            wide = function(jnp.uint32(2**32 - 1), jnp.int32(0))
            assert wide.dtype == jnp.int64
            assert wide == 2**32 - 1


@pytest.mark.claim(
    "arrays-made-before-x64-stay-narrow",
    "Where `jax_enable_x64` is switched on after the first call, arrays made before stay `float32`; the jitted function, "
    "decorated before, takes `float64` arrays from then on and is traced again for them.",
)
def test_arrays_made_before_x64_stay_narrow():
    traces = []

    @jax.jit
    def double(x):
        traces.append(x.dtype)
        return x * 2.0

    early = jnp.ones(3)
    assert double(np.ones(3)).dtype == jnp.float32
    jax.config.update("jax_enable_x64", True)
    try:
        assert early.dtype == jnp.float32
        assert double(early).dtype == jnp.float32
        assert double(np.ones(3)).dtype == jnp.float64
    finally:
        jax.config.update("jax_enable_x64", False)
    assert traces == [jnp.float32, jnp.float32, jnp.float64]


@pytest.mark.claim(
    "preferred-element-type-is-the-result-type",
    "`preferred_element_type=jnp.float32` makes the product of `bfloat16` matrices `float32`, and closer to the exact one; "
    "`jnp.int32` keeps the product of `int8` matrices from wrapping around.",
)
def test_preferred_element_type_is_the_result_type():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(64, 1024)), jnp.bfloat16)
    exact = np.asarray(x, np.float64) @ np.asarray(x, np.float64).T

    def error(product):
        return np.abs(np.asarray(product, np.float64) - exact).max()

    narrow, wide = jnp.matmul(x, x.T), jnp.matmul(x, x.T, preferred_element_type=jnp.float32)
    assert narrow.dtype == jnp.bfloat16
    assert wide.dtype == jnp.float32
    assert error(wide) < error(narrow) / 10
    small = jnp.full((2, 64), 100, jnp.int8)
    assert jnp.matmul(small, small.T).dtype == jnp.int8
    assert int(jnp.matmul(small, small.T)[0, 0]) == 0  # 640,000 modulo 256
    assert jnp.matmul(small, small.T, preferred_element_type=jnp.int32)[0, 0] == 640_000


@pytest.mark.claim(
    "reduce-precision-rounds-under-jit",
    "`lax.reduce_precision(x, 8, 7)` rounds a `float32` to the digits of a `bfloat16`, with jit and without.",
)
def test_reduce_precision_rounds_under_jit():
    x = jnp.asarray(np.random.default_rng(0).normal(size=1000), jnp.float32)
    rounded = np.asarray(x.astype(jnp.bfloat16), np.float32)
    assert (rounded != np.asarray(x)).any()

    def reduced(x):
        return jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)

    np.testing.assert_array_equal(reduced(x), rounded)
    np.testing.assert_array_equal(jax.jit(reduced)(x), rounded)


@pytest.mark.claim(
    "bfloat16-stops-counting-at-256",
    "In `bfloat16`, 256 + 1 is 256: a running sum of ones in a `scan` stops there.",
)
def test_bfloat16_stops_counting_at_256():
    assert jnp.bfloat16(256) + jnp.bfloat16(1) == 256
    ones = jnp.ones(1000, jnp.bfloat16)
    total, _ = jax.lax.scan(lambda s, one: (s + one, None), jnp.bfloat16(0), ones)
    assert total == 256
