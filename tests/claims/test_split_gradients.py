"""Gradients and keys with several devices."""

import json

import pytest

START = """
import json
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

auto = jax.sharding.Mesh(np.array(jax.devices()), ("rows",))
"""

KEYS = """
def draws(key_of_device):
    def draw(key, x):
        return x + jax.random.gamma(key_of_device(key), 2.0)

    f = jax.shard_map(draw, mesh=auto, in_specs=(P(), P("rows")), out_specs=P("rows"))
    return len(set(f(jax.random.key(0), jnp.zeros(4)).tolist()))

same = draws(lambda key: lax.pcast(key, "rows", to="varying"))
own = draws(lambda key: jax.random.fold_in(key, lax.axis_index("rows")))
print(json.dumps([same, own]))
"""

PMEAN = """
def loss(w, x):
    return lax.pmean(jnp.mean((w * x) ** 2), "rows")

def plain(w, x):
    return jax.grad(loss)(w, x)

def varying(w, x):
    return lax.pmean(jax.grad(loss)(lax.pcast(w, "rows", to="varying"), x), "rows")

x = jnp.arange(8.0)
right = jax.grad(lambda w: jnp.mean((w * x) ** 2))(1.0)
f = [jax.shard_map(g, mesh=auto, in_specs=(P(), P("rows")), out_specs=P()) for g in (plain, varying)]
print(json.dumps([float(g(1.0, x) / right) for g in f]))
"""

EXPLICIT = """
mesh = jax.make_mesh((4,), ("rows",))
x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("rows")))

def outcome(f):
    try:
        return f(x).tolist()
    except ValueError as error:
        return "Length of device assignment" in str(error)

square, total = (lambda x: (x**2).sum()), (lambda x: x.sum())
found = [outcome(jax.grad(square)), outcome(jax.jit(jax.grad(square))), outcome(jax.jit(jax.grad(total)))]
with jax.set_mesh(mesh):
    found += [outcome(jax.grad(square)), outcome(jax.jit(jax.grad(total)))]
print(json.dumps(found))
"""


@pytest.mark.claim(
    "pcast-of-a-key-draws-the-same-on-each-device",
    "In a `shard_map` over four devices, `jax.random.gamma` of a key that `pcast` made varying draws the same number on "
    "each; of a key into which the index of the device is folded, four numbers.",
)
def test_pcast_of_a_key_draws_the_same_on_each_device(child):
    assert json.loads(child(START + KEYS, devices=4)) == [1, 4]


@pytest.mark.wrong_twin("pcast-of-a-key-draws-the-same-on-each-device")
def test_wrong_twin_each_device_draws_its_own(child):
    assert json.loads(child(START + KEYS, devices=4)) == [4, 4]


@pytest.mark.claim(
    "gradient-of-a-pmean-in-shard-map-is-right",
    "In a `shard_map` over four devices, `grad` of a loss that ends in `pmean` is the gradient of the whole; with a "
    "parameter that `pcast` made varying, the `pmean` of it is a quarter.",
)
def test_gradient_of_a_pmean_in_shard_map_is_right(child):
    assert json.loads(child(START + PMEAN, devices=4)) == pytest.approx([1, 0.25])


@pytest.mark.claim(
    "gradient-on-explicit-axes-needs-the-mesh",
    "On a mesh with explicit axes that is not in the context, `grad` of a split array raises `ValueError` outside jit, and "
    "inside jit too if the gradient, as that of a sum, doesn't use the array. Under `set_mesh` both work.",
)
def test_gradient_on_explicit_axes_needs_the_mesh(child):
    twice = [2.0 * i for i in range(8)]
    assert json.loads(child(START + EXPLICIT, devices=4)) == [True, twice, True, twice, [1.0] * 8]
