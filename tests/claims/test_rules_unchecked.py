"""What JAX doesn't check: custom rules, holomorphic functions, keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@jax.custom_vjp
def clipped(x, limit):
    return x


clipped.defvjp(lambda x, limit: (x, limit), lambda limit, g: (jnp.clip(g, -limit, limit), None))


@pytest.mark.claim(
    "backward-rule-may-return-another-dtype",
    "A backward rule may return a `float32` gradient for a `bfloat16` argument: the gradient comes back as "
    "`float32`, or a later operation raises `TypeError`, such as `lax.mul requires arguments to have the same dtypes`.",
)
def test_backward_rule_may_return_another_dtype():
    limit, x = jnp.float32(0.1), jnp.ones(3, "bfloat16")
    gradient = jax.jit(jax.grad(lambda x: clipped(x, limit).sum()))
    assert gradient(x).dtype == jnp.float32
    with pytest.raises(TypeError, match="same dtypes"):
        jax.jit(jax.grad(lambda x: clipped(jnp.sin(x), limit).sum()))(x)


@pytest.mark.wrong_twin("backward-rule-may-return-another-dtype")
def test_wrong_twin_the_gradient_has_the_dtype_of_the_argument():
    assert jax.grad(clipped)(jnp.bfloat16(1), jnp.float32(0.1)).dtype == jnp.bfloat16


@pytest.mark.claim(
    "holomorphic-is-not-checked",
    "`jax.grad(jnp.conj, holomorphic=True)` returns 1, although `conj` isn't differentiable; a holomorphic function of a "
    "real argument raises `TypeError`.",
)
def test_holomorphic_is_not_checked():
    assert jax.grad(jnp.conj, holomorphic=True)(1 + 2j) == 1
    with pytest.raises(TypeError, match="complex"):
        jax.grad(lambda x: jnp.exp(1j * x), holomorphic=True)(1.0)


@pytest.mark.claim(
    "take-out-of-range-gives-a-fill-value",
    "`jnp.take` of an index out of range gives the smallest signed integer, the largest unsigned one, and `True`.",
)
def test_take_out_of_range_gives_a_fill_value():
    take = jax.jit(lambda x: jnp.take(x, 7))
    assert take(jnp.zeros(3, "int8")) == np.iinfo("int8").min
    assert take(jnp.zeros(3, "uint8")) == np.iinfo("uint8").max
    assert take(jnp.zeros(3, bool)) == np.True_


@pytest.mark.claim(
    "key-reuse-check-overlooks-device-put",
    "`debug_key_reuse` doesn't notice two draws from a key and from its `jax.device_put`.",
)
def test_key_reuse_check_overlooks_device_put():
    with jax.debug_key_reuse(True):
        key = jax.random.key(0)
        first = jax.random.normal(key)
        assert jax.random.normal(jax.device_put(key, jax.devices()[0])) == first


@pytest.mark.claim(
    "zeros-like-a-host-array-raises",
    "Outside jit, `jnp.zeros_like` of an array in host memory raises `ValueError` with `Memory kind mismatch`; inside "
    "jit it gives an array on the device.",
)
def test_zeros_like_a_host_array_raises():
    on_host = jax.device_put(jnp.ones((8, 8)), jax.memory.Space.Host)
    with pytest.raises(ValueError, match="Memory kind mismatch"):
        jnp.zeros_like(on_host)
    assert jax.jit(jnp.zeros_like)(on_host).sharding.memory_kind == "device"
