"""Saved executables, starts, digits, indices."""

import inspect
import json
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify, serialize_executable

# Each case is loaded and called in a fork of a process that has only imported JAX.
LOADED = """
import json, os, pickle, sys
import jax, jax.numpy as jnp
from jax.experimental.serialize_executable import deserialize_and_load

verdicts = {}
for name in sys.argv[2:]:
    if not (pid := os.fork()):
        exec(sys.argv[1])
        with open(name + ".bin", "rb") as file:
            function = deserialize_and_load(*pickle.load(file))
        result = jax.tree_util.tree_leaves(function(2 * jnp.eye(5)))
        os._exit(0 if all(jnp.isfinite(leaf).all() for leaf in result) else 1)
    _, status = os.waitpid(pid, 0)
    verdicts[name] = os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)
print(json.dumps(verdicts))
"""
WITH_LAPACK = {
    "inv": jnp.linalg.inv,
    "solve": lambda a: jnp.linalg.solve(a, a),
    "svd": jnp.linalg.svd,
    "eigh": jnp.linalg.eigh,
    "cholesky": jnp.linalg.cholesky,
    "qr": jnp.linalg.qr,
    "det": jnp.linalg.det,
    "lstsq": lambda a: jnp.linalg.lstsq(a, a[0])[0],
    "expm": jax.scipy.linalg.expm,
    "normal": lambda a: jax.random.multivariate_normal(jax.random.PRNGKey(0), a[0], a),
}
WITHOUT = {"fft": jnp.fft.fft, "matmul": lambda a: a @ a}


def _save(functions, folder):
    for name, function in functions.items():
        compiled = jax.jit(function).lower(jnp.eye(5)).compile()
        (folder / f"{name}.bin").write_bytes(pickle.dumps(serialize_executable.serialize(compiled)))


def _signals(child, folder, functions, before="pass"):
    """Return the signal that ended each process, and 0 where the call worked."""
    return json.loads(child(LOADED, before, *functions, folder=folder).splitlines()[-1])


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "loaded-executable-crashes-without-lapack",
    "On a CPU, a new process that loads an executable with linear algebra, such as `inv`, `svd` or `cholesky`, is killed by "
    "signal 11 in the call, even if it has traced such a function; one with a matrix product or an FFT works.",
)
def test_loaded_executable_crashes_without_lapack(child, tmp_path):
    _save(WITH_LAPACK | WITHOUT, tmp_path)
    signals = _signals(child, tmp_path, WITH_LAPACK | WITHOUT)
    assert signals == dict.fromkeys(WITH_LAPACK, 11) | dict.fromkeys(WITHOUT, 0)
    traced = "jax.make_jaxpr(jnp.linalg.inv)(jax.ShapeDtypeStruct((2, 2), jnp.float32))"
    assert _signals(child, tmp_path, ["svd"], traced) == {"svd": 11}


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "lowering-linear-algebra-starts-lapack",
    "A process that has lowered or called `inv` can call loaded executables with linear algebra, of other functions and shapes "
    "as well.",
)
@pytest.mark.parametrize(
    "before",
    [
        "jax.jit(jnp.linalg.inv).lower(jnp.eye(2))",
        "jax.jit(jnp.linalg.inv).lower(jax.ShapeDtypeStruct((0, 0), jnp.float32))",
        "jnp.linalg.inv(jnp.eye(2))",
    ],
    ids=["lowered", "empty", "called"],
)
def test_lowering_linear_algebra_starts_lapack(child, tmp_path, before):
    functions = {name: WITH_LAPACK[name] for name in ("solve", "svd", "eigh", "cholesky", "qr")}
    _save(functions, tmp_path)
    assert _signals(child, tmp_path, functions, before) == dict.fromkeys(functions, 0)


@pytest.mark.platform("cpu")
@pytest.mark.wrong_twin("loaded-executable-crashes-without-lapack")
def test_wrong_twin_loaded_executables_with_linear_algebra_run(child, tmp_path):
    _save({"inv": jnp.linalg.inv}, tmp_path)
    assert _signals(child, tmp_path, ["inv"]) == {"inv": 0}


CACHED = """
import jax, jax.numpy as jnp
seen = []
jax.monitoring.register_event_listener(lambda event, **_: seen.append(event))

def solve(a):
    return jnp.linalg.inv(a), jnp.linalg.svd(a, compute_uv=False)

inverse, values = jax.jit(solve)(jnp.diag(jnp.array([2.0, 4.0])))
print(inverse.ravel().tolist(), values.tolist())
print(seen.count("/jax/compilation_cache/cache_hits"))
"""


def _cache(folder, **settings):
    return {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        **settings,
    }


@pytest.mark.claim(
    "persistent-cache-runs-linear-algebra",
    "A second process finds a function with `inv` and `svd` in the persistent cache and runs it.",
)
def test_persistent_cache_runs_linear_algebra(child, tmp_path):
    first, second = (child(CACHED, **_cache(tmp_path)).splitlines() for _ in range(2))
    assert first[0] == second[0]
    assert int(second[1]) > int(first[1])


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "sorting-executable-is-saved-before-its-call",
    "On a CPU, an executable that sorts, of a jitted function that was not called, can be serialized before its first "
    "call, and not after it.",
)
@pytest.mark.parametrize("function", [jnp.sort, jnp.argsort, jnp.median], ids=["sort", "argsort", "median"])
def test_sorting_executable_is_saved_before_its_call(function):
    x = jnp.array([3.0, 1.0, 2.0])
    compiled = jax.jit(function).lower(x).compile()
    saved = serialize_executable.serialize(compiled)
    jax.block_until_ready(compiled(x))
    with pytest.raises(Exception, match="is not serializable"):
        serialize_executable.serialize(compiled)
    one = {}
    if "execution_devices" in inspect.signature(serialize_executable.deserialize_and_load).parameters:
        one = {"execution_devices": jax.devices()[:1]}
    loaded = serialize_executable.deserialize_and_load(*saved, **one)
    assert loaded(x).tolist() == compiled(x).tolist()


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "saved-executable-keeps-its-devices",
    "`deserialize_and_load` raises `KeyError` if `execution_devices` leaves out the device it was compiled for.",
)
def test_saved_executable_keeps_its_devices(child):
    if "execution_devices" not in inspect.signature(serialize_executable.deserialize_and_load).parameters:
        pytest.skip("not applicable: deserialize_and_load has no execution_devices in this JAX")
    code = (
        "import jax\n"
        "from jax.experimental.serialize_executable import deserialize_and_load, serialize\n"
        "saved = serialize(jax.jit(lambda x: 2 * x).lower(jax.numpy.ones(3)).compile())\n"
        "first, second = jax.devices()\n"
        "print(deserialize_and_load(*saved, execution_devices=[first])(jax.numpy.ones(3)).tolist())\n"
        "try:\n"
        "    deserialize_and_load(*saved, execution_devices=[second])\n"
        "except KeyError:\n"
        "    print('KeyError')\n"
    )
    assert child(code, devices=2).splitlines() == ["[2.0, 2.0, 2.0]", "KeyError"]


ORDER = """
import sys
import jax, numpy as np
seen = []
jax.monitoring.register_event_listener(lambda event, **_: seen.append(event))
layers = {f"layer{number}" for number in range(12)}
params = {name: np.ones(3, np.float32) for name in sorted(layers)}

def step(params, x):
    for name in sorted(layers) if "sorted" in sys.argv else layers:
        x = jax.numpy.tanh(x * params[name])
    return x

jax.jit(step)(params, np.ones(3, np.float32))
print(seen.count("/jax/compilation_cache/cache_hits"))
"""


@pytest.mark.claim(
    "set-order-misses-the-persistent-cache",
    "A traced loop over a set of strings misses the persistent cache when Python's hash seed changes; a loop over the "
    "sorted set hits, and so does the set with the same seed.",
)
def test_set_order_misses_the_persistent_cache(child, tmp_path):
    def hits(seed, *order):
        return int(child(ORDER, *order, PYTHONHASHSEED=seed, **_cache(tmp_path)).split()[-1])

    assert [hits(seed) for seed in ("1", "2", "3")] == [0, 0, 0]
    assert hits("1") == 1
    assert [hits(seed, "sorted") for seed in ("1", "2", "3")][1:] == [1, 1]


@pytest.mark.wrong_twin("set-order-misses-the-persistent-cache")
def test_wrong_twin_set_order_is_the_same_in_each_process(child, tmp_path):
    child(ORDER, PYTHONHASHSEED="1", **_cache(tmp_path))
    assert int(child(ORDER, PYTHONHASHSEED="2", **_cache(tmp_path)).split()[-1]) == 1


@pytest.mark.claim(
    "freeze-empties-the-collector",
    "After `import jax` and a jitted call, Python's garbage collector tracks tens of thousands of objects; after "
    "`gc.freeze()` it tracks fewer than a hundred.",
)
def test_freeze_empties_the_collector(child):
    code = (
        "import gc, jax\n"
        "jax.jit(lambda x: x + 1)(1.0)\n"
        "gc.collect()\n"
        "print(len(gc.get_objects()))\n"
        "gc.freeze()\n"
        "print(len(gc.get_objects()))\n"
    )
    before, after = map(int, child(code).split())
    assert before > 20_000
    assert after < 100


NOW = 1795699524.85


@pytest.mark.claim(
    "seconds-since-1970-lose-digits-in-jit",
    "A Python float or `np.float64` of `time.time()` reaches a jitted function as float32, whose neighbors are 128 s apart; a "
    "difference computed before the call keeps its digits, and so do 64-bit types.",
)
@pytest.mark.parametrize("number", [float, np.float64], ids=["float", "np.float64"])
def test_seconds_since_1970_lose_digits_in_jit(number):
    same = jax.jit(lambda t: t)
    assert np.spacing(np.float32(NOW)) == 128
    assert abs(float(same(number(NOW))) - NOW) > 1
    assert float(jax.jit(lambda a, b: b - a)(number(NOW), number(NOW + 5))) == 0
    assert abs(float(same(number(NOW - 1795699500))) - 24.85) < 1e-5
    jax.config.update("jax_enable_x64", True)
    try:
        assert float(same(number(NOW))) == NOW
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.claim(
    "gradient-of-a-clamped-read",
    "For an index out of range, `jax.grad` gives the slope to the entry that was read; for an array of such indices it "
    "gives 0, where `jax.jacfwd` counts the read, unless you read with `mode='clip'`.",
)
@pytest.mark.parametrize("place", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_gradient_of_a_clamped_read(place):
    x, indices = jnp.array([1.0, 2.0, 3.0]), jnp.array([7, 8])

    def one(x, i):
        return x[i]

    def several(x, i):
        return x[i].sum()

    def clipped(x, i):
        return x.at[i].get(mode="clip").sum()

    assert (one(x, jnp.int32(7)), several(x, indices)) == (3, 6)
    assert place(jax.grad(one))(x, jnp.int32(7)).tolist() == [0, 0, 1]
    assert place(jax.grad(several))(x, indices).tolist() == [0, 0, 0]
    assert place(jax.jacfwd(several))(x, indices).tolist() == [0, 0, 2]
    assert place(jax.grad(clipped))(x, indices).tolist() == [0, 0, 2]


@pytest.mark.wrong_twin("gradient-of-a-clamped-read")
def test_wrong_twin_the_gradient_follows_the_value():
    gradient = jax.grad(lambda x: x[jnp.array([7, 8])].sum())(jnp.ones(3))
    assert gradient.tolist() == [0, 0, 2]


@pytest.mark.claim(
    "index-checks-report-what-is-dropped-on-purpose",
    "`checkify.index_checks` also reports an index that `jnp.bincount` or `segment_sum` drops by design.",
)
@pytest.mark.parametrize(
    "function",
    [lambda i: jnp.bincount(i, length=2), lambda i: jax.ops.segment_sum(jnp.ones(2), i, 2)],
    ids=["bincount", "segment_sum"],
)
def test_index_checks_report_what_is_dropped_on_purpose(function):
    checked = jax.jit(checkify.checkify(function, errors=checkify.index_checks))
    assert function(jnp.array([0, 5])).tolist() == [1, 0]
    assert "out-of-bounds" in checked(jnp.array([0, 5]))[0].get()
    assert checked(jnp.array([0, 1]))[0].get() is None


@pytest.mark.claim(
    "export-gives-stablehlo-as-text-and-bytes",
    "An export holds its StableHLO as text and as bytes; unused arguments are left out of it, and linear algebra is in it as "
    "calls of LAPACK by name.",
)
def test_export_gives_stablehlo_as_text_and_bytes():
    export = pytest.importorskip("jax.export", reason="not applicable: jax.export is not in this JAX")
    shape = jax.ShapeDtypeStruct((3, 3), jnp.float32)
    exported = export.export(jax.jit(lambda a, unused: jnp.linalg.inv(a)), platforms=["cpu"])(shape, shape)
    assert "stablehlo" in exported.mlir_module()
    assert "@lapack_s" in exported.mlir_module()
    assert exported.mlir_module_serialized.startswith(b"ML\xefR")
    assert exported.module_kept_var_idx == (0,)


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "gpu-in-the-list-of-platforms-must-start",
    "On a machine without a GPU, `JAX_PLATFORMS=gpu,cpu` and `rocm,cpu` raise instead of using the CPU.",
)
@pytest.mark.parametrize("platforms", ["gpu,cpu", "rocm,cpu"])
def test_gpu_in_the_list_of_platforms_must_start(child, platforms):
    code = (
        "import jax\ntry:\n    print(jax.devices()[0].platform)\nexcept RuntimeError:\n    print('raised')\n"
    )
    assert child(code, JAX_PLATFORMS=platforms).split()[-1] == "raised"
