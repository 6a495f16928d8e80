"""Devices, threads and processes in practice."""

import functools
import json
import os
import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

COMMON = """
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

devices, facts = jax.devices(), {}
mesh = Mesh(np.array(devices), ("i",))
split = NamedSharding(mesh, P("i"))
eight, nine, ten = jnp.arange(8.0), jnp.arange(9.0), jnp.arange(10.0)


def message(call):
    try:
        return str(call())
    except AttributeError:  # this JAX lacks what the experiment needs
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def ids(array):
    return sorted(d.id for d in array.devices())


"""

PLACEMENT = """
facts["put"] = message(lambda: jax.device_put(ten, split))
facts["in"] = message(lambda: jax.jit(lambda x: x, in_shardings=split)(ten))
facts["out"] = message(lambda: jax.jit(lambda x: x, out_shardings=split)(ten))
grid = Mesh(np.array(devices).reshape(2, 2), ("i", "j"))
facts["one_axis"] = message(lambda: jax.device_put(ten, NamedSharding(grid, P("i"))).addressable_shards[0].data.shape)
facts["both_axes"] = message(lambda: jax.device_put(ten, NamedSharding(grid, P(("i", "j")))))
kept = jax.jit(lambda x: jax.lax.with_sharding_constraint(2 * x, split))
facts["constraint"] = [sorted({s.data.shape for s in kept(x).addressable_shards}) for x in (eight, nine)]

table = jax.jit(lambda: jnp.arange(4.0))
facts["none"] = [ids(table())]
with jax.default_device(devices[2]):
    facts["none"].append(ids(table()))
facts["none_out"] = ids(jax.jit(lambda: jnp.arange(4.0), out_shardings=SingleDeviceSharding(devices[3]))())
like = jax.device_put(0.0, devices[1])
facts["unused"] = ids(jax.jit(lambda like: jnp.arange(4.0))(like))
facts["kept_unused"] = ids(jax.jit(lambda like: jnp.arange(4.0), keep_unused=True)(like))
"""

EXPLICIT = """
from jax.sharding import AxisType

explicit = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Explicit,))
typed = jax.device_put(eight, NamedSharding(explicit, P("i")))
facts["type"] = str(jax.typeof(typed))


def sums(start):
    return jax.jit(lambda xs: jax.lax.scan(lambda c, k: (c + k * xs, None), start(), jnp.arange(3.0))[0])


with jax.set_mesh(explicit):
    facts["carry"] = message(lambda: sums(lambda: jnp.zeros(8))(typed).tolist())
    facts["carry_placed"] = message(lambda: sums(lambda: jnp.zeros(8, out_sharding=P("i")))(typed).tolist())
facts["slice"] = message(lambda: jax.jit(lambda x: x[:5])(typed))
facts["slice_auto"] = message(lambda: jax.jit(lambda x: x[:5])(jax.device_put(eight, split)).tolist())
"""

MAPPED = """
def totals(xs, start):
    return jax.lax.scan(lambda c, k: (c + k * xs.sum(), None), start, jnp.arange(3.0))[0][None]


def mapped(body):
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i")))


facts["varying"] = message(lambda: mapped(lambda xs: totals(xs, 0.0))(eight).tolist())
facts["cast"] = message(
    lambda: mapped(lambda xs: totals(xs, jax.lax.pcast(0.0, "i", to="varying")))(eight).tolist()
)
"""

PARALLEL = """
from functools import partial

shard_map = jax.shard_map if hasattr(jax, "shard_map") else jax.experimental.shard_map.shard_map
mapped = partial(shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
facts["mapped_in_jit"] = message(lambda: jax.jit(mapped(lambda xs: 2 * xs))(eight).tolist())
facts["pmap_in_jit"] = message(lambda: jax.jit(jax.pmap(lambda x: 2 * x))(jnp.arange(4.0)).tolist())
traces = []
plus = jax.jit(lambda x: traces.append(1) or x + 1)
for array in (jax.device_put(jnp.arange(4.0), split), jax.pmap(lambda x: 2 * x)(jnp.arange(4.0))):
    plus(array)
facts["after_pmap"] = len(traces)
facts["pmap_too_many"] = message(lambda: jax.pmap(lambda x: 2 * x)(jnp.arange(5.0)))
"""

COUNT = """
import jax

jax.config.update("jax_num_cpu_devices", 4)
print(len(jax.devices()))
try:
    jax.config.update("jax_num_cpu_devices", 2)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""

ONE_OF_TWO = """
import sys
import jax

jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]), initialization_timeout=60)
print(jax.device_count(), jax.local_device_count(), flush=True)
jax.distributed.shutdown()
"""


def environment(**settings):
    return {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | {"JAX_PLATFORMS": "cpu"} | settings


@pytest.fixture(scope="module")
def facts_of(child):
    """Return a function that runs a script with four devices, once, and returns the facts it gathered."""
    return functools.cache(
        lambda script: json.loads(
            child(COMMON + script + "print(json.dumps(facts))", devices=4).splitlines()[-1]
        )
    )


@pytest.fixture
def placement(facts_of):
    return facts_of(PLACEMENT)


@pytest.fixture
def explicit(facts_of):
    return facts_of(EXPLICIT)


@pytest.fixture
def mapped(facts_of):
    return facts_of(MAPPED)


@pytest.fixture
def parallel(facts_of):
    return facts_of(PARALLEL)


@pytest.mark.claim(
    "number-of-cpu-devices-is-set-before-the-start",
    "`jax_num_cpu_devices` makes several devices of the processor; set after JAX has started, it raises "
    "`RuntimeError`.",
)
def test_number_of_cpu_devices_is_set_before_the_start(child):
    count, late = child(COUNT).splitlines()
    assert count == "4"
    assert late.startswith("RuntimeError: jax_num_cpu_devices")


@pytest.mark.claim(
    "uneven-split-is-refused",
    "A dimension whose size is not a multiple of the mesh axes it is split over is refused: `device_put`, "
    "`in_shardings` and `out_shardings` raise.",
)
def test_uneven_split_is_refused(placement):
    for place in ("put", "in", "out", "both_axes"):
        assert "Error: " in placement[place]
        assert re.search(
            r"partitioned 4 times, but the dimension size is 10|divisible by 4", placement[place]
        )
    assert placement["one_axis"] == "(5,)"  # ten entries on the axis of two, on a mesh of four devices


@pytest.mark.wrong_twin("uneven-split-is-refused")
def test_wrong_twin_uneven_split_is_padded(placement):
    assert "Error" not in placement["put"]


@pytest.mark.claim(
    "uneven-constraint-replicates-silently",
    "Nine entries under a `with_sharding_constraint` over four devices do not raise: each device gets the "
    "nine.",
)
def test_uneven_constraint_replicates_silently(placement):
    assert placement["constraint"] == [[[2]], [[9]]]


@pytest.mark.claim(
    "explicit-mesh-refuses-an-uneven-intermediate",
    "On a mesh with explicit axes the split is part of the type, and an intermediate result that cannot be "
    "split evenly raises; with automatic axes it does not.",
)
def test_explicit_mesh_refuses_an_uneven_intermediate(explicit):
    assert explicit["type"] == "float32[8@i]"
    assert re.match(r"\w+Error: ", explicit["slice"])
    assert explicit["slice_auto"] == "[0.0, 1.0, 2.0, 3.0, 4.0]"


@pytest.mark.claim(
    "function-without-inputs-runs-on-the-default-device",
    "A jitted function without arguments runs on the default device, which `jax.default_device` changes; "
    "`out_shardings` names another one.",
)
def test_function_without_inputs_runs_on_the_default_device(placement):
    assert placement["none"] == [[0], [2]]
    assert placement["none_out"] == [3]


@pytest.mark.claim(
    "unused-argument-does-not-choose-the-device",
    "A committed argument that the function does not use is dropped and does not decide where it runs, "
    "unless `keep_unused=True`.",
)
def test_unused_argument_does_not_choose_the_device(placement):
    assert placement["unused"] == [0]
    assert placement["kept_unused"] == [1]


@pytest.mark.claim(
    "carry-must-keep-its-split",
    "On a mesh with explicit axes, a carry that starts whole and becomes split raises `TypeError`; started "
    "with the same split, it works.",
)
def test_carry_must_keep_its_split(explicit):
    assert explicit["carry"].startswith(
        "TypeError: scan body function carry input and carry output must have"
    )
    assert (
        "float32[8] but the corresponding output carry component has type float32[8@i]" in explicit["carry"]
    )
    assert explicit["carry_placed"] == "[0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0]"


@pytest.mark.claim(
    "carry-in-shard-map-must-vary",
    "In `shard_map`, a carry that starts equal on the devices and then differs raises `TypeError`, which "
    "names the fix: `jax.lax.pcast(start, 'i', to='varying')`.",
)
def test_carry_in_shard_map_must_vary(mapped):
    assert mapped["varying"].startswith(
        "TypeError: scan body function carry input and carry output must have"
    )
    assert "pcast(..., ('i',), to='varying')" in mapped["varying"]
    assert mapped["cast"] == "[3.0, 15.0, 27.0, 39.0]"


@pytest.mark.claim(
    "pmap-and-shard-map-work-inside-jit",
    "`shard_map` and, without a warning, `pmap` can be called inside a jitted function.",
)
def test_pmap_and_shard_map_work_inside_jit(parallel):
    assert parallel["mapped_in_jit"] == "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]"
    assert parallel["pmap_in_jit"] == "[0.0, 2.0, 4.0, 6.0]"
    assert "Error: " in parallel["pmap_too_many"]


@pytest.mark.claim(
    "pmap-results-lie-on-a-mesh-of-their-own",
    "A result of `pmap` lies on a mesh of its own: a jitted function that knew the same split on your mesh "
    "traces again.",
)
def test_pmap_results_lie_on_a_mesh_of_their_own(parallel):
    assert parallel["after_pmap"] == 2


@pytest.mark.claim(
    "jax-platforms-decides-for-the-process",
    "`JAX_PLATFORMS` in the environment says which platforms a process uses: with `cpu` it sees the CPU, "
    "and an unknown name is an error at the first use.",
)
def test_jax_platforms_decides_for_the_process():
    code = "import jax; print({d.platform for d in jax.devices()})"
    for platform, answer in {"cpu": "{'cpu'}", "abacus": "Unable to initialize backend 'abacus'"}.items():
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment(JAX_PLATFORMS=platform),
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer in done.stdout + done.stderr


@pytest.mark.claim(
    "a-process-sees-the-devices-of-all",
    "After `jax.distributed.initialize`, `jax.devices()` lists the devices of both processes, and "
    "`jax.local_devices()` those of one.",
)
def test_a_process_sees_the_devices_of_all():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [sys.executable, "-c", ONE_OF_TWO, address]
    settings = environment(JAX_NUM_CPU_DEVICES="1")
    children = [
        subprocess.Popen([*command, number], env=settings, stdout=subprocess.PIPE, text=True)
        for number in "01"
    ]
    try:
        outputs = [child.communicate(timeout=100)[0] for child in children]
    finally:
        for child in children:
            child.kill()
    assert [output.split()[:2] for output in outputs] == [["2", "1"], ["2", "1"]]


def in_a_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


@pytest.mark.claim(
    "concurrent-first-calls-share-one-trace",
    "Six threads that made the first call of one jitted function at the same time traced and compiled it once.",
)
def test_concurrent_first_calls_share_one_trace():
    runs, compiled, together = [], [], threading.Barrier(6)

    def slow_to_trace(x):
        runs.append(x)
        together.reset()  # gives the other threads time to arrive as well
        for _ in range(50):
            x = jnp.sin(x) + 1
        return x

    def listen(event, _seconds, **details):
        # Old releases do not name the function; nothing else is compiled in the meantime.
        if event.endswith("backend_compile_duration") and "slow_to_trace" in details.get(
            "fun_name", "slow_to_trace"
        ):
            compiled.append(event)

    def call():
        together.wait()
        return np.asarray(shared(x))

    jax.monitoring.register_event_duration_secs_listener(listen)
    shared, x = jax.jit(slow_to_trace), np.ones(5, np.float32)
    with ThreadPoolExecutor(6) as pool:
        results = [future.result() for future in [pool.submit(call) for _ in range(6)]]
    assert len(runs) == len(compiled) == 1
    assert all((result == results[0]).all() for result in results)


@pytest.mark.claim(
    "settings-by-context-stay-in-their-thread",
    "Six settings made by a context manager were not seen by another thread, such as `disable_jit`; "
    "`jax.config.update` was.",
)
def test_settings_by_context_stay_in_their_thread():
    device, mesh = jax.devices()[0], jax.make_mesh((1,), ("i",))

    def settings():
        config, mesh = jax.config, jax.sharding.get_abstract_mesh()
        names = config.jax_default_device, config.jax_default_matmul_precision, mesh.shape_tuple
        return str(jnp.arange(2.0).dtype), config.jax_disable_jit, config.jax_debug_nans, *names

    outside = settings()
    with (
        jax.enable_x64(True),
        jax.disable_jit(),
        jax.debug_nans(True),
        jax.default_device(device),
        jax.default_matmul_precision("highest"),
        jax.set_mesh(mesh),
    ):
        assert all(now != before for now, before in zip(settings(), outside, strict=True))
        assert in_a_thread(settings) == outside
    before = jax.config.jax_default_matmul_precision
    try:
        jax.config.update("jax_default_matmul_precision", "highest")
        assert in_a_thread(lambda: jax.config.jax_default_matmul_precision) == "highest"
    finally:
        jax.config.update("jax_default_matmul_precision", before)


@pytest.mark.wrong_twin("settings-by-context-stay-in-their-thread")
def test_wrong_twin_a_thread_inherits_the_context():
    with jax.enable_x64(True):
        assert in_a_thread(lambda: jnp.arange(2.0).dtype) == "float64"


@pytest.mark.claim(
    "tracer-in-another-thread-raises",
    "Handing a tracer to another thread inside a jitted function raises `UnexpectedTracerError`.",
)
def test_tracer_in_another_thread_raises():
    def two_at_once(x):
        return in_a_thread(lambda: jnp.sin(x)) + in_a_thread(lambda: jnp.cos(x))

    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.jit(two_at_once)(1.0)


@pytest.mark.claim(
    "fork-after-the-start-warns",
    "`os.fork()` in a process that has started JAX warns with `RuntimeWarning`: a deadlock is likely.",
)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_fork_after_the_start_warns():
    code = """
import os, warnings
import jax.numpy as jnp
jnp.ones(3)
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
print([str(w.message) for w in found if w.category is RuntimeWarning])
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
    assert "os.fork() is incompatible with multithreaded code, and JAX is multithreaded" in done.stdout


@pytest.mark.claim(
    "processes-may-share-one-persistent-cache",
    "Several processes may fill and read one persistent cache at the same time.",
)
def test_processes_may_share_one_persistent_cache(tmp_path):
    code = """
import jax, numpy as np
seen = []
jax.monitoring.register_event_listener(lambda event, **_: seen.append(event))
print(float(jax.jit(lambda x: (x * 2).sum())(np.ones(3, np.float32))))
print(seen.count("/jax/compilation_cache/cache_hits"))
"""
    settings = environment(
        JAX_COMPILATION_CACHE_DIR=str(tmp_path),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
        JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1",
    )

    def start():
        return subprocess.Popen(
            [sys.executable, "-c", code],
            env=settings,
            stdout=subprocess.PIPE,  # without the warnings that XLA logs
            stderr=subprocess.DEVNULL,
            text=True,
        )

    together = [child.communicate()[0].split() for child in [start() for _ in range(3)]]
    assert [output[0] for output in together] == ["6.0"] * 3
    assert start().communicate()[0].split() == ["6.0", "1"]
