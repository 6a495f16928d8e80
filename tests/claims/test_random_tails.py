"""Draws whose distribution is wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

KEY = jax.random.key(7)


def share_below_half(dtype, count):
    """Return the share of draws of the lower half of equally likely numbers; 0.5 is right, give or take 0.05."""
    draws = jax.jit(lambda key: jax.random.categorical(key, jnp.zeros(count, dtype), shape=(400,)))(KEY)
    return float((draws < count // 2).mean())


@pytest.mark.claim(
    "categorical-of-half-precision-logits-favors-low-numbers",
    "Of 32,000 equal logits in `bfloat16` or `float16`, `jax.random.categorical` draws from the lower half in each of 400 "
    "draws, of 1,000 in `bfloat16` in more than nine of ten; after a cast to `float32`, in half of them.",
)
def test_categorical_of_half_precision_logits_favors_low_numbers():
    for dtype in ("bfloat16", "float16"):
        assert share_below_half(dtype, 32_000) == 1
    assert share_below_half("bfloat16", 1000) > 0.9
    for count in (1000, 32_000):
        assert abs(share_below_half("float32", count) - 0.5) < 0.1


@pytest.mark.wrong_twin("categorical-of-half-precision-logits-favors-low-numbers")
def test_wrong_twin_the_dtype_of_the_logits_makes_no_difference():
    assert share_below_half("bfloat16", 32_000) < 0.6


@pytest.mark.claim(
    "truncated-normal-far-in-the-tail-is-its-bound",
    "In `float32`, `jax.random.truncated_normal(key, 6.0, 8.0)` gives numbers within 1e-5 of 8, whereas the mean is "
    "6.16.",
)
def test_truncated_normal_far_in_the_tail_is_its_bound():
    draws = jax.random.truncated_normal(KEY, 6.0, 8.0, (1000,), jnp.float32)
    assert draws.min() > 8 - 1e-5


@pytest.mark.claim(
    "poisson-of-a-large-rate-is-too-wide",
    "The standard deviation of `jax.random.poisson` with a rate of 1e8 is more than 1.1 times the right one; that of "
    "`rate + sqrt(rate) * normal` isn't.",
)
def test_poisson_of_a_large_rate_is_too_wide():
    rate = np.float32(1e8)
    draws = jax.random.poisson(KEY, rate, (100_000,))
    assert np.asarray(draws, np.float64).std() > 1.1 * rate**0.5
    normal = rate + rate**0.5 * jax.random.normal(KEY, (100_000,))
    assert abs(np.asarray(normal, np.float64).std() / rate**0.5 - 1) < 0.02


@pytest.mark.claim(
    "bernoulli-takes-the-precision-of-p",
    "`jax.random.bernoulli` with `p = 0.001` in `bfloat16` is true more than five times as often; with `p` in `float32`, it is "
    "true in about one draw of a thousand.",
)
def test_bernoulli_takes_the_precision_of_p():
    shares = [jax.random.bernoulli(KEY, p, (1_000_000,)).mean() for p in (jnp.bfloat16(0.001), 0.001)]
    assert shares[0] > 0.005
    assert abs(shares[1] - 0.001) < 0.0002
