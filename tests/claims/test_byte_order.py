"""Big-endian and masked arrays of NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = np.arange(3, dtype=np.float32)
SWAPPED = X.astype(X.dtype.newbyteorder("S"))
MASKED = np.ma.masked_array(X, mask=[False, False, True])


def total():
    return jax.jit(lambda batch: (batch["x"] * 1).sum())


@pytest.mark.claim(
    "byte-order-is-overlooked-after-a-native-call",
    "A jitted function refuses a NumPy array of the other byte order with `TypeError`, but after a call with a native "
    "array of that shape and type, it reads its bytes in the wrong order; so does `jnp.sum`.",
)
def test_byte_order_is_overlooked_after_a_native_call():
    with pytest.raises(TypeError, match=r"numpy\.ndarray"):
        total()({"x": SWAPPED})
    f = total()
    assert f({"x": X}) == jnp.sum(X) == 3
    assert f({"x": SWAPPED}) < 0.001
    assert jnp.sum(SWAPPED) < 0.001
    assert f({"x": SWAPPED.astype(np.float32)}) == 3


@pytest.mark.wrong_twin("byte-order-is-overlooked-after-a-native-call", raises=TypeError)
def test_wrong_twin_the_first_call_misreads_it_too():
    assert total()({"x": SWAPPED}) < 1


@pytest.mark.claim(
    "mask-is-dropped-after-a-native-call",
    "A jitted function refuses a masked array of NumPy, but after a call with a plain array of that shape and type, it "
    "computes with the masked entries as well.",
)
def test_mask_is_dropped_after_a_native_call():
    with pytest.raises(ValueError, match="masked arrays"):
        total()({"x": MASKED})
    f = total()
    assert f({"x": X}) == 3
    assert f({"x": MASKED}) == 3
    assert MASKED.sum() == f({"x": MASKED.filled(0)}) == 1
