"""Fourier transforms of split arrays, sparse sums, lost NaN."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

FOURIER = """
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map

mesh = Mesh(np.array(jax.devices()), ("rows",))


def local(x):
    y = jnp.fft.fft2(x, axes=(1, 2))
    y = jax.lax.all_to_all(y, "rows", 1, 0, tiled=True)
    return jnp.fft.fft(y, axis=0)


by_hand = shard_map(local, mesh=mesh, in_specs=P("rows"), out_specs=P(None, "rows"))
facts = {"gathers": [], "exchanges": [], "errors": [], "splits": []}
for shape in ((8, 8, 8), (16, 4, 6)):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    split = jax.device_put(x, NamedSharding(mesh, P("rows")))
    for transform in (jnp.fft.fftn, by_hand):
        compiled = jax.jit(transform).lower(split).compile()
        y = compiled(split)
        facts["gathers"].append("all-gather" in compiled.as_text())
        facts["exchanges"].append("all-to-all" in compiled.as_text())
        facts["errors"].append(float(np.abs(y - np.fft.fftn(x)).max()))
    facts["splits"].append(sorted({shard.data.shape for shard in y.addressable_shards}))
print(json.dumps(facts))
"""
_FACTS = {}


def fourier(child):
    if not _FACTS:
        _FACTS.update(json.loads(child(FOURIER, devices=4)))
    return _FACTS


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "fft-of-a-split-axis-is-gathered",
    "On a CPU, `jnp.fft.fftn` of an array that is split along one axis makes an `all-gather`; local transforms in "
    "`shard_map` with one `all_to_all` between them don't, and agree up to rounding.",
)
def test_fft_of_a_split_axis_is_gathered(child):
    facts = fourier(child)
    assert facts["gathers"] == [True, False, True, False]
    assert facts["exchanges"][1::2] == [True, True]
    assert max(facts["errors"]) < 1e-3
    assert facts["splits"] == [[[8, 2, 8]], [[16, 1, 6]]]


@pytest.mark.wrong_twin("fft-of-a-split-axis-is-gathered")
def test_wrong_twin_fft_of_a_split_axis_stays_local(child):
    assert not fourier(child)["gathers"][0]


GRADIENTS = """
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("rows",))
x = np.arange(8, dtype=np.float32)


def loss(w, x):
    return jnp.mean(jnp.sin(w * x) ** 2)


def summed(w, x):
    return jax.lax.pmean(jax.grad(loss)(w, x), "rows")


def mean(w, x):
    return jax.lax.pmean(jax.grad(loss)(jax.lax.pcast(w, "rows", to="varying"), x), "rows")


def split(function):
    return jax.shard_map(function, mesh=mesh, in_specs=(P(), P("rows")), out_specs=P())


whole = split(lambda w, x: jax.lax.pmean(loss(w, x), "rows"))
alone = jax.grad(loss)(2.0, x)
found = [split(summed), split(mean), jax.grad(whole)]
print(json.dumps([float(f(2.0, x) / alone) for f in [jax.jit(g) for g in found]]))
"""


@pytest.mark.claim(
    "gradient-in-shard-map-is-summed",
    "Inside a `shard_map` over four devices, `grad` with respect to a replicated parameter is the sum over the devices; "
    "of a parameter that `pcast` made varying it is that of the device, and `grad` of the whole `shard_map` is right too.",
)
def test_gradient_in_shard_map_is_summed(child):
    np.testing.assert_allclose(json.loads(child(GRADIENTS, devices=4)), [4, 1, 1], rtol=1e-5)


def in_a_loop(add, x):
    return jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, total: add(total, x), x))(x)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (6,)])
@pytest.mark.claim(
    "sum-of-bcoo-arrays-grows",
    "A sum of two `BCOO` arrays stores the elements of both, so as the carry of a loop it raises `TypeError`; with "
    "`sum_duplicates(nse=…)`, a sum of two arrays of one pattern keeps its size.",
)
def test_sum_of_bcoo_arrays_grows(shape):
    x = sparse.BCOO.fromdense(jnp.arange(float(np.prod(shape))).reshape(shape) % 3)
    assert jax.jit(lambda x: x + x)(x).nse == 2 * x.nse
    with pytest.raises(TypeError, match="carry"):
        in_a_loop(lambda total, x: total + x, x)
    total = in_a_loop(lambda total, x: (total + x).sum_duplicates(nse=x.nse), x)
    assert total.nse == x.nse
    np.testing.assert_array_equal(total.todense(), 4 * x.todense())
    of_data = jax.lax.fori_loop(0, 3, lambda _, data: data + x.data, x.data)
    np.testing.assert_array_equal(sparse.BCOO((of_data, x.indices), shape=shape).todense(), total.todense())


@pytest.mark.platform("cpu")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.claim(
    "maximum-of-many-numbers-may-drop-a-nan",
    "On a CPU, `jnp.max` and `jnp.min` of 5,000 `float32` or `float64` numbers lack the `nan` among them, also along one "
    "axis, and with or without jit. A jitted mean of their `jax.nn.relu` lacks it, too. Of 4,000, these give it. "
    "`jnp.isnan(x).any()` finds it.",
)
def test_maximum_of_many_numbers_may_drop_a_nan(dtype):
    with jax.experimental.enable_x64() if hasattr(jax.experimental, "enable_x64") else jax.enable_x64(True):
        many = np.zeros(5000, dtype)
        many[7] = np.nan
        for wrap in (jax.jit, lambda f: f):
            for reduction in (jnp.max, jnp.min):
                reduce = wrap(reduction)
                assert not np.isnan(reduce(many))
                assert not np.isnan(wrap(lambda x, r=reduction: r(x, axis=1))(many.reshape(50, 100))).any()
                assert np.isnan(reduce(many[:4000]))
        for sum_of in (jax.nn.relu, lambda x: jnp.maximum(x, 0)):
            total = jax.jit(lambda x, f=sum_of: jnp.mean(f(x)))
            assert not np.isnan(total(many))
            assert np.isnan(total(many[:4000]))
        assert jnp.isnan(many).any()
