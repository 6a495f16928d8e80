"""Formulas that XLA rewrites, and functions less exact than NumPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


def both(function, *values):
    """Return what a function gives without jit and with it."""
    return float(function(*values)), float(jax.jit(function)(*values))


@pytest.mark.parametrize(("dtype", "value"), [("float16", 1e4), ("float32", 1e20)])
@pytest.mark.claim(
    "two-divisions-become-one-by-the-product",
    "Under jit, `x / y / z` of `float16` or `float32` divides by `y * z`, so it is 0 where the product overflows, `inf` where "
    "it underflows, and the quotient of two quotients may be `nan`. An `optimization_barrier` around the first quotient keeps the order.",
)
def test_two_divisions_become_one_by_the_product(dtype, value):
    x = jnp.asarray(value, dtype)
    plain, jitted = both(lambda x, y, z: x / y / z, x, x, x)
    np.testing.assert_allclose(plain, 1 / value, rtol=2e-3)
    assert jitted == 0
    plain, jitted = both(lambda x, y, z: x / y / z, 1 / x, 1 / x, 1 / x)
    np.testing.assert_allclose(plain, value, rtol=2e-3)
    assert np.isinf(jitted)
    plain, jitted = both(lambda a, b, c, d: (a / b) / (c / d), x, x, x, x)
    assert plain == 1
    assert np.isnan(jitted)
    np.testing.assert_allclose(
        both(lambda x, y, z: lax.optimization_barrier(x / y) / z, x, x, x), 1 / value, rtol=2e-3
    )


@pytest.mark.wrong_twin("two-divisions-become-one-by-the-product")
def test_wrong_twin_the_order_of_divisions_is_kept():
    x = jnp.float16(300)
    assert jax.jit(lambda x, y, z: x / y / z)(x, x, x) > 0


@pytest.mark.claim(
    "log-of-a-power-takes-the-absolute-value",
    "Under jit, `jnp.log(x ** y)` is computed as `y * log(abs(x))`, so for `x = -2` and `y = 3.0`, where it is `nan` without "
    "jit, it is a number. An `optimization_barrier` around the power keeps the `nan`.",
)
def test_log_of_a_power_takes_the_absolute_value():
    plain, jitted = both(lambda x, y: jnp.log(x**y), -2.0, 3.0)
    assert np.isnan(plain)
    np.testing.assert_allclose(jitted, 3 * np.log(2), rtol=1e-6)
    assert np.isnan(both(lambda x, y: jnp.log(lax.optimization_barrier(x**y)), -2.0, 3.0)).all()


@pytest.mark.parametrize("function", [jnp.square, jnp.abs, jnp.exp])
@pytest.mark.claim(
    "nonnegative-is-true-also-for-nan",
    "Under jit, `x * x >= 0`, `abs(x) >= 0` and `exp(x) >= 0` are true for a `nan`, for which they are false without jit; "
    "`jnp.isnan` finds it.",
)
def test_nonnegative_is_true_also_for_nan(function):
    x = jnp.array([jnp.nan, 1.0, -1.0])
    assert (function(x) >= 0).tolist() == [False, True, True]
    assert jax.jit(lambda x: function(x) >= 0)(x).tolist() == [True, True, True]
    assert jax.jit(jnp.isnan)(x).tolist() == [True, False, False]


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "exp2-of-a-whole-number-may-not-be-exact",
    "On a CPU, `jnp.exp2(15.0)` is 32767.984, so that its integer part is 32767; `2.0 ** x` and `jnp.ldexp` give 32768.",
)
def test_exp2_of_a_whole_number_may_not_be_exact():
    x = jnp.float32(15)
    for function in (jnp.exp2, jax.jit(jnp.exp2)):
        assert int(function(x)) == 32767
    for exact in (lambda x: 2.0**x, lambda x: jnp.ldexp(jnp.float32(1), x.astype(int))):
        assert exact(x) == jax.jit(exact)(x) == 32768
