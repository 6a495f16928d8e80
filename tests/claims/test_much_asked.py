"""Repeated eigenvalues, flags in a carry, differences of pairs."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax


def is_finite(function, matrix):
    return bool(jnp.isfinite(jax.grad(function)(matrix)).all())


@pytest.mark.claim(
    "gradient-of-eigenvectors-is-nan-for-equal-eigenvalues",
    "At the identity, the gradient through the vectors of `eigh` and `svd` is not finite; through the eigenvalues "
    "and the singular values it is.",
)
def test_gradient_of_eigenvectors_is_nan_for_equal_eigenvalues():
    identity = jnp.eye(3)
    for wrap in (lambda f: f, jax.jit):
        assert not is_finite(wrap(lambda a: jnp.linalg.eigh(a)[1].sum()), identity)
        assert not is_finite(wrap(lambda a: jnp.linalg.svd(a, full_matrices=False)[0].sum()), identity)
        assert is_finite(wrap(lambda a: jnp.linalg.eigvalsh(a).sum()), identity)
        assert is_finite(wrap(lambda a: jnp.linalg.svd(a, compute_uv=False).sum()), identity)


@pytest.mark.wrong_twin("gradient-of-eigenvectors-is-nan-for-equal-eigenvalues")
def test_wrong_twin_the_gradient_is_finite():
    assert is_finite(lambda a: jnp.linalg.eigh(a)[1].sum(), jnp.eye(3))


@pytest.mark.claim(
    "bool-in-a-carry-is-traced",
    "A Python bool in the carry of `lax.scan` is traced, so that an `if` on it raises, outside jit as well; one that the body closes "
    "over stays a Python bool.",
)
def test_bool_in_a_carry_is_traced():
    def carried(carry, _):
        training, x = carry
        return (training, 2 * x if training else x), None

    training = True

    def closed_over(x, _):
        return 2 * x if training else x, None

    with pytest.raises(jax.errors.TracerBoolConversionError):
        lax.scan(carried, (training, jnp.float32(1)), length=2)
    assert lax.scan(closed_over, jnp.float32(1), length=2)[0] == 4


@pytest.mark.claim(
    "differences-of-pairs-are-fused",
    "A jitted sum of the squared differences of 500 points with 32 coordinates needs less temporary memory than one array of the "
    "differences would.",
)
@pytest.mark.platform("cpu")
def test_differences_of_pairs_are_fused():
    points = jnp.ones((500, 32))

    def squared_distances(points):
        return jnp.sum((points[:, None] - points) ** 2, axis=-1)

    memory = jax.jit(squared_distances).lower(points).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 500 * 500 * 32 * 4 / 100
