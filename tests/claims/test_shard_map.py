"""shard_map: specs of results and of pytrees."""

import json

import pytest

BEGIN = """
import json, jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map

mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("rows", "columns"))
x = jnp.arange(8.0)


def outcome(body, out_specs, wrap=lambda f: f):
    try:
        wrap(shard_map(body, mesh=mesh, in_specs=P("rows"), out_specs=out_specs))(x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "fine"

"""
RESULTS = (
    BEGIN
    + """
from jax import lax
differ = {
    "a sum of the part": (jnp.sum, P()),
    "the part": (lambda part: part, P()),
    "in a dict": (lambda part: {"total": lax.psum(part.sum(), "rows"), "own": part.max()}, P()),
    "the place of the device": (lambda part: lax.axis_index("rows"), P()),
    "a sum over the other axis": (lambda part: lax.psum(part.sum(), "columns"), P()),
    "gathered, and so equal": (lambda part: lax.all_gather(part, "rows"), P()),
}
same = {
    "summed": (lambda part: lax.psum(part.sum(), "rows"), P()),
    "mean": (lambda part: lax.pmean(part, "rows"), P()),
    "maximum": (lambda part: lax.pmax(part.max(), "rows"), P()),
    "split": (lambda part: part, P("rows")),
}
found = [{name: [outcome(*case), outcome(*case, wrap=jax.jit)] for name, case in cases.items()} for cases in (differ, same)]
print(json.dumps(found))
"""
)
TREES = (
    BEGIN
    + """
def double(tree):
    return jax.tree_util.tree_map(lambda part: 2 * part, tree)


trees = [
    {"a": x, "b": [x, x.reshape(4, 2)]},
    (x, {"c": jnp.arange(4)}),
    [x.reshape(2, 2, 2)],
    {},
]
mapped = shard_map(double, mesh=mesh, in_specs=(P("rows"),), out_specs=P("rows"))
found = [jax.tree_util.tree_map(lambda a: np.asarray(a).ravel().tolist(), mapped(tree)) for tree in trees]
expected = [jax.tree_util.tree_map(lambda a: (2 * np.asarray(a)).ravel().tolist(), tree) for tree in trees]
print(json.dumps([found == expected, len(trees)]))
"""
)


@pytest.mark.claim(
    "shard-map-refuses-a-result-that-may-differ",
    "If `out_specs` of `shard_map` leaves out a mesh axis along which JAX can't see the result to be equal, the call "
    "raises `ValueError`, also for the result of `all_gather`.",
)
def test_shard_map_refuses_a_result_that_may_differ(child):
    differ, same = json.loads(child(RESULTS, devices=4))
    assert all("replication" in text and text.startswith("ValueError") for o in differ.values() for text in o)
    assert all(text == "fine" for outcomes in same.values() for text in outcomes)


@pytest.mark.claim(
    "one-spec-serves-a-pytree",
    "One spec of `in_specs` or `out_specs` of `shard_map` counts for each array of a pytree.",
)
def test_one_spec_serves_a_pytree(child):
    assert json.loads(child(TREES, devices=4)) == [True, 4]


@pytest.mark.wrong_twin("shard-map-refuses-a-result-that-may-differ")
def test_wrong_twin_shard_map_returns_the_value_of_one_device(child):
    differ, _ = json.loads(child(RESULTS, devices=4))
    assert differ["a sum of the part"] == ["fine", "fine"]
