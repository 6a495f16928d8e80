"""Servers: exported weights, results without waiting, late state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def _export():
    return pytest.importorskip("jax.export", reason="not applicable: this release has no jax.export")


ROWS = jax.ShapeDtypeStruct((8, 100), jnp.float32)
WEIGHTS = jax.ShapeDtypeStruct((100, 100), jnp.float32)


def _cache_update():
    """Return the export of a jitted function that donates its first argument."""
    step = jax.jit(lambda cache, row: cache.at[0].set(row), donate_argnums=0)
    row = jax.ShapeDtypeStruct((100,), jnp.float32)
    return _export().export(step)(WEIGHTS, row)


@pytest.mark.claim(
    "export-loses-donation",
    "`jax.jit(exported.call)` keeps an argument that the exported function donates; with `donate_argnums` of its own, "
    "it deletes it.",
)
def test_export_loses_donation():
    exported, row = _cache_update(), jnp.ones(100)
    for call in (exported.call, jax.jit(exported.call)):
        cache = jnp.zeros((100, 100))
        np.testing.assert_array_equal(call(cache, row)[0], row)
        assert not cache.is_deleted()
    cache = jnp.zeros((100, 100))
    np.testing.assert_array_equal(jax.jit(exported.call, donate_argnums=0)(cache, row)[0], row)
    assert cache.is_deleted()


@pytest.mark.wrong_twin("export-loses-donation")
def test_wrong_twin_export_donates_as_the_function_does():
    cache = jnp.zeros((100, 100))
    jax.jit(_cache_update().call)(cache, jnp.ones(100))
    assert cache.is_deleted()


@pytest.mark.claim(
    "export-embeds-captured-arrays",
    "An export of a function that closes over an array of random numbers holds its bytes; with the array as an argument, it "
    "takes less than a tenth of them.",
)
def test_export_embeds_captured_arrays():
    export = _export()
    weights = jnp.asarray(np.random.default_rng(0).normal(size=WEIGHTS.shape), jnp.float32)
    closed = export.export(jax.jit(lambda x: x @ weights))(ROWS)
    passed = export.export(jax.jit(lambda w, x: x @ w))(WEIGHTS, ROWS)
    assert len(closed.mlir_module_serialized) > weights.nbytes
    assert len(passed.mlir_module_serialized) < weights.nbytes / 10


@pytest.mark.measured("how soon the work is done")
@pytest.mark.claim(
    "is-ready-asks-without-waiting",
    "`is_ready()` of an array that a long call still computes is false, and true after `block_until_ready`.",
)
def test_is_ready_asks_without_waiting():
    @jax.jit
    def long(x):
        return jax.lax.fori_loop(0, 300, lambda _, y: jnp.tanh(y @ y), x)

    x = jnp.ones((500, 500))
    jax.block_until_ready(long(x))
    result = long(x)
    early = result.is_ready()
    jax.block_until_ready(result)
    assert (early, result.is_ready()) == (False, True)


@pytest.mark.claim(
    "jax-array-cannot-be-awaited",
    "`await` of a JAX array raises `TypeError`.",
)
def test_jax_array_cannot_be_awaited():
    async def wait(array):
        return await array

    with pytest.raises(TypeError, match="await"):
        wait(jnp.ones(3)).send(None)


@pytest.mark.claim(
    "none-that-becomes-an-array-retraces",
    "A state whose leaf is `None` at the first call and an array afterwards is traced twice; one that starts with an "
    "array is traced once.",
)
def test_none_that_becomes_an_array_retraces():
    traces = []

    @jax.jit
    def step(state, x):
        traces.append(1)
        old = state["mean"]
        return {"mean": x.mean() if old is None else 0.9 * old + 0.1 * x.mean()}

    def count(state):
        traces.clear()
        jax.clear_caches()
        for _ in range(4):
            state = step(state, jnp.ones(3))
        return len(traces)

    assert count({"mean": None}) == 2
    assert count({"mean": jnp.zeros(())}) == 1


@pytest.mark.claim(
    "vmapped-states-need-vmap-again",
    "`jax.vmap` of a function that returns a state returns its arrays with a leading axis; `leaf[0]` of them is the state "
    "of the first, with which a function of one state gives the first result of the batched one.",
)
def test_vmapped_states_need_vmap_again():
    def train(key):
        return {"w": jax.random.normal(key, (3, 2)), "step": jnp.int32(5)}

    def act(state, x):
        return x @ state["w"]

    states = jax.vmap(train)(jax.random.split(jax.random.PRNGKey(0), 4))
    assert jax.tree_util.tree_map(jnp.shape, states) == {"w": (4, 3, 2), "step": (4,)}
    first = jax.tree_util.tree_map(lambda leaf: leaf[0], states)
    together = jax.vmap(act, in_axes=(0, None))(states, jnp.ones(3))
    assert together.shape == (4, 2)
    np.testing.assert_allclose(together[0], act(first, jnp.ones(3)), rtol=1e-5)
