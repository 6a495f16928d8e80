"""Memory without new shapes, deleted arrays, threads of callbacks."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

GROWTH = """
import sys, jax, jax.numpy as jnp
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
xs = jnp.ones((50, 10))
def simulate(w):
    return jax.lax.scan(lambda c, x: (jnp.tanh(c * w + x), None), jnp.zeros(10), xs)[0]
f = jax.jit(simulate) if sys.argv[1] == "jit" else simulate
w = jnp.ones(10)
f(w).block_until_ready()
before, arrays = resident(), len(jax.live_arrays())
for _ in range(200):
    f(w).block_until_ready()
print(resident() - before, len(jax.live_arrays()) - arrays)
"""


@pytest.mark.claim(
    "eager-loop-of-a-new-function-takes-memory",
    "If a function without jit makes a new body for its `scan`, the process grows with 200 calls of one shape, although "
    "`jax.live_arrays()` has as many entries as before; under jit, it doesn't grow.",
)
@pytest.mark.platform("cpu")
def test_eager_loop_of_a_new_function_takes_memory(child):
    megabytes, arrays = map(float, child(GROWTH, "plain").split())
    assert megabytes > 30
    assert arrays == 0
    megabytes, _ = map(float, child(GROWTH, "jit").split())
    assert megabytes < 10


@pytest.mark.wrong_twin("eager-loop-of-a-new-function-takes-memory")
def test_wrong_twin_equal_shapes_take_no_memory(child):
    assert float(child(GROWTH, "plain").split()[0]) < 10


@pytest.mark.claim(
    "deleted-captured-array-fails-at-the-next-trace",
    "After `x.delete()`, a jitted function that captured `x` still works for the shapes that it has compiled, and a "
    "new shape raises `RuntimeError`.",
)
def test_deleted_captured_array_fails_at_the_next_trace():
    table = jnp.arange(4.0)
    shifted = jax.jit(lambda x: x + table)
    shifted(jnp.ones(4))
    table.delete()
    assert shifted(jnp.ones(4)).tolist() == [1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="deleted"):
        shifted(jnp.ones((2, 4)))


@pytest.mark.wrong_twin("deleted-captured-array-fails-at-the-next-trace")
def test_wrong_twin_the_compiled_copy_serves_new_shapes():
    table = jnp.arange(4.0)
    shifted = jax.jit(lambda x: x + table)
    shifted(jnp.ones(4))
    table.delete()
    try:
        works = shifted(jnp.ones((2, 4))).shape == (2, 4)
    except RuntimeError:
        works = False
    assert works


@pytest.mark.claim(
    "callbacks-can-share-one-thread",
    "If the function of a `pure_callback` hands its work to a `ThreadPoolExecutor` with one worker, the work of calls "
    "from several threads runs in one thread.",
)
def test_callbacks_can_share_one_thread():
    worker, threads = ThreadPoolExecutor(max_workers=1), set()

    def solve(x):
        threads.add(threading.get_ident())
        return np.sin(x)

    def in_worker(x):
        return worker.submit(solve, np.asarray(x)).result()

    @jax.jit
    def step(x):
        shape = jax.ShapeDtypeStruct((3,), jnp.float32)
        return lax.fori_loop(0, 5, lambda _, x: jax.pure_callback(in_worker, shape, x) + 1, x)

    callers = [threading.Thread(target=lambda: step(jnp.ones(3)).block_until_ready()) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    step(jnp.ones(3)).block_until_ready()
    assert len(threads) == 1
    assert threading.get_ident() not in threads


@pytest.mark.wrong_twin("callbacks-can-share-one-thread")
def test_wrong_twin_the_worker_is_the_caller():
    worker, threads = ThreadPoolExecutor(max_workers=1), set()

    def in_worker(x):
        worker.submit(lambda: threads.add(threading.get_ident())).result()
        return np.asarray(x)

    jax.jit(lambda x: jax.pure_callback(in_worker, x, x))(jnp.float32(1)).block_until_ready()
    assert threads == {threading.get_ident()}


@pytest.mark.claim(
    "config-values-show-a-changed-setting",
    "A copy of `jax.config.values` from before an import differs from it afterwards in the settings that the import "
    "changed.",
)
def test_config_values_show_a_changed_setting():
    before = dict(jax.config.values)
    jax.config.update("jax_enable_compilation_cache", not before["jax_enable_compilation_cache"])
    try:
        changed = {name for name, value in jax.config.values.items() if value != before[name]}
    finally:
        jax.config.update("jax_enable_compilation_cache", before["jax_enable_compilation_cache"])
    assert changed == {"jax_enable_compilation_cache"}


@pytest.mark.wrong_twin("config-values-show-a-changed-setting")
def test_wrong_twin_a_changed_setting_is_invisible():
    before = dict(jax.config.values)
    jax.config.update("jax_enable_compilation_cache", not before["jax_enable_compilation_cache"])
    try:
        assert before == dict(jax.config.values)
    finally:
        jax.config.update("jax_enable_compilation_cache", before["jax_enable_compilation_cache"])


def block(w, x):
    x = x @ w
    for _ in range(6):
        x = jnp.tanh(jnp.sin(x) + 1.1 * x)
    return x


def temporary(layer, scan):
    def loss(w, x):
        if scan:
            return lax.scan(lambda x, _: (layer(w, x), None), x, length=10)[0].sum()
        for _ in range(10):
            x = layer(w, x)
        return x.sum()

    shape = jax.ShapeDtypeStruct((200, 200), jnp.float32)
    return jax.jit(jax.grad(loss)).lower(shape, shape).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.claim(
    "fusion-saves-less-than-checkpoint",
    "For ten layers of a product and elementwise operations, the gradient through an unrolled loop needs less "
    "temporary memory than through a `scan`, because XLA recomputes some activations, and `jax.checkpoint` around "
    "each layer lowers both.",
)
@pytest.mark.platform("cpu")
def test_fusion_saves_less_than_checkpoint():
    unrolled, scanned = temporary(block, scan=False), temporary(block, scan=True)
    assert unrolled < 0.8 * scanned
    assert temporary(jax.checkpoint(block), scan=False) < 0.5 * unrolled
    assert temporary(jax.checkpoint(block, prevent_cse=False), scan=True) < 0.5 * scanned


@pytest.mark.wrong_twin("fusion-saves-less-than-checkpoint")
def test_wrong_twin_fusion_makes_checkpoint_superfluous():
    assert temporary(jax.checkpoint(block), scan=False) >= temporary(block, scan=False)
