"""Softmax, maximum and argmax of padded rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

row = np.float32([-3.0, -1.0, 0.0, 0.0])  # two real entries, two of padding
real = np.array([True, True, False, False])
nothing = np.zeros(4, bool)


@pytest.mark.claim(
    "softmax-takes-a-mask",
    "`jax.nn.softmax(x, where=mask)` leaves the masked entries out and gives them 0, also in a row without a real "
    "entry, where the softmax of `-inf` entries is `nan`.",
)
def test_softmax_takes_a_mask():
    masked = jax.jit(lambda x, m: jax.nn.softmax(x, where=m))
    assert np.allclose(masked(row, real)[:2], jax.nn.softmax(row[:2]))
    assert np.all(masked(row, real)[2:] == 0)
    assert np.all(masked(row, nothing) == 0)
    assert np.all(np.isnan(jax.nn.softmax(jnp.where(nothing, row, -jnp.inf))))


@pytest.mark.claim(
    "masked-maximum-needs-initial",
    "`jnp.max` with `where=` raises `ValueError` without `initial=`; an `initial` of 0 is the result where the real "
    "entries are negative, and one of `-jnp.inf` is not.",
)
def test_masked_maximum_needs_initial():
    with pytest.raises(ValueError, match="initial"):
        jnp.max(row, where=real)
    assert jnp.max(row, where=real, initial=0) == 0
    assert jnp.max(row, where=real, initial=-jnp.inf) == -1


@pytest.mark.wrong_twin("masked-maximum-needs-initial")
def test_wrong_twin_the_padding_does_not_count():
    assert jnp.max(row) == -1
