"""When JAX copies the NumPy array that it is given."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def keeps_the_ones(convert):
    source = np.ones(10_000_001, np.float32)[1:]  # starts where JAX cannot share the memory
    converted = convert(source)
    source[:] = 99
    return float(converted.max()) == 1


@pytest.mark.measured("whether Python writes before JAX copies")
@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "copy-of-a-large-array-may-be-late",
    "On a CPU, `jnp.array` of ten million numbers of NumPy copies them after it has returned, so what is written too "
    "early may be in the copy; not seen since JAX 0.11. A copy by NumPy, or waiting for the result, prevents it.",
)
def test_copy_of_a_large_array_may_be_late():
    # Each try is a race: Python writes for some milliseconds, and JAX copies.
    late = not all(keeps_the_ones(jnp.array) for _ in range(10))
    assert late or jax.__version_info__ >= (0, 11)
    for safe in (
        lambda source: jnp.array(source.copy()),
        lambda source: jnp.array(source).block_until_ready(),
    ):
        assert all(keeps_the_ones(safe) for _ in range(10))


@pytest.mark.wrong_twin("copy-of-a-large-array-may-be-late")
def test_wrong_twin_waiting_does_not_help():
    assert not keeps_the_ones(lambda source: jnp.array(source).block_until_ready())
