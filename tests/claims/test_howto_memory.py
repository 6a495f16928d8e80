"""Memory, constants, tests and callbacks in practice."""

import contextlib
import functools
import importlib.util
import inspect
import logging
import os
import pickle
import subprocess
import sys
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.experimental import io_callback, serialize_executable

NUMBER = jax.ShapeDtypeStruct((), jnp.float32)
THREE = jax.ShapeDtypeStruct((3,), jnp.float32)


# Memory -----------------------------------------------------------------------------------------------------


def floats(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def analysis(function, *args, **options):
    return jax.jit(function, **options).lower(*args).compile().memory_analysis()


def wave(x):
    for _ in range(4):
        x = jnp.sin(x) * 1.01 + 0.1
    return x


@pytest.mark.claim(
    "memory-analysis-allocates-nothing",
    "`memory_analysis` of a compiled function gives its bytes without running it, also for arrays too large for "
    "the memory.",
)
def test_memory_analysis_allocates_nothing():
    needed = analysis(lambda x: 2 * x, floats(2**22, 2**22))
    assert needed.argument_size_in_bytes == needed.output_size_in_bytes == 2**46


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "peak-memory-leaves-temporaries-out",
    "On a CPU the `peak_memory_in_bytes` of `memory_analysis` is smaller than the temporary arrays it lists.",
)
def test_peak_memory_leaves_temporaries_out():
    needed = analysis(lambda x: jnp.exp(-((x[:, None] - x[None, :]) ** 2)) @ x, floats(1000))
    assert needed.peak_memory_in_bytes < needed.temp_size_in_bytes


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "fused-table-needs-no-memory",
    "A table of n² numbers that is summed at once need not be stored: the program takes less temporary "
    "memory than the table.",
)
def test_fused_table_needs_no_memory():
    needed = analysis(lambda x: jnp.exp(-((x[:, None] - x[None, :]) ** 2)).sum(axis=1), floats(1000))
    assert needed.temp_size_in_bytes < 4 * 1000**2 / 10


@pytest.mark.claim(
    "donation-shows-in-the-memory-analysis",
    "The bytes of results that lie in donated arguments are `alias_size_in_bytes`, which is 0 without "
    "donation.",
)
def test_donation_shows_in_the_memory_analysis():
    assert analysis(wave, floats(1000), donate_argnums=0).alias_size_in_bytes == 4000
    assert analysis(wave, floats(1000)).alias_size_in_bytes == 0


@pytest.mark.claim(
    "reducing-stacked-results-does-not-save-memory",
    "The stacked results of a `scan` are stored in full even if the program uses their maximum alone.",
)
def test_reducing_stacked_results_does_not_save_memory():
    def largest(x):
        return jax.lax.scan(lambda c, _: (wave(c), c), x, None, length=100)[1].max(axis=0)

    assert analysis(largest, floats(1000)).temp_size_in_bytes >= 100 * 4000


@pytest.mark.wrong_twin("reducing-stacked-results-does-not-save-memory")
def test_wrong_twin_carry_stores_all_steps():
    def largest(x):
        step = lambda c, _: ((wave(c[0]), jnp.maximum(*c)), None)  # noqa: E731 -- short
        return jax.lax.scan(step, (x, x), None, length=100)[0][1]

    assert analysis(largest, floats(1000)).temp_size_in_bytes >= 100 * 4000


@pytest.mark.claim(
    "checkpoint-saves-memory-in-a-scan",
    "With `jax.checkpoint` around the body of a `scan`, its gradient needs less temporary memory.",
)
def test_checkpoint_saves_memory_in_a_scan():
    def gradient(body):
        return jax.grad(lambda x: jax.lax.scan(lambda c, _: (body(c), None), x, None, length=100)[0].sum())

    plain, saving = (
        analysis(gradient(b), floats(1000)).temp_size_in_bytes for b in (wave, jax.checkpoint(wave))
    )
    assert saving < plain / 2


@pytest.mark.claim(
    "live-arrays-lists-what-is-held",
    "`jax.live_arrays()` lists an array that the program still holds, and not one that it dropped.",
)
def test_live_arrays_lists_what_is_held():
    def has_it():
        return any(x.shape == (12345,) for x in jax.live_arrays())

    held = jnp.ones(12345)
    assert has_it()
    del held
    assert not has_it()


# Captured constants -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def captured_constants(warn_bytes, report_frames=0):
    """Set the limit and the number of frames of the report on captured constants."""
    wanted = {
        "jax_captured_constants_warn_bytes": warn_bytes,
        "jax_captured_constants_report_frames": report_frames,
    }
    before = {name: getattr(jax.config, name) for name in wanted}
    for name, value in wanted.items():
        jax.config.update(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


def table_of(length):
    return jnp.arange(float(length))


@pytest.mark.claim(
    "captured-constants-report-names-the-line",
    "Above the limit JAX warns of captured constants, and with a positive number of frames the report names shape "
    "and line of each.",
)
def test_captured_constants_report_names_the_line():
    table = table_of(1000)
    with captured_constants(2000, 5), pytest.warns(UserWarning, match="constants were captured") as caught:
        jax.jit(lambda x: x * table.sum()).lower(1.0)
    assert "float32[1000]" in str(caught[0].message)
    assert "test_howto_memory.py" in str(caught[0].message)


@pytest.mark.claim(
    "captured-constants-limit-is-two-billion-bytes",
    "The limit above which captured constants warn is 2,000,000,000 bytes by default; -1 switches the warning off.",
)
def test_captured_constants_limit_is_two_billion_bytes(recwarn):
    assert jax.config.jax_captured_constants_warn_bytes == 2_000_000_000
    table = table_of(1000)
    with captured_constants(-1):
        jax.jit(lambda x: x * table.sum()).lower(1.0)
    assert not [w for w in recwarn if "captured" in str(w.message)]


@pytest.mark.claim(
    "captured-constants-report-breaks-with-minus-one",
    "With -1 frames, which the warning recommends, the report on captured constants ends in an exception.",
)
def test_captured_constants_report_breaks_with_minus_one():
    table = table_of(1000)
    with captured_constants(2000, -1), pytest.warns(UserWarning, match="constants were captured") as caught:
        jax.jit(lambda x: x * table.sum()).lower(1.0)
    assert "Exception raised while generating report" in str(caught[0].message)


@pytest.mark.claim(
    "captured-constants-warning-can-be-an-error",
    "Where warnings are errors, the one of captured constants stops the lowering.",
)
def test_captured_constants_warning_can_be_an_error():
    table = table_of(1000)
    with captured_constants(2000), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="constants were captured"):
            jax.jit(lambda x: x * table.sum()).lower(1.0)


@pytest.mark.claim(
    "bound-arrays-are-captured-too",
    "An array in `self` of a bound method, in a `functools.partial`, in a default value, or made by NumPy in the "
    "body is a constant of the program; one made by `jnp` in the body is not.",
)
def test_bound_arrays_are_captured_too():
    table = table_of(1000)

    def product(x, table=table):
        return (x * table).sum()

    class Model:
        weights = table

        def predict(self, x):
            return (x * self.weights).sum()

    def text_of(f):
        return len(jax.jit(f).lower(1.0).as_text())

    inside = [lambda x: (x * np.arange(1000)).sum(), product, functools.partial(product, table=table)]
    assert min(text_of(f) for f in [*inside, Model().predict]) > 8000
    assert text_of(lambda x: (x * jnp.arange(1000)).sum()) < 2000


@pytest.mark.claim(
    "inner-constants-show-in-the-text-only",
    "An array that an inner jitted function captured is in the lowered text of the outer one, and not among the "
    "constants of its jaxpr.",
)
def test_inner_constants_show_in_the_text_only():
    table = table_of(1000)
    inner = jax.jit(lambda x: x * table.sum())
    traced = jax.jit(lambda x: inner(x)).trace(1.0)
    assert len(traced.jaxpr.consts) == 0
    assert len(traced.lower().as_text()) > 8000


@pytest.mark.claim(
    "captured-array-doubles-in-the-text",
    "The lowered text of a function holds two characters for each byte of a `float32` array of different numbers that it "
    "captured; of zeros or ones, however many, it holds a few characters.",
)
def test_captured_array_doubles_in_the_text():
    def length(size):
        table = table_of(size)
        return len(jax.jit(lambda x: x * table.sum()).lower(1.0).as_text())

    assert length(20_000) - length(10_000) == pytest.approx(2 * 4 * 10_000, abs=100)
    for uniform in (jnp.zeros(1_000_000), jnp.ones(1_000_000), jnp.full(1_000_000, 7, jnp.int8)):
        assert len(jax.jit(lambda x, u=uniform: x * u).lower(1.0).as_text()) < 1000


@pytest.mark.wrong_twin("captured-array-doubles-in-the-text")
def test_wrong_twin_passed_array_doubles_in_the_text():
    def length(size):
        return len(jax.jit(lambda x, table: x * table.sum()).lower(1.0, table_of(size)).as_text())

    assert length(20_000) - length(10_000) == pytest.approx(2 * 4 * 10_000, abs=100)


@pytest.mark.claim(
    "memory-analysis-overlooks-constants",
    "`memory_analysis` does not count captured arrays: arguments, results and temporary memory are those without.",
)
def test_memory_analysis_overlooks_constants():
    table = table_of(10_000)
    needed = analysis(lambda x: x * table, floats(10_000))
    parts = (needed.argument_size_in_bytes, needed.output_size_in_bytes, needed.temp_size_in_bytes)
    assert sum(parts) == 2 * table.nbytes


@pytest.mark.claim(
    "barrier-stops-constant-folding",
    "A sort of a captured array is done by the compiler; behind `jax.lax.optimization_barrier`, or with the array "
    "as an argument, it is in the program.",
)
def test_barrier_stops_constant_folding():
    table = jnp.asarray(np.random.default_rng(0).normal(size=50), jnp.float32)

    def sorts(f, *args):
        return " sort(" in jax.jit(f).lower(*args).compile().as_text()

    assert not sorts(lambda x: x * jnp.sort(table), 1.0)
    assert sorts(lambda x: x * jnp.sort(jax.lax.optimization_barrier(table)), 1.0)
    assert sorts(lambda x, table: x * jnp.sort(table), 1.0, table)


# Ahead of time ----------------------------------------------------------------------------------------------


def score(w, x):
    return jnp.tanh(x @ w).sum(axis=-1)


def open_export():
    (b,) = export.symbolic_shape("b")
    return export.export(jax.jit(score))(floats(3, 2), floats(b, 3))


@pytest.mark.claim(
    "compiled-takes-numpy-arrays",
    "A compiled function takes NumPy arrays, `float64` for `float32` included, and Python numbers for its types.",
)
def test_compiled_takes_numpy_arrays():
    compiled = jax.jit(lambda x, n: x * n).lower(floats(3), floats()).compile()
    assert compiled(np.ones(3, np.float64), 2.0).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.claim(
    "compiled-keeps-the-spelling",
    "A compiled function takes by position what was lowered by position, and by keyword what was lowered so.",
)
def test_compiled_keeps_the_spelling():
    f = jax.jit(lambda x: x * 2)
    x = jnp.ones(3)
    f.lower(x).compile()(x)
    f.lower(x=x).compile()(x=x)
    with pytest.raises(TypeError, match="input pytree"):
        f.lower(x).compile()(x=x)
    with pytest.raises(TypeError, match="input pytree"):
        f.lower(x=x).compile()(x)


@pytest.mark.wrong_twin("compiled-keeps-the-spelling", raises=TypeError)
def test_wrong_twin_compiled_takes_any_spelling():
    x = jnp.ones(3)
    jax.jit(lambda x: x * 2).lower(x).compile()(x=x)


@pytest.mark.claim(
    "sharding-of-a-shape-makes-it-committed",
    "A program lowered for a `ShapeDtypeStruct` serves uncommitted arrays; with `sharding=` it serves those that "
    "are committed there.",
)
@pytest.mark.parametrize("committed", [False, True])
def test_sharding_of_a_shape_makes_it_committed(counted, committed):
    device = jax.devices()[0]
    f = jax.jit(lambda x: jnp.tanh(x) * 2)
    sharding = jax.sharding.SingleDeviceSharding(device) if committed else None
    f.lower(jax.ShapeDtypeStruct((3,), jnp.float32, sharding=sharding)).compile()
    free, there = jnp.ones(3), jax.device_put(jnp.ones(3), device)
    counted()
    f(there if committed else free)
    assert counted()["compiles"] == 0
    f(free if committed else there)
    assert counted()["compiles"] == 1


@pytest.mark.claim(
    "symbolic-export-compiles-each-size",
    "A program exported with a symbolic length is compiled for each length that it is called with, once.",
)
def test_symbolic_export_compiles_each_size(counted):
    run = jax.jit(open_export().call)
    inputs = [(jnp.ones((3, 2)), jnp.ones((n, 3))) for n in (2, 5, 5, 2)]
    compiles = []
    for args in inputs:
        counted()
        run(*args)
        compiles.append(counted()["compiles"])
    assert compiles == [1, 1, 0, 0]


@pytest.mark.claim(
    "open-length-cannot-decide-a-branch",
    "A Python `if` on a symbolic length compared by `<` or `>` raises `InconclusiveDimensionOperation`, unless a "
    "constraint decides it, or that a length is at least 1.",
)
def test_open_length_cannot_decide_a_branch():
    f = jax.jit(lambda x: x if x.shape[0] > 5 else -x)
    with pytest.raises(Exception, match="inconclusive") as caught:
        export.export(f)(floats(*export.symbolic_shape("n")))
    assert type(caught.value).__name__ == "InconclusiveDimensionOperation"
    export.export(f)(floats(*export.symbolic_shape("n", constraints=["n >= 6"])))
    export.export(jax.jit(lambda x: x if x.shape[0] > 0 else -x))(floats(*export.symbolic_shape("n")))


@pytest.mark.claim(
    "exported-program-has-no-vmap",
    "`vmap` of an exported program raises `NotImplementedError`; `jax.lax.map` works.",
)
def test_exported_program_has_no_vmap():
    call = open_export().call
    w, batches = jnp.ones((3, 2)), jnp.ones((4, 5, 3))
    with pytest.raises(NotImplementedError, match="call_exported"):
        jax.vmap(call, in_axes=(None, 0))(w, batches)
    assert jax.lax.map(lambda x: call(w, x), batches).shape == (4, 5)


@pytest.mark.claim(
    "exported-program-keeps-its-derivative",
    "`grad` of an exported matrix product with an open batch size works in the process that exported it.",
)
def test_exported_program_keeps_its_derivative():
    call = open_export().call
    w, x = jnp.ones((3, 2)), jnp.ones((5, 3)) / 10
    wanted = jax.grad(lambda w: score(w, x).sum())(w)
    np.testing.assert_allclose(jax.grad(lambda w: call(w, x).sum())(w), wanted, rtol=1e-5)


@pytest.mark.claim(
    "serialize-needs-flatbuffers",
    "Without the package `flatbuffers`, `serialize()` of an export raises `ImportError`, and its StableHLO text can "
    "be had.",
)
def test_serialize_needs_flatbuffers():
    if importlib.util.find_spec("flatbuffers"):
        pytest.skip("not applicable: flatbuffers is installed")
    with pytest.raises(ImportError, match="flatbuffers"):
        open_export().serialize()
    assert "stablehlo" in open_export().mlir_module()


@pytest.mark.claim(
    "saved-executable-runs-in-another-process",
    "What `serialize_executable.serialize` gives can be pickled; a different process with one device loads it and "
    "runs it without the function, and it refuses other shapes.",
)
def test_saved_executable_runs_in_another_process(tmp_path):
    compiled = jax.jit(score).lower(floats(3, 2), floats(5, 3)).compile()
    (tmp_path / "score.bin").write_bytes(pickle.dumps(serialize_executable.serialize(compiled)))
    (tmp_path / "load.py").write_text(
        "import pickle, pathlib, jax.numpy as jnp\n"
        "from jax.experimental.serialize_executable import deserialize_and_load\n"
        "run = deserialize_and_load(*pickle.loads(pathlib.Path('score.bin').read_bytes()))\n"
        "print(run(jnp.zeros((3, 2)), jnp.ones((5, 3))).tolist())\n"
        "try:\n"
        "    run(jnp.zeros((3, 2)), jnp.ones((6, 3)))\n"
        "except TypeError:\n"
        "    print('refused')\n"
    )
    one_device = {**os.environ, "XLA_FLAGS": "", "JAX_NUM_CPU_DEVICES": "1"}
    done = subprocess.run(
        [sys.executable, "load.py"], cwd=tmp_path, capture_output=True, text=True, check=True, env=one_device
    )
    assert done.stdout.splitlines() == ["[0.0, 0.0, 0.0, 0.0, 0.0]", "refused"]


@pytest.mark.platform("cpu")  # the only one whose number of devices can be chosen
@pytest.mark.claim(
    "saved-executable-is-loaded-for-all-devices",
    "An executable for one device, loaded by `deserialize_and_load` in a process with two, cannot be called "
    "unless `execution_devices` names one.",
)
def test_saved_executable_is_loaded_for_all_devices(tmp_path):
    compiled = jax.jit(score).lower(floats(3, 2), floats(5, 3)).compile()
    (tmp_path / "score.bin").write_bytes(pickle.dumps(serialize_executable.serialize(compiled)))
    (tmp_path / "load.py").write_text(
        "import pickle, pathlib, jax, jax.numpy as jnp\n"
        "from jax.experimental.serialize_executable import deserialize_and_load\n"
        "for options in ({}, {'execution_devices': jax.devices()[:1]}):\n"
        "    saved = pickle.loads(pathlib.Path('score.bin').read_bytes())\n"
        "    try:\n"
        "        print(deserialize_and_load(*saved, **options)(jnp.zeros((3, 2)), jnp.ones((5, 3))).shape)\n"
        "    except ValueError as error:\n"
        "        print('refused')\n"
        "    except jax.errors.JaxRuntimeError as error:\n"
        "        print('refused')\n"
    )
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run(
        [sys.executable, "load.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout.splitlines() == ["refused", "(5,)"]


# Callbacks --------------------------------------------------------------------------------------------------


@pytest.fixture
def quiet():
    """Keep out of the log what JAX says of errors in callbacks."""
    logger = logging.getLogger("jax")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


class Host:
    """A Python function that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return 2 * np.asarray(x)


def calls_of(program, host):
    """Return how often one call of the jitted program calls the host."""
    jax.block_until_ready(jax.jit(program)(jnp.ones(3)))
    jax.effects_barrier()
    return host.calls


@pytest.mark.claim(
    "pure-callback-runs-numpy-on-values",
    "`jax.pure_callback` runs a Python function inside a jitted one at each call, with values, where "
    "calling the function directly raises.",
)
def test_pure_callback_runs_numpy_on_values():
    def host(x):
        return np.float32(sorted([float(x), 0.0])[1])

    f = jax.jit(lambda x: jax.pure_callback(host, NUMBER, x))
    assert [float(f(v)) for v in (-1.0, 2.0, 3.0)] == [0.0, 2.0, 3.0]
    with pytest.raises(TypeError):
        jax.jit(host)(1.0)


@pytest.mark.claim(
    "callback-gets-jax-arrays",
    "What a `jax.pure_callback` hands to its Python function are JAX arrays, so their operators are work for JAX.",
)
def test_callback_gets_jax_arrays():
    seen = []

    def host(x):
        seen.extend(
            [isinstance(x, jax.Array), isinstance(x + 1, jax.Array), isinstance(np.asarray(x), jax.Array)]
        )
        return np.float32(0)

    jax.jit(lambda x: jax.pure_callback(host, NUMBER, x))(1.0).block_until_ready()
    assert seen == [True, True, False]


@pytest.mark.claim(
    "unused-pure-callback-is-dropped",
    "A `pure_callback` whose result is not used is not called; an `io_callback` or `debug.callback` is.",
)
def test_unused_pure_callback_is_dropped():
    pure, io, debug = Host(), Host(), Host()
    assert calls_of(lambda x: (jax.pure_callback(pure, THREE, x), x)[1], pure) == 0
    assert calls_of(lambda x: (io_callback(io, THREE, x), x)[1], io) == 1
    assert calls_of(lambda x: (jax.debug.callback(debug, x), x)[1], debug) == 1


@pytest.mark.wrong_twin("unused-pure-callback-is-dropped")
def test_wrong_twin_unused_pure_callback_is_called():
    host = Host()
    assert calls_of(lambda x: (jax.pure_callback(host, THREE, x), x)[1], host) == 1


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "pure-callback-may-be-called-less-often",
    "On a CPU, a `pure_callback` in a loop that gives it the same argument each time may be called less often than "
    "the loop runs.",
)
def test_pure_callback_may_be_called_less_often():
    host = Host()
    calls = calls_of(
        lambda x: jax.lax.fori_loop(0, 3, lambda _, s: s + jax.pure_callback(host, THREE, x), x), host
    )
    assert calls < 3


@pytest.mark.claim(
    "io-callback-runs-as-written",
    "An `io_callback` in a loop is called in each step, also if its argument stays the same.",
)
def test_io_callback_runs_as_written():
    host = Host()
    loop = lambda x: jax.lax.fori_loop(0, 3, lambda _, s: s + io_callback(host, THREE, x), x)  # noqa: E731 -- short
    assert calls_of(loop, host) == 3


@pytest.mark.claim(
    "io-callback-in-a-loop-is-lost-under-grad",
    "Under `grad`, an `io_callback` in the body of a `scan` or `fori_loop` whose argument is the number of the step "
    "is not called, also with `ordered=True`; a `jax.debug.callback` is.",
)
@pytest.mark.parametrize("kind", ["scan", "fori_loop"])
@pytest.mark.parametrize("ordered", [False, True])
def test_io_callback_in_a_loop_is_lost_under_grad(kind, ordered):
    seen = []

    def run(transform, report):
        def body(step, value):
            report(lambda i: seen.append(int(i)), step)
            return 2 * value

        def loop(x):
            if kind == "fori_loop":
                return jax.lax.fori_loop(0, 3, body, x)
            return jax.lax.scan(lambda value, step: (body(step, value), None), x, jnp.arange(3))[0]

        seen.clear()
        jax.block_until_ready(jax.jit(transform(loop))(1.0))
        jax.effects_barrier()
        return len(seen)

    def by_io(function, step):
        io_callback(function, None, step, ordered=ordered)

    def by_debug(function, step):
        jax.debug.callback(function, step, ordered=ordered)

    assert run(lambda f: f, by_io) == 3
    assert run(jax.grad, by_io) == 0
    assert run(jax.grad, by_debug) == 3


@pytest.mark.claim(
    "debug-callback-of-a-constant-runs-once-under-grad",
    "A `jax.debug.callback` in the body of a `scan` whose argument is the same in each step is called once under "
    "`grad`; without `grad` it is called in each step.",
)
def test_debug_callback_of_a_constant_runs_once_under_grad():
    seen = []

    def loop(x):
        def body(value, _):
            jax.debug.callback(lambda v: seen.append(float(v)), 1.0)
            return 2 * value, None

        return jax.lax.scan(body, x, length=3)[0]

    for function, times in ((loop, 3), (jax.grad(loop), 1)):
        seen.clear()
        jax.block_until_ready(jax.jit(function)(1.0))
        jax.effects_barrier()
        assert len(seen) == times


@pytest.mark.claim(
    "io-callback-is-refused-in-a-cond-under-vmap",
    "`vmap` of a `cond` refuses an `io_callback` in a branch, also if the condition is the same for the elements.",
)
@pytest.mark.parametrize("axis", [0, None])
def test_io_callback_is_refused_in_a_cond_under_vmap(axis):
    def report(x, flag):
        jax.lax.cond(flag > 0, lambda: io_callback(lambda v: None, None, x), lambda: None)

    flag = jnp.arange(3) if axis == 0 else jnp.array(1)
    with pytest.raises(NotImplementedError, match="IO effect not supported in vmap-of-cond"):
        jax.vmap(report, in_axes=(0, axis))(jnp.arange(3), flag)


@pytest.mark.claim(
    "ordered-io-callbacks-keep-their-order",
    "`io_callback` with `ordered=True` is called in the order of the program.",
)
def test_ordered_io_callbacks_keep_their_order():
    seen = []

    @jax.jit
    def f(x):
        for i in range(20):
            io_callback(lambda v: seen.append(int(v)), None, x + i, ordered=True)
        return x

    f(jnp.int32(0))
    jax.effects_barrier()
    assert seen == list(range(20))


@pytest.mark.claim(
    "callback-must-keep-its-promise",
    "A callback that returns another shape or dtype than declared fails while running; NumPy's 64-bit types are "
    "converted first.",
)
def test_callback_must_keep_its_promise(quiet):
    def run(result):
        return jax.jit(lambda x: jax.pure_callback(lambda _: result, THREE, x))(
            jnp.ones(3)
        ).block_until_ready()

    with pytest.raises(jax.errors.JaxRuntimeError, match="Incorrect output shape"):
        run(np.ones(2, np.float32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="Incorrect output dtype"):
        run(np.ones(3, np.int32))
    assert run(np.ones(3, np.float64)).dtype == np.float32


@pytest.mark.claim(
    "vmap-of-a-callback-needs-a-method",
    "`vmap` of a `pure_callback` without `vmap_method` raises `NotImplementedError`.",
)
def test_vmap_of_a_callback_needs_a_method():
    f = jax.vmap(lambda x: jax.pure_callback(np.cumsum, THREE, x))
    with pytest.raises(NotImplementedError, match="vmap_method"):
        f(jnp.ones((2, 3)))


@pytest.mark.claim(
    "vmap-method-decides-what-the-function-gets",
    "Under `vmap` a callback with `vmap_method='sequential'` is called for each element; with `expand_dims` and "
    "`broadcast_all` it is called once for the batch, which what is not batched joins with length 1 or in full.",
)
@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((3,), (3,)), ((3,), (3,))]),
        ("expand_dims", [((2, 3), (1, 3))]),
        ("broadcast_all", [((2, 3), (2, 3))]),
    ],
)
def test_vmap_method_decides_what_the_function_gets(method, shapes):
    if "vmap_method" not in inspect.signature(jax.pure_callback).parameters:
        pytest.skip("not applicable: pure_callback has no vmap_method in this JAX")
    seen = []

    def host(a, b):
        seen.append((a.shape, b.shape))
        return np.asarray(a) + np.asarray(b)

    f = jax.vmap(lambda a, b: jax.pure_callback(host, THREE, a, b, vmap_method=method), in_axes=(0, None))
    assert f(jnp.ones((2, 3)), jnp.ones(3)).tolist() == [[2.0] * 3] * 2
    assert seen == shapes


@pytest.mark.claim(
    "vectorized-argument-is-gone",
    "The argument `vectorized` of `pure_callback` is gone: it is passed on to the Python function.",
)
def test_vectorized_argument_is_gone():
    seen = []

    def host(x, **options):
        seen.append(options)
        return np.asarray(x)

    jax.jit(lambda x: jax.pure_callback(host, THREE, x, vectorized=True))(jnp.ones(3)).block_until_ready()
    assert [list(options) for options in seen] == [["vectorized"]]


@pytest.mark.claim(
    "callback-has-no-derivative",
    "`grad` of a `pure_callback` or an `io_callback` raises `ValueError`; `jax.custom_jvp` around it gives it one.",
)
def test_callback_has_no_derivative():
    def square(x):
        return jax.pure_callback(lambda x: np.asarray(x) ** 2, NUMBER, x)

    with pytest.raises(ValueError, match="do not support JVP"):
        jax.grad(square)(3.0)
    with pytest.raises(ValueError, match="do not support JVP"):
        jax.grad(lambda x: io_callback(lambda x: np.asarray(x) ** 2, NUMBER, x))(3.0)
    with_rule = jax.custom_jvp(square)
    with_rule.defjvp(lambda primals, tangents: (square(*primals), 2 * primals[0] * tangents[0]))
    assert float(jax.jit(jax.grad(with_rule))(3.0)) == 6.0


@pytest.mark.claim(
    "callback-error-has-no-cause",
    "The `JaxRuntimeError` of a failed callback does not hold the exception that Python raised.",
)
def test_callback_error_has_no_cause(quiet):
    def refuse(_):
        raise ArithmeticError("mine")

    with pytest.raises(jax.errors.JaxRuntimeError, match="ArithmeticError: mine") as caught:
        jax.jit(lambda x: jax.pure_callback(refuse, NUMBER, x))(1.0).block_until_ready()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.measured("whether the call returns before its input is computed")
@pytest.mark.claim(
    "callback-error-may-come-at-the-wait",
    "A call whose input is still being computed returns before its callback has failed: the error is raised by "
    "`block_until_ready`.",
)
def test_callback_error_may_come_at_the_wait(quiet):
    returned = threading.Event()

    def refuse(_):
        returned.wait(0.5)
        raise ArithmeticError("mine")

    slow = jax.jit(lambda a: jax.lax.fori_loop(0, 10, lambda _, b: b @ a / 600, a)[0, 0])
    fails = jax.jit(lambda x: jax.pure_callback(refuse, NUMBER, x))
    fails.lower(NUMBER).compile()
    a = jnp.ones((600, 600))
    slow(a).block_until_ready()

    def error_comes():
        returned.clear()
        try:
            result = fails(slow(a))
        except RuntimeError:
            return "at the call"
        finally:
            returned.set()
        with pytest.raises(Exception, match="mine"):
            result.block_until_ready()
        return "at the wait"

    # A race with the matrix products. Where the call itself waits, `refuse` gives up after half a second.
    assert "at the wait" in (error_comes() for _ in range(5))
    jax.jit(lambda x: jax.debug.callback(lambda _: None, x))(
        1.0
    )  # or the error shows once more as Python ends
