"""Draws in bfloat16, and matrices of which both triangles are read."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

KEY = jax.random.key(3)


@pytest.mark.claim(
    "normal-in-bfloat16-is-coarse-and-short",
    "A million draws of `jax.random.normal` in `bfloat16` have fewer than 300 values and stay below 3; in `float32`, "
    "cast to `bfloat16` afterwards, they go beyond 4.",
)
def test_normal_in_bfloat16_is_coarse_and_short():
    draws = np.asarray(jax.random.normal(KEY, (1_000_000,), jnp.bfloat16), np.float32)
    assert len(np.unique(draws)) < 300
    assert np.abs(draws).max() < 3
    wide = jax.random.normal(KEY, (1_000_000,)).astype(jnp.bfloat16)
    assert abs(wide).max() > 4


@pytest.mark.wrong_twin("normal-in-bfloat16-is-coarse-and-short")
def test_wrong_twin_bfloat16_draws_reach_as_far():
    assert abs(jax.random.normal(KEY, (1_000_000,), jnp.bfloat16)).max() > 4


@pytest.mark.claim(
    "choice-with-p-in-bfloat16-leaves-entries-out",
    "With 1,000 equal probabilities in `bfloat16`, 20,000 draws of `jax.random.choice` hit fewer than 300 of the entries; in "
    "`float32`, more than 990.",
)
def test_choice_with_p_in_bfloat16_leaves_entries_out():
    hit = {}
    for dtype in ("bfloat16", "float32"):
        draws = jax.random.choice(KEY, 1000, (20_000,), p=jnp.full(1000, 1e-3, dtype))
        hit[dtype] = len(np.unique(draws))
    assert hit["bfloat16"] < 300
    assert hit["float32"] > 990


@pytest.mark.claim(
    "eigh-averages-both-triangles",
    "`jnp.linalg.eigh` and `jnp.linalg.cholesky` average a matrix with its transpose first, so one that holds its lower "
    "triangle alone gives other numbers than in NumPy; `symmetrize_input=False` reads the lower triangle.",
)
def test_eigh_averages_both_triangles():
    lower = np.array([[2, 0], [1, 2]], np.float32)
    full = np.array([[2, 1], [1, 2]], np.float32)
    np.testing.assert_allclose(np.linalg.eigh(lower)[0], [1, 3], rtol=1e-5)
    np.testing.assert_allclose(jnp.linalg.eigh(lower)[0], [1.5, 2.5], rtol=1e-5)
    np.testing.assert_allclose(jnp.linalg.eigh(lower, symmetrize_input=False)[0], [1, 3], rtol=1e-5)
    factors = [
        jnp.linalg.cholesky(lower),
        jnp.linalg.cholesky(lower, symmetrize_input=False),
    ]
    assert not np.allclose(factors[0], np.linalg.cholesky(full), rtol=1e-3)
    np.testing.assert_allclose(factors[1], np.linalg.cholesky(full), rtol=1e-5)
