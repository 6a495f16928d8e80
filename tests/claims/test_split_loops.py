"""A loop over an axis that is split over devices."""

import pytest

SPLIT = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map

mesh = Mesh(np.array(jax.devices()), ("d",))
xs = jax.device_put(jnp.ones((64, 8)), NamedSharding(mesh, P("d")))

def of_one(x):
    return jnp.sin(x) @ jnp.ones((8, 8))

def in_batches(xs):
    return jax.lax.map(of_one, xs, batch_size=4)

for f in (jax.vmap(of_one), in_batches, shard_map(in_batches, mesh=mesh, in_specs=P("d"), out_specs=P("d"))):
    f = jax.jit(f)
    print("all-gather" in f.lower(xs).compile().as_text(), f(xs).sharding.is_fully_replicated)
"""


@pytest.mark.claim(
    "map-over-a-split-axis-is-computed-by-each-device",
    "`lax.map(f, xs, batch_size=4)` over an axis that is split over four devices gathers the array, and its result is whole on "
    "each device; that of `vmap`, or of the `lax.map` in a `shard_map`, stays split.",
)
def test_map_over_a_split_axis_is_computed_by_each_device(child):
    assert child(SPLIT, devices=4).split() == ["False", "False", "True", "True", "False", "False"]


@pytest.mark.wrong_twin("map-over-a-split-axis-is-computed-by-each-device")
def test_wrong_twin_map_keeps_the_split(child):
    assert child(SPLIT, devices=4).split() == ["False"] * 6
