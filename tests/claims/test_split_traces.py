"""Whether the split of an array is part of a trace."""

import json

import pytest

SPLITS = """
import json
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

def traces(mesh):
    runs = []
    f = jax.jit(lambda x: runs.append(1) or x * 2)
    for spec in (P("rows"), P(), P("rows")):
        f(jax.device_put(jnp.arange(8.0), NamedSharding(mesh, spec)))
    return len(runs)

explicit = jax.make_mesh((4,), ("rows",), axis_types=(jax.sharding.AxisType.Explicit,))
print(json.dumps([traces(jax.sharding.Mesh(np.array(jax.devices()), ("rows",))), traces(explicit)]))
"""


@pytest.mark.claim(
    "split-is-in-the-trace-on-explicit-axes",
    "On a mesh with Auto axes, a split array and a whole one share a trace, and on one with Explicit axes they don't.",
)
def test_split_is_in_the_trace_on_explicit_axes(child):
    assert json.loads(child(SPLITS, devices=4)) == [1, 2]


@pytest.mark.wrong_twin("split-is-in-the-trace-on-explicit-axes")
def test_wrong_twin_both_meshes_trace_twice(child):
    assert json.loads(child(SPLITS, devices=4)) == [2, 2]
