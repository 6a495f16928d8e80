"""What a traced array cannot tell: memory, devices, state."""

import jax
import jax.numpy as jnp
import pytest

MEMORY = {
    "block_until_ready": lambda x: x.block_until_ready(),
    "copy_to_host_async": lambda x: x.copy_to_host_async(),
    "is_ready": lambda x: x.is_ready(),
    "is_deleted": lambda x: x.is_deleted(),
    "delete": lambda x: x.delete(),
    "devices": lambda x: x.devices(),
    "device": lambda x: x.device,
    "addressable_shards": lambda x: x.addressable_shards,
    "is_fully_addressable": lambda x: x.is_fully_addressable,
    "unsafe_buffer_pointer": lambda x: x.unsafe_buffer_pointer(),
    "sharding": lambda x: x.sharding,
}
REFUSED = (AttributeError, jax.errors.ConcretizationTypeError)


def traced(ask):
    def function(x):
        ask(x)
        return x

    return jax.jit(function)


@pytest.mark.claim(
    "memory-of-a-traced-array-raises",
    "In a jitted function, `x.block_until_ready()`, `x.devices()`, `x.sharding`, `x.is_deleted()` and other questions "
    "about the memory of a traced array raise `AttributeError` or `ConcretizationTypeError`.",
)
@pytest.mark.parametrize("name", MEMORY)
def test_memory_of_a_traced_array_raises(name):
    with pytest.raises(REFUSED):
        traced(MEMORY[name])(jnp.ones(3))


@pytest.mark.claim(
    "jax-block-until-ready-accepts-tracers",
    "`jax.block_until_ready` returns a traced array as it is, without an error.",
)
def test_jax_block_until_ready_accepts_tracers():
    waited = jax.jit(lambda x: jax.block_until_ready(x) + 1)
    assert waited(1.0) == 2
    jaxpr = jax.make_jaxpr(lambda x: jax.block_until_ready(x) + 1)(1.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["add"]


@pytest.mark.wrong_twin("memory-of-a-traced-array-raises", raises=AttributeError)
def test_wrong_twin_a_traced_array_can_be_waited_for():
    traced(MEMORY["block_until_ready"])(jnp.ones(3))
