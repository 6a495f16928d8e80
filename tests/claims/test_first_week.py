"""JSON, tables, a cache of another dtype, layers that alternate."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.mark.claim(
    "json-writes-results-by-tolist",
    "`json.dumps` raises `TypeError` for the result of a jitted function, and writes a tree of results with "
    "`default=lambda a: a.tolist()`.",
)
def test_json_writes_results_by_tolist():
    loss = jax.jit(jnp.sum)(jnp.ones(3))
    with pytest.raises(TypeError, match="Object of type ArrayImpl is not JSON serializable"):
        json.dumps({"loss": loss})
    assert json.dumps({"loss": float(loss)}) == '{"loss": 3.0}'
    metrics = {"loss": loss, "norms": [jnp.ones(2, "bfloat16"), np.float32(2)], "step": 3}
    text = json.dumps(metrics, default=lambda a: a.tolist())
    assert json.loads(text) == {"loss": 3.0, "norms": [[1.0, 1.0], 2.0], "step": 3}


@pytest.mark.claim(
    "table-with-objects-is-refused-as-ndarray",
    "JAX refuses a NumPy array whose dtype is `object` or text, with an error that names `numpy.ndarray`.",
)
def test_table_with_objects_is_refused_as_ndarray():
    for column in (np.array([1.0, None], dtype=object), np.array(["a", "b"])):
        with pytest.raises(TypeError, match=r"numpy\.ndarray"):
            jax.jit(lambda x: x)(column)
    assert jax.jit(lambda x: x)(np.array([1.0, np.nan])).shape == (2,)


@pytest.mark.claim(
    "cache-of-another-dtype-needs-a-cast",
    "Storing float32 in a bfloat16 array, `.at[].set` gives a `FutureWarning` and `lax.dynamic_update_slice` raises "
    "`TypeError`; after `x.astype(cache.dtype)` both work.",
)
def test_cache_of_another_dtype_needs_a_cast():
    cache, x = jnp.zeros((4, 2), "bfloat16"), jnp.ones(2)
    with pytest.warns(FutureWarning, match="incompatible types"):
        jax.jit(lambda c, x: c.at[1].set(x))(cache, x)
    with pytest.raises(TypeError, match="the same dtypes"):
        jax.jit(lambda c, x: jax.lax.dynamic_update_slice(c, x[None], (1, 0)))(cache, x)
    cast = x.astype(cache.dtype)
    stored = cache.at[1].set(cast), jax.lax.dynamic_update_slice(cache, cast[None], (1, 0))
    assert all(one.dtype == cache.dtype and one[1].tolist() == [1, 1] for one in stored)


def local_layer(x, w):
    return x + jnp.tanh(w).sum()


def global_layer(x, w):
    return x * (1 + w.mean())


def in_a_loop(x, stacked):
    for i, w in enumerate(stacked):
        x = global_layer(x, w) if i % 3 == 2 else local_layer(x, w)
    return x


def over_the_pattern(x, stacked):
    def repeat(x, w):
        for i in range(2):
            x = local_layer(x, w[i])
        return global_layer(x, w[2]), None

    return jax.lax.scan(repeat, x, stacked.reshape(-1, 3, *stacked.shape[1:]))[0]


def with_a_flag(x, stacked):
    def one_layer(x, layer):
        w, is_global = layer
        return jax.lax.cond(is_global, global_layer, local_layer, x, w), None

    return jax.lax.scan(one_layer, x, (stacked, jnp.arange(len(stacked)) % 3 == 2))[0]


@pytest.mark.claim(
    "scan-over-a-pattern-of-layers",
    "For layers that alternate, a scan over the repeats of the pattern, and a scan over the layers with `lax.cond` on "
    "a flag, give what the Python loop gives.",
)
def test_scan_over_a_pattern_of_layers():
    stacked = jnp.arange(12.0).reshape(6, 2) / 10
    expected = in_a_loop(1.0, stacked)
    for f in (over_the_pattern, with_a_flag):
        assert np.allclose(jax.jit(f)(1.0, stacked), expected, rtol=1e-5)


@pytest.mark.wrong_twin("scan-over-a-pattern-of-layers")
def test_wrong_twin_the_order_of_the_layers_does_not_count():
    stacked = jnp.arange(12.0).reshape(6, 2) / 10
    assert np.allclose(over_the_pattern(1.0, stacked[::-1]), in_a_loop(1.0, stacked), rtol=1e-5)
