"""Memory of a call, devices, shardings, several processes."""

import json
import os
import socket
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name


def temporary_bytes(function, *shape):
    lowered = jax.jit(function).lower(jax.ShapeDtypeStruct(shape, jnp.float32))
    return lowered.compile().memory_analysis().temp_size_in_bytes


def step(x):
    return jnp.sin(x) + 0.1


def snapshots_of_all(x):
    return jax.lax.scan(lambda x, _: (step(x), x), x, None, length=100)[1][::10]


def snapshots_nested(x):
    def ten_steps(x, _):
        return jax.lax.fori_loop(0, 10, lambda _, x: step(x), x), x

    return jax.lax.scan(ten_steps, x, None, length=10)[1]


@pytest.mark.claim(
    "nested-scan-keeps-some-steps",
    "An outer `scan` that returns one state for each inner loop gives the same snapshots as a `scan` that stacks the "
    "states of each step, and needs less temporary memory.",
)
def test_nested_scan_keeps_some_steps():
    x = jnp.linspace(0.0, 1.0, 5)
    np.testing.assert_allclose(snapshots_nested(x), snapshots_of_all(x), rtol=1e-6)
    assert 5 * temporary_bytes(snapshots_nested, 1000) < temporary_bytes(snapshots_of_all, 1000)


@pytest.mark.claim(
    "lax-map-traces-the-remainder-apart",
    "`jax.lax.map` with `batch_size` traces its function once if the number of elements is a multiple of the batch "
    "size, and otherwise a second time, for the remainder.",
)
def test_lax_map_traces_the_remainder_apart():
    def traces(rows):
        runs = []
        jax.jit(lambda xs: jax.lax.map(lambda x: runs.append(x) or 2 * x, xs, batch_size=4))(
            jnp.ones((rows, 3))
        )
        return len(runs)

    assert (traces(8), traces(10)) == (1, 2)


@pytest.mark.claim(
    "checkpoint-saves-memory-in-lax-map",
    "The gradient of a `jax.lax.map` in batches needs less temporary memory if the mapped function is wrapped in "
    "`jax.checkpoint`.",
)
def test_checkpoint_saves_memory_in_lax_map():
    def heavy(x):
        for _ in range(6):
            x = jnp.sin(x @ x)
        return x.sum()

    def gradient(function):
        return jax.grad(lambda xs: jax.lax.map(function, xs, batch_size=4).sum())

    plain = temporary_bytes(gradient(heavy), 32, 40, 40)
    assert 2 * temporary_bytes(gradient(jax.checkpoint(heavy)), 32, 40, 40) < plain


@pytest.mark.claim(
    "donation-warning-comes-while-lowering",
    "The warning of an unusable donation comes while the function is lowered, so not at the next call of the same "
    "types; where warnings are errors, it is raised.",
)
def test_donation_warning_comes_while_lowering():
    total = jax.jit(lambda x: x.sum(), donate_argnums=0)
    x = jnp.ones(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="donated buffers were not usable"):
            total.lower(x)
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        total(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        total(x)


@pytest.mark.claim(
    "each-static-value-keeps-its-executable",
    "A new static value adds an executable, and `jax.clear_caches()` frees those of the earlier ones.",
)
@pytest.mark.platform("cpu")
def test_each_static_value_keeps_its_executable():
    client = jax.local_devices()[0].client
    noisy = jax.jit(lambda x, n: x + n * np.random.default_rng(0).normal(size=1000), static_argnums=1)
    x = jnp.ones(1000)
    noisy(x, 0)
    before = len(client.live_executables())
    for n in (1, 2, 3):
        noisy(x, n)
    assert len(client.live_executables()) == before + 3
    jax.clear_caches()
    assert len(client.live_executables()) < before


@pytest.mark.claim(
    "memory-spaces-must-agree",
    "Adding an array in host memory to one in device memory raises `ValueError` inside jit; `jax.device_put` in the "
    "body moves it first.",
)
def test_memory_spaces_must_agree():
    x = jnp.ones(4)
    on_host = jax.device_put(x, jax.memory.Space.Host)
    with pytest.raises(ValueError, match="memory_space"):
        jax.jit(lambda a, b: a + b)(on_host, x)
    moved = jax.jit(lambda a, b: jax.device_put(a, jax.memory.Space.Device) + b)(on_host, x)
    np.testing.assert_array_equal(moved, 2 * np.ones(4))


@pytest.mark.claim(
    "offload-policy-keeps-residuals-on-the-host",
    "With the policy `save_and_offload_only_these_names`, the gradient's jaxpr stores the named values in host memory.",
)
def test_offload_policy_keeps_residuals_on_the_host():
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["activation"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def layer(x, _):
        return jnp.cos(checkpoint_name(jnp.sin(x @ x), "activation") @ x), None

    def jaxpr(policy):
        body = jax.checkpoint(layer, policy=policy)
        gradient = jax.grad(lambda x: jax.lax.scan(body, x, None, length=5)[0].sum())
        return str(jax.make_jaxpr(gradient)(jnp.eye(3)))

    assert "float32<host>[5,3,3]" in jaxpr(policy).replace("f32", "float32")
    assert "<host>" not in jaxpr(None)


@pytest.mark.claim(
    "dlpack-array-is-committed",
    "`jax.dlpack.from_dlpack` and `jnp.from_dlpack` of a NumPy array give an array that is committed to the CPU; "
    "`jnp.asarray` gives one that is not committed.",
)
def test_dlpack_array_is_committed():
    x = np.ones(4, np.float32)
    for make in (jax.dlpack.from_dlpack, jnp.from_dlpack):
        assert make(x).committed
        assert make(x).device.platform == "cpu"
    assert not jnp.asarray(x).committed


DEVICES = """
import jax
try:
    print(jax.devices()[0].platform)
except Exception as error:
    print("raised", error)
"""
AFTER_THE_IMPORT = "import jax, os\nos.environ['JAX_PLATFORMS'] = 'no_such_platform'\n" + DEVICES
BY_CONFIG = "import jax\njax.config.update('jax_platforms', 'no_such_platform')\n" + DEVICES


@pytest.mark.claim(
    "jax-platforms-is-read-at-the-import",
    "`JAX_PLATFORMS` set in `os.environ` after `import jax` is ignored; `jax.config.update('jax_platforms', …)` before "
    "JAX starts is not.",
)
def test_jax_platforms_is_read_at_the_import(child):
    assert child(AFTER_THE_IMPORT).split()[-1] == "cpu"
    assert "raised" in child(BY_CONFIG, JAX_PLATFORMS="")


@pytest.mark.claim(
    "cuda-in-the-list-of-platforms-may-be-missing",
    "On a machine without an NVIDIA GPU, `JAX_PLATFORMS=cuda,cpu` uses the CPU, and `tpu,cpu` raises.",
)
@pytest.mark.platform("cpu")
def test_cuda_in_the_list_of_platforms_may_be_missing(child):
    assert child(DEVICES, JAX_PLATFORMS="cuda,cpu").split()[-1] == "cpu"
    assert "raised" in child(DEVICES, JAX_PLATFORMS="tpu,cpu")


SHARDINGS = """
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

def message(call):
    try:
        return str(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"

explicit = jax.make_mesh((4,), ("rows",))
auto = jax.make_mesh((4,), ("rows",), axis_types=(AxisType.Auto,))
plain = jax.sharding.Mesh(jax.devices(), ("rows",))
split, typed = NamedSharding(auto, P("rows")), NamedSharding(explicit, P("rows"))
x = jax.device_put(jnp.arange(8.0), split)
y = jax.device_put(jnp.arange(8.0), typed)
other = NamedSharding(jax.make_mesh((2,), ("rows",), axis_types=(AxisType.Auto,), devices=jax.devices()[:2]), P("rows"))
turned = NamedSharding(jax.sharding.Mesh(jax.devices()[::-1], ("rows",)), P("rows"))
squared = NamedSharding(jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b")), P("a"))
constrain = jax.lax.with_sharding_constraint

def text(f, *args):
    return jax.jit(f).lower(*args).compile().as_text()

def reversed_rows(rows):
    return jax.lax.map(lambda row: row[::-1], rows)

rows = jax.device_put(jnp.arange(32.0).reshape(8, 4), split)
local = jax.shard_map(reversed_rows, mesh=auto, in_specs=P("rows"), out_specs=P("rows"))
with jax.set_mesh(explicit):
    whole = str(jax.typeof(jax.reshard(y, P())))
    asserted = message(lambda: jax.jit(lambda a: constrain(a, P()))(y))
    agreed = message(lambda: jax.jit(lambda a: constrain(a, P("rows")))(y).sharding.spec)
print(json.dumps({
    "axis types": [str(m.axis_types[0]) for m in (explicit, auto, plain)],
    "typeof": [str(jax.typeof(y)), str(jax.typeof(x))],
    "reshard": whole,
    "reshard auto": message(lambda: jax.jit(lambda a: jax.reshard(a, split))(x)),
    "constrain auto": str(jax.jit(lambda a: constrain(a, NamedSharding(auto, P())))(x).sharding.spec),
    "constrain explicit": [asserted, agreed],
    "fewer devices": message(lambda: jax.jit(lambda a: constrain(a, other))(x)),
    "other order": message(lambda: jax.jit(lambda a: constrain(a, turned))(x)),
    "same devices": message(lambda: jax.jit(lambda a: constrain(a, squared))(x).sharding.spec),
    "gathers": ["all-gather" in text(f, rows) for f in (reversed_rows, local)],
}))
"""
_SHARDINGS = {}


def shardings(child):
    if not _SHARDINGS:
        _SHARDINGS.update(json.loads(child(SHARDINGS, devices=4)))
    return _SHARDINGS


@pytest.mark.claim(
    "make-mesh-is-explicit",
    "`jax.make_mesh` gives axes of type `Explicit`, and `jax.sharding.Mesh` gives `Auto` ones; on an explicit mesh "
    "`jax.typeof` shows how an array is split.",
)
def test_make_mesh_is_explicit(child):
    facts = shardings(child)
    assert [kind.rpartition(".")[2] for kind in facts["axis types"]] == ["Explicit", "Auto", "Auto"]
    assert facts["typeof"] == ["float32[8@rows]", "float32[8]"]


@pytest.mark.claim(
    "reshard-wants-explicit-axes",
    "`jax.reshard` changes the split along an `Explicit` axis, and raises `ValueError` for a `PartitionSpec` that "
    "names an `Auto` axis; there `with_sharding_constraint` changes it.",
)
def test_reshard_wants_explicit_axes(child):
    facts = shardings(child)
    assert facts["reshard"] == "float32[8]"
    assert facts["reshard auto"].startswith("ValueError")
    assert "rows" not in facts["constrain auto"]


@pytest.mark.claim(
    "constraint-on-explicit-axes-only-asserts",
    "On a mesh of `Explicit` axes, `with_sharding_constraint` raises `AssertionError` if the split is another, and "
    "passes the array on if it is the same.",
)
def test_constraint_on_explicit_axes_only_asserts(child):
    other, same = shardings(child)["constrain explicit"]
    assert other.startswith("AssertionError")
    assert "rows" in same


@pytest.mark.claim(
    "constraint-needs-the-devices-of-the-arguments",
    "`with_sharding_constraint` inside a jitted function raises `ValueError` if its mesh has other devices than the "
    "arguments, or the same ones in another order; another mesh of the same devices in the same order works.",
)
def test_constraint_needs_the_devices_of_the_arguments(child):
    facts = shardings(child)
    for case in ("fewer devices", "other order"):
        assert facts[case].startswith("ValueError: Received incompatible devices")
    assert "a" in facts["same devices"]


@pytest.mark.claim(
    "split-rows-may-be-gathered",
    "`jax.lax.map` over the split rows of an array makes an `all-gather`; the same inside `jax.shard_map` does not.",
)
def test_split_rows_may_be_gathered(child):
    assert shardings(child)["gathers"] == [True, False]


THREADS = """
import os
import jax

jax.numpy.ones(3).block_until_ready()
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.claim(
    "thread-pool-is-sized-by-the-affinity",
    "On Linux, a process that may use one CPU when JAX starts makes fewer threads than one that may use two.",
)
@pytest.mark.platform("cpu")
def test_thread_pool_is_sized_by_the_affinity(child):
    if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("not applicable: two CPUs of a Linux machine are needed")
    limited = "import os\nos.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])\n"
    assert int(child(limited + THREADS)) < int(child(THREADS))


ONE_OF_TWO = """
import json
import pickle
import sys

import jax
import numpy as np
from jax.experimental import multihost_utils

jax.distributed.initialize(sys.argv[1], num_processes=2, process_id=int(sys.argv[2]))
mesh = jax.sharding.Mesh(jax.devices(), ("rows",))
split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))
whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
mine = np.arange(2, dtype=np.float32) + 2 * int(sys.argv[2])
x = jax.make_array_from_process_local_data(split, mine)
copied = jax.jit(lambda x: x, out_shardings=whole)(x)

def message(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__

print("facts" + json.dumps({
    "split": [x.is_fully_addressable, x.is_fully_replicated, message(lambda: np.asarray(x).tolist())],
    "copied": [copied.is_fully_addressable, copied.is_fully_replicated, np.asarray(copied).tolist()],
    "gathered": multihost_utils.process_allgather(x, tiled=True).tolist(),
    "mine": [np.asarray(shard.data).tolist() for shard in x.addressable_shards],
    "pickled": message(lambda: len(pickle.dumps(x))),
    "closed over": message(lambda: float(jax.jit(lambda: x.sum())())),
    "argument": float(jax.jit(lambda x: x.sum())(x)),
}))
"""
_PROCESSES = []


def two_processes():
    """Return what each of two processes found out."""
    if _PROCESSES:
        return _PROCESSES
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    settings = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    settings |= {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "1"}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", ONE_OF_TWO, address, n], env=settings, stdout=subprocess.PIPE, text=True
        )
        for n in "01"
    ]
    try:
        outputs = [child.communicate(timeout=100)[0] for child in children]
    finally:
        for child in children:
            child.kill()
    _PROCESSES.extend(json.loads(output.rpartition("facts")[2]) for output in outputs)
    return _PROCESSES


@pytest.mark.claim(
    "value-of-several-processes-is-read-when-replicated",
    "With two processes, `np.asarray` of an array that is split over both raises `RuntimeError`; of one that each "
    "process holds completely it works, and `multihost_utils.process_allgather` gives the whole of the split one.",
)
def test_value_of_several_processes_is_read_when_replicated():
    for facts in two_processes():
        assert facts["split"] == [False, False, "RuntimeError"]
        assert facts["copied"] == [False, True, [0, 1, 2, 3]]
        assert facts["gathered"] == [0, 1, 2, 3]


@pytest.mark.claim(
    "array-of-several-processes-is-not-pickled",
    "Pickling an array that is split over two processes raises `RuntimeError`; `addressable_shards` holds the part of "
    "each process.",
)
def test_array_of_several_processes_is_not_pickled():
    facts = two_processes()
    assert [each["pickled"] for each in facts] == ["RuntimeError"] * 2
    assert [each["mine"] for each in facts] == [[[0, 1]], [[2, 3]]]


@pytest.mark.claim(
    "array-of-several-processes-cannot-be-closed-over",
    "A jitted function that closes over an array that is split over two processes raises `RuntimeError`; as an "
    "argument it works.",
)
def test_array_of_several_processes_cannot_be_closed_over():
    for facts in two_processes():
        assert facts["closed over"] == "RuntimeError"
        assert facts["argument"] == 6


@pytest.mark.wrong_twin("lax-map-traces-the-remainder-apart")
def test_wrong_twin_lax_map_traces_each_batch():
    runs = []
    jax.jit(lambda xs: jax.lax.map(lambda x: runs.append(x) or 2 * x, xs, batch_size=4))(jnp.ones((12, 3)))
    assert len(runs) == 3


@pytest.mark.wrong_twin("dlpack-array-is-committed")
def test_wrong_twin_asarray_commits():
    assert jnp.asarray(np.ones(4, np.float32)).committed
