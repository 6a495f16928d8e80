"""Units, byte orders and steps that JAX accepts or refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hostile import x64

# Arrays of NumPy --------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "big-endian-and-record-arrays-are-refused",
    "JAX refuses a NumPy array of big-endian numbers, records or dates with an error that names `numpy.ndarray`; "
    "after `.astype(np.float32)` the big-endian numbers pass, and so does one native field of the records.",
)
def test_big_endian_and_record_arrays_are_refused():
    records = np.zeros(3, [("flux", "f4")])
    for values in (np.arange(3, dtype=">f4"), np.arange(3, dtype=">i4"), records, np.zeros(3, "M8[D]")):
        with pytest.raises(TypeError, match=r"numpy\.ndarray"):
            jax.jit(lambda x: x)(values)
    converted = jax.jit(lambda x: x)(np.arange(3, dtype=">f4").astype(np.float32))
    assert converted.tolist() == [0, 1, 2]
    assert jax.jit(lambda x: x)(records["flux"]).tolist() == [0, 0, 0]


class Length(np.ndarray):
    """Numbers with a unit, which refuses to add another one."""

    unit = "m"

    def __add__(self, other):
        if self.unit != other.unit:
            raise ValueError("the units differ")
        return np.asarray(self) + np.asarray(other)


def in_unit(number, unit):
    length = np.full(2, number).view(Length)
    length.unit = unit
    return length


@pytest.mark.claim(
    "ndarray-subclass-is-taken-as-plain-numbers",
    "JAX takes a subclass of `numpy.ndarray` that you define as plain numbers, without a warning: inside jit its own "
    "operations and attributes are gone.",
)
def test_ndarray_subclass_is_taken_as_plain_numbers(recwarn):
    km, m = in_unit(1.0, "km"), in_unit(1.0, "m")
    with pytest.raises(ValueError, match="the units differ"):
        km + m
    assert jax.jit(lambda a, b: a + b)(km, m).tolist() == [2, 2]
    assert not jax.jit(lambda a: jnp.asarray(hasattr(a, "unit")))(km)
    assert not recwarn.list


@pytest.mark.wrong_twin("ndarray-subclass-is-taken-as-plain-numbers", raises=pytest.fail.Exception)
def test_wrong_twin_units_that_differ_are_refused():
    with pytest.raises(ValueError, match="the units differ"):
        jax.jit(lambda a, b: a + b)(in_unit(1.0, "km"), in_unit(1.0, "m"))


# Numbers and their derivatives ------------------------------------------------------------------------------


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "broadcast-mask-times-infinity-is-nan",
    "On a CPU, a product of `False` and `inf` is 0 if the boolean mask has the shape of the result, and `nan` if the "
    "mask is broadcast, with and without jit.",
)
def test_broadcast_mask_times_infinity_is_nan():
    def product(mask, x):
        return mask * x

    x = jnp.full(2, jnp.inf)
    for run in (product, jax.jit(product)):
        assert run(jnp.zeros(2, bool), x).tolist() == [0, 0]
        assert run(jnp.zeros(2, bool), x[:1]).tolist() == [0, 0]
        for mask in (jnp.zeros(1, bool), jnp.zeros((2, 1), bool), jnp.asarray(False)):
            assert jnp.isnan(run(mask, x)).all()


@pytest.mark.claim(
    "gradient-of-a-step-is-zero",
    "The gradient through a comparison, `jnp.round`, `jnp.floor`, `jnp.sign` and `jnp.argmax` is 0, without an error, "
    "and so is the second derivative of `jnp.maximum(x, 0)`.",
)
@pytest.mark.parametrize(
    "step",
    [
        lambda x: jnp.where(x > 1.0, 1.0, 0.0),
        lambda x: (x > 1.0).astype(x.dtype),
        jnp.round,
        jnp.floor,
        jnp.sign,
        lambda x: jnp.argmax(jnp.stack([x, 2 * x])).astype(x.dtype),
        jax.grad(lambda x: jnp.maximum(x, 0.0)),
    ],
    ids=["where", "comparison", "round", "floor", "sign", "argmax", "slope of maximum"],
)
def test_gradient_of_a_step_is_zero(step):
    for x in (0.5, 1.0, 1.7):
        assert jax.jit(jax.grad(step))(jnp.float32(x)) == 0


@pytest.mark.claim(
    "clip-does-not-save-the-gradient-of-arccos",
    "The gradient of `jnp.arccos(jnp.clip(x, -1, 1))` is not finite at 1 and at -1, and `nan` just above 1; clipped to "
    "±(1 − 1e-6) it is 0 at 1, and `arctan2` of a safe norm of the cross product has a gradient of 0 between equal "
    "vectors.",
)
def test_clip_does_not_save_the_gradient_of_arccos():
    def slope(limit):
        return jax.jit(jax.grad(lambda x: jnp.arccos(jnp.clip(x, -limit, limit))))

    assert not jnp.isfinite(slope(1.0)(1.0))
    assert not jnp.isfinite(slope(1.0)(-1.0))
    assert jnp.isnan(slope(1.0)(1.0000001))
    assert slope(1 - 1e-6)(1.0) == 0

    def safe_norm(x):
        square = (x**2).sum()
        valid = jnp.where(square == 0, 1.0, square)
        return jnp.where(square == 0, 0.0, jnp.sqrt(valid))

    def angle(u, v):
        return jnp.arctan2(safe_norm(jnp.cross(u, v)), jnp.dot(u, v))

    first, second = jnp.array([1.0, 0, 0]), jnp.array([0, 1.0, 0])
    assert jax.jit(jax.grad(angle))(first, first).tolist() == [0, 0, 0]
    np.testing.assert_allclose(jax.jit(jax.grad(angle))(first, second), [0, -1, 0], atol=1e-6)


@pytest.mark.claim(
    "expm-is-nan-for-a-large-norm",
    "`jax.scipy.linalg.expm` returns `nan` for a norm of 600,000 in `float32` and of 800,000 in `float64`; with "
    "`max_squarings=40` the result is finite, and in `float64` accurate to 1e-4.",
)
def test_expm_is_nan_for_a_large_norm():
    expm = pytest.importorskip("jax.scipy.linalg").expm
    rotation = np.array([[0.0, 1.0], [-1.0, 0.0]])
    single = np.float32(6e5) * rotation.astype(np.float32)
    assert jnp.isnan(expm(single)).any()
    assert jnp.isnan(expm(single * np.complex64(1))).any()
    assert jnp.isfinite(expm(single, max_squarings=40)).all()
    with x64():
        assert jnp.isfinite(expm(6e5 * rotation)).all()
        assert jnp.isnan(expm(8e5 * rotation)).any()
        further = expm(8e5 * rotation, max_squarings=40)
        np.testing.assert_allclose(further[0, 0], np.cos(8e5), atol=1e-4)
