"""A window with a traced start, and where it ends up at the border."""

import jax
import jax.numpy as jnp
import pytest


@jax.jit
def window(x, start):
    return x[jax.ds(start, 2)]


@pytest.mark.claim(
    "window-is-moved-back-to-fit",
    "A window of `jax.ds` or `dynamic_slice` that would stick out is moved back to fit, without an error.",
)
def test_window_is_moved_back_to_fit():
    x = jnp.arange(6)
    assert window(x, 4).tolist() == [4, 5]
    assert window(x, 5).tolist() == [4, 5]
    assert jax.lax.dynamic_slice(x, (5,), (2,)).tolist() == [4, 5]


@pytest.mark.wrong_twin("window-is-moved-back-to-fit")
def test_wrong_twin_window_is_cut_off():
    assert window(jnp.arange(6), 5).tolist() == [5]
