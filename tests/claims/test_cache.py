"""The cache: what hits, what traces again, what only compiles again."""

import inspect
import random
import threading
from collections import OrderedDict, namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

Pair = namedtuple("Pair", "a b")


def jitted(body=lambda x: x * 2, **options):
    """A jitted copy of body, and the list that grows by one whenever its Python code runs."""
    runs = []

    def function(*args, **kwargs):
        runs.append(1)
        return body(*args, **kwargs)

    return jax.jit(function, **options), runs


def runs_of(calls, body=lambda x: x * 2):
    """How often Python code ran in each of the calls, made one after the other."""
    f, runs = jitted(body)
    counts = []
    for args in calls:
        before = len(runs)
        f(*args)
        counts.append(len(runs) - before)
    return counts


def add_up(tree):
    return sum(jax.tree_util.tree_leaves(tree))


@pytest.mark.claim(
    "wrapping-compiles-nothing",
    "Wrapping a function in jit does not trace or compile it: both wait for the first call.",
    seeds="S002-42 S004-29",
)
def test_wrapping_compiles_nothing(counted):
    x = jnp.arange(3.0)
    counted()
    f, runs = jitted()
    assert not runs
    assert not counted()
    f(x)
    assert len(runs) == 1
    assert counted()["compiles"] == 1


@pytest.mark.claim(
    "same-signature-hits",
    "A call with the shapes, dtypes and structure of an earlier call runs no Python of the body and "
    "compiles nothing.",
    seeds="S002-01 S002-44 S002-84 S002-85 S004-13 S004-29",
)
@pytest.mark.hostile("scalar", "empty", "bfloat16", "int8", "complex", "numpy", "committed", "split")
def test_same_signature_hits(counted, case):
    f, runs = jitted()
    x, y = case.array, case.array
    f(x)
    counted()
    f(y)
    assert len(runs) == 1
    assert not counted()


@pytest.mark.wrong_twin("same-signature-hits")
def test_wrong_twin_new_values_trace_again():
    assert runs_of([(jnp.arange(3.0),), (jnp.ones(3),)]) == [1, 1]


@pytest.mark.claim(
    "new-shape-retraces",
    "A new shape traces and compiles again, and so does the same number of elements in another shape.",
    seeds="S002-03 S002-84 S004-04",
)
def test_new_shape_retraces(counted):
    f, runs = jitted()
    inputs = [jnp.ones(4), jnp.ones(8), jnp.ones((2, 2))]
    counted()
    for x in inputs:
        f(x)
    assert len(runs) == 3
    assert counted()["compiles"] == 3


@pytest.mark.wrong_twin("new-shape-retraces")
def test_wrong_twin_one_program_serves_all_shapes():
    assert runs_of([(jnp.ones(4),), (jnp.ones(8),)]) == [1, 0]


@pytest.mark.claim(
    "earlier-shapes-stay-cached",
    "A shape seen earlier still hits after other shapes came in between: entries are added, not replaced.",
    seeds="S002-03",
)
def test_earlier_shapes_stay_cached():
    assert runs_of([(jnp.ones(n),) for n in (2, 3, 4, 2, 3, 4)]) == [1, 1, 1, 0, 0, 0]


@pytest.mark.claim(
    "random-lengths-compile-each",
    "Inputs of random length compile once for each different length, without a warning.",
    seeds="S002-67 S002-68",
)
def test_random_lengths_compile_each(counted, capfd, caplog):
    lengths = random.Random(0).choices(range(1, 100), k=12)
    inputs = [jnp.ones(n) for n in lengths]
    f, runs = jitted(lambda x: x**3)
    counted()
    for x in inputs:
        f(x)
    assert len(runs) == counted()["compiles"] == len(set(lengths))
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


@pytest.mark.claim(
    "new-dtype-retraces",
    "The same shape in another dtype traces and compiles again.",
    seeds="S002-03 S002-44",
)
def test_new_dtype_retraces():
    assert runs_of([(jnp.ones(4, d),) for d in ("float32", "int32", "bfloat16", "float32")]) == [1, 1, 1, 0]


@pytest.mark.claim(
    "python-scalar-values-share-an-entry",
    "The value of a traced Python number is not part of the key: 3.0 and 4.0 share a compiled function.",
    seeds="S002-72",
)
def test_python_scalar_values_share_an_entry():
    assert runs_of([(3.0,), (4.0,), (-1e9,)]) == [1, 0, 0]


@pytest.mark.claim(
    "python-scalar-types-retrace",
    "The type of a Python number is part of the key: float, int, bool and complex trace four times.",
)
def test_python_scalar_types_retrace():
    assert runs_of([(3.0,), (3,), (True,), (3j,)]) == [1, 1, 1, 1]


@pytest.mark.claim(
    "numpy-shares-the-program",
    "A NumPy array in place of a JAX array of the same shape and dtype does not make JAX trace or compile again.",
)
def test_numpy_shares_the_program(counted):
    f, runs = jitted()
    f(jnp.ones(4))
    counted()
    f(np.ones(4, np.float32))
    assert len(runs) == 1
    assert not counted()["lowerings"]
    assert not counted()["compiles"]


@pytest.mark.claim(
    "numpy-float64-shares-the-float32-program",
    "With 64-bit types off, `float64` and `float32` NumPy arrays share a compiled function.",
)
def test_numpy_float64_shares_the_float32_program():
    assert runs_of([(np.ones(4, np.float32),), (np.ones(4, np.float64),)]) == [1, 0]


@pytest.mark.claim(
    "numpy-memory-order-is-no-key",
    "The memory order of a NumPy argument is not part of the key: C order, Fortran order and strided views share "
    "a compiled function.",
)
def test_numpy_memory_order_is_no_key():
    c = np.ones((4, 4), np.float32)
    assert runs_of([(c,), (np.asfortranarray(c),), (np.ones((8, 8), np.float32)[::2, ::2],)]) == [1, 0, 0]


@pytest.mark.claim(
    "weak-type-retraces",
    "A weakly typed array and a strongly typed one of the same dtype are two entries.",
    seeds="S002-03 S002-44",
)
def test_weak_type_retraces():
    strong, weak = jnp.float32(3), jnp.asarray(3.0)
    assert strong.dtype == weak.dtype
    assert weak.weak_type
    assert runs_of([(strong,), (weak,), (strong,), (weak,)]) == [1, 1, 0, 0]


@pytest.mark.claim(
    "python-start-value-traces-twice",
    "A function that was started with a Python number traces twice if the result that it is fed back isn't "
    "weakly typed.",
)
def test_python_start_value_traces_twice():
    f, runs = jitted(lambda c: c + jnp.float32(1))
    c, seen = 0.0, []
    for _ in range(4):
        c = f(c)
        seen.append(len(runs))
    assert seen == [1, 2, 2, 2]

    f, runs = jitted(lambda c: c * 2.0)  # weakly typed
    f(f(0.5))
    assert len(runs) == 1


@pytest.mark.claim(
    "tree-structure-retraces",
    "The same arrays in another container, or in a longer one, trace again.",
    seeds="S002-16 S002-44",
)
def test_tree_structure_retraces():
    x = jnp.ones(2)
    trees = [(x, x), [x, x], {"a": x, "b": x}, Pair(x, x), (x, x, x), (x, None, x)]
    assert runs_of([(t,) for t in trees], add_up) == [1] * 6
    assert runs_of([(t,) for t in [(x, x), (x + 1, x + 2)]], add_up) == [1, 0]


@pytest.mark.claim(
    "leaf-shape-retraces",
    "A structure hits when its leaves keep their shapes and dtypes, and traces again when one leaf changes "
    "its shape.",
    seeds="S002-16",
)
def test_leaf_shape_retraces():
    x = jnp.ones(2)
    assert runs_of([({"w": x, "b": x},), ({"w": x, "b": x * 3},), ({"w": x, "b": x[:1]},)], add_up) == [
        1,
        0,
        1,
    ]


@pytest.mark.claim(
    "dict-order-is-no-key",
    "The insertion order of a dict is not part of the key; its keys are.",
    seeds="S002-16",
)
def test_dict_order_is_no_key():
    x = jnp.ones(2)
    assert runs_of([({"a": x, "b": x},), ({"b": x, "a": x},), ({"a": x, "c": x},)], add_up) == [1, 0, 1]


@pytest.mark.claim("ordered-dict-order-is-a-key", "The order of an `OrderedDict` is part of the key.")
def test_ordered_dict_order_is_a_key():
    x = jnp.ones(2)
    forward, backward = OrderedDict(a=x, b=x), OrderedDict(b=x, a=x)
    assert runs_of([(forward,), (backward,), (forward,)], add_up) == [1, 1, 0]


@pytest.mark.claim(
    "call-spelling-retraces",
    "Positional, by keyword and left to its default are different calls: `f(x, 2.0)`, `f(x, n=2.0)`, "
    "`f(x=x, n=2.0)` and `f(x)` trace four times.",
    seeds="S002-03 S002-44 S002-84",
)
def test_call_spelling_retraces():
    runs = []
    f = jax.jit(lambda x, n=2.0: runs.append(1) or x * n)
    x = jnp.ones(3)
    results = [f(x, 2.0), f(x, n=2.0), f(x=x, n=2.0), f(x)]
    assert len(runs) == 4
    assert all((r == 2).all() for r in results)


@pytest.mark.wrong_twin("call-spelling-retraces")
def test_wrong_twin_spelling_does_not_matter():
    runs = []
    f = jax.jit(lambda x, n=2.0: runs.append(1) or x * n)
    f(1.0, 2.0), f(1.0, n=2.0)
    assert len(runs) == 1


@pytest.mark.claim(
    "keyword-order-is-no-key", "The order in which keyword arguments are written does not matter."
)
def test_keyword_order_is_no_key():
    runs = []
    f = jax.jit(lambda x, n: runs.append(1) or x * n)
    f(x=1.0, n=2.0), f(n=2.0, x=1.0)
    assert len(runs) == 1


@pytest.mark.claim(
    "same-device-commitment-recompiles",
    "Committing an array to the device it is already on keeps the trace, but lowers and compiles again.",
    seeds="S002-44",
)
def test_same_device_commitment_recompiles(counted):
    f, runs = jitted()
    x = jnp.arange(4.0)
    committed = jax.device_put(x, next(iter(x.devices())))
    f(x)
    counted()
    f(committed)
    done = counted()
    assert len(runs) == 1
    assert (done["lowerings"], done["compiles"]) == (1, 1)


@pytest.mark.wrong_twin("same-device-commitment-recompiles")
def test_wrong_twin_device_put_to_the_same_device_is_free(counted):
    f, _ = jitted()
    x = jnp.arange(4.0)
    committed = jax.device_put(x, next(iter(x.devices())))
    f(x)
    counted()
    f(committed)
    assert not counted()["compiles"]


@pytest.mark.claim(
    "compiler-options-recompile",
    "The same function wrapped with other compiler options keeps its trace and compiles again.",
)
def test_compiler_options_recompile(counted):
    if "compiler_options" not in inspect.signature(jax.jit).parameters:
        pytest.skip("not applicable: jit has no compiler_options in this JAX")

    def body(x):
        runs.append(1)
        return x * 2

    runs, x = [], jnp.arange(4.0)
    jax.jit(body)(x)
    counted()
    options = {"xla_embed_ir_in_executable": True}
    jax.jit(body, compiler_options=options)(x)
    assert len(runs) == 1
    assert counted()["compiles"] == 1


@pytest.mark.claim(
    "jit-options-share-the-trace",
    "Wrapping one function again with donation or `keep_unused` does not trace it again; with other static arguments it "
    "does.",
)
def test_jit_options_share_the_trace():
    def body(x):
        runs.append(1)
        return x * 2

    runs = []
    for options in ({}, {"keep_unused": True}, {"donate_argnums": 0}):
        jax.jit(body, **options)(jnp.arange(4.0))
    assert len(runs) == 1
    jax.jit(body, static_argnums=0)(2.0)
    assert len(runs) == 2


@pytest.mark.claim(
    "key-seed-is-no-key",
    "Random keys of another seed hit; a raw `uint32` key in place of a typed key traces again.",
)
def test_key_seed_is_no_key():
    keys = [jax.random.key(0), jax.random.key(1), jax.random.PRNGKey(0), jax.random.PRNGKey(1)]
    assert runs_of([(k,) for k in keys], lambda k: jax.random.uniform(k)) == [1, 0, 1, 0]


@pytest.mark.claim(
    "inner-jit-is-traced-once",
    "A jitted function called many times inside another, with one signature, is traced once.",
)
def test_inner_jit_is_traced_once():
    inner, runs = jitted()
    jax.jit(lambda x: inner(inner(inner(x))))(jnp.ones(3))
    assert len(runs) == 1


@pytest.mark.claim(
    "outer-jit-reuses-the-inner-trace",
    "Calling a jitted function directly and then inside another jitted function does not trace it again.",
)
def test_outer_jit_reuses_the_inner_trace():
    inner, runs = jitted()
    x = jnp.ones(3)
    inner(x)
    jax.jit(lambda x: inner(x) + 1)(x)
    assert len(runs) == 1


@pytest.mark.claim("threads-share-the-cache", "A second thread hits what the first one compiled.")
def test_threads_share_the_cache():
    f, runs = jitted()
    x = jnp.ones(3)
    f(x)
    thread = threading.Thread(target=f, args=(x,))
    thread.start()
    thread.join()
    assert len(runs) == 1


@pytest.mark.claim(
    "clear-cache-forgets-one-function", "`clear_cache()` of one jitted function leaves the others compiled."
)
def test_clear_cache_forgets_one_function():
    (f, f_runs), (g, g_runs) = jitted(), jitted()
    x = jnp.ones(3)
    f(x), g(x)
    f.clear_cache()
    f(x), g(x)
    assert (len(f_runs), len(g_runs)) == (2, 1)


@pytest.mark.claim(
    "clear-caches-forgets-all",
    "`jax.clear_caches()` makes every jitted function trace and compile again.",
    seeds="S004-04",
)
@pytest.mark.hostile("scalar", "bfloat16", "split", "jit", "vmap", "scan")
def test_clear_caches_forgets_all(counted, case):
    (f, f_runs), (g, g_runs) = jitted(), jitted()
    x = case.array
    call_f, call_g = case.place(f), case.place(g)
    call_f(x), call_g(x)
    jax.clear_caches()
    counted()
    call_f(x), call_g(x)
    assert (len(f_runs), len(g_runs)) == (2, 2)
    assert counted()["compiles"] >= 2


@pytest.mark.claim(
    "inner-function-keeps-the-old-global",
    "If one jitted function calls another, `clear_cache()` of either one keeps the old value of a global; "
    "`jax.clear_caches()` reads the new one.",
)
def test_inner_function_keeps_the_old_global():
    state = {"gain": 1.0}
    inner = jax.jit(lambda x: x * state["gain"])
    outer = jax.jit(lambda x: inner(x) + 0)
    outer(2.0)
    state["gain"] = 5.0
    outer.clear_cache()
    assert outer(2.0) == 2.0
    inner.clear_cache()
    assert outer(2.0) == 2.0
    jax.clear_caches()
    assert outer(2.0) == 10.0


@pytest.mark.claim(
    "eager-operations-compile-too",
    "Outside jit an operation such as `jnp.sin` is compiled on its own, once for each shape: eager code "
    "does not escape new shapes.",
    seeds="S002-05 S002-08 S002-40 S002-41 S002-67 S004-12",
)
def test_eager_operations_compile_too(counted):
    short, long = jnp.ones(41), jnp.ones(43)
    counted()
    jnp.sin(short)
    assert counted()["compiles"] == 1
    jnp.sin(short)
    assert counted()["compiles"] == 0
    jnp.sin(long)
    assert counted()["compiles"] == 1


@pytest.mark.claim(
    "failed-trace-caches-nothing",
    "A call whose body raises while tracing is not cached: the next one traces again.",
)
def test_failed_trace_caches_nothing():
    f, runs = jitted(lambda x: x if x > 0 else -x)
    for _ in range(2):
        with pytest.raises(jax.errors.TracerBoolConversionError):
            f(1.0)
    assert len(runs) == 2
