"""Collectives over several mesh axes: the order of the names."""

import json

import pytest

PROGRAM = """
import json, jax, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map

mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("rows", "columns"))
x = np.arange(4.0)


def over(names, body):
    mapped = shard_map(body, mesh=mesh, in_specs=P(names), out_specs=P(names))
    try:
        return np.asarray(jax.jit(mapped)(x)).tolist()
    except RuntimeError as error:
        return str(error)


ring = [(i, (i + 1) % 4) for i in range(4)]
found = {}
for names in (("rows", "columns"), ("columns", "rows")):
    found["-".join(names)] = [
        over(names, lambda x: jax.lax.ppermute(x, names, ring)),
        over(names, lambda x: 0 * x + jax.lax.axis_index(names)),
        over(names, lambda x: jax.lax.all_to_all(x.repeat(4), names, 0, 0, tiled=True).sum(keepdims=True)),
    ]
print(json.dumps(found))
"""


@pytest.mark.claim(
    "ppermute-numbers-devices-in-mesh-order",
    "`lax.ppermute` over several axes numbers the devices in the order of the mesh: with the names in another order, JAX "
    "0.10.2 and earlier releases move the values of other devices than those that `axis_index` counts, without an error, "
    "and JAX 0.12.0.1 raises `RuntimeError`.",
)
def test_ppermute_numbers_devices_in_mesh_order(child):
    found = json.loads(child(PROGRAM, devices=4))
    shifted, index, _ = found["rows-columns"]
    assert (shifted, index) == ([3, 0, 1, 2], [0, 1, 2, 3])
    shifted, index, exchanged = found["columns-rows"]
    assert index == [0, 1, 2, 3]
    assert exchanged == [6, 6, 6, 6]
    assert shifted == [3, 2, 0, 1] or "same order" in shifted


@pytest.mark.wrong_twin("ppermute-numbers-devices-in-mesh-order")
def test_wrong_twin_ppermute_numbers_devices_by_the_names(child):
    found = json.loads(child(PROGRAM, devices=4))
    assert found["columns-rows"][0] == found["rows-columns"][0]
