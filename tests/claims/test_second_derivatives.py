"""Second derivatives and their memory."""

import jax
import jax.numpy as jnp
import pytest


def network(x):
    hidden = x.reshape(-1, 4) @ jnp.ones((4, 64))
    for _ in range(3):
        hidden = jnp.tanh(hidden @ jnp.full((64, 64), 0.01))
    return hidden.sum()


def pairs(x):
    points = x.reshape(-1, 3)
    return jnp.sqrt(((points[:, None] - points) ** 2).sum(-1) + 1e-6).sum()


def times_vector(f, x, v):
    return jax.jvp(jax.grad(f), (x,), (v,))[1]


def in_chunks(f, x):
    return jax.lax.map(lambda v: times_vector(f, x, v), jnp.eye(x.size, dtype=x.dtype), batch_size=8)


def temporaries(function, count):
    x = jax.ShapeDtypeStruct((count,), jnp.float32)
    return jax.jit(function).lower(x).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "hessian-needs-more-memory-than-its-product-with-a-vector",
    "On a CPU, `jax.hessian` of a small network of 512 inputs needs more than ten times the temporary memory of its "
    "rows in chunks of eight, and these need more than that of one `jax.jvp` of the gradient.",
)
def test_hessian_needs_more_memory_than_its_product_with_a_vector():
    whole = temporaries(jax.hessian(network), 512)
    chunks = temporaries(lambda x: in_chunks(network, x), 512)
    product = temporaries(lambda x: times_vector(network, x, x), 512)
    assert whole > 10 * chunks
    assert chunks > product
    x = jnp.linspace(0.0, 1.0, 16)
    hessian = jax.hessian(network)(x)
    assert jnp.allclose(in_chunks(network, x), hessian, atol=1e-5)
    assert jnp.allclose(times_vector(network, x, x), hessian @ x, atol=1e-4)


@pytest.mark.wrong_twin("hessian-needs-more-memory-than-its-product-with-a-vector")
def test_wrong_twin_the_product_needs_as_much():
    whole = temporaries(jax.hessian(network), 512)
    assert temporaries(lambda x: times_vector(network, x, x), 512) >= whole


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "hessian-in-chunks-can-need-more-memory",
    "On a CPU, the Hessian of a sum over the distances of 100 points needs less temporary memory from `jax.hessian` "
    "under jit than in chunks of eight rows.",
)
def test_hessian_in_chunks_can_need_more_memory():
    assert temporaries(jax.hessian(pairs), 300) < temporaries(lambda x: in_chunks(pairs, x), 300)


@pytest.mark.wrong_twin("hessian-in-chunks-can-need-more-memory")
def test_wrong_twin_chunks_need_less():
    assert temporaries(jax.hessian(pairs), 300) > temporaries(lambda x: in_chunks(pairs, x), 300)
