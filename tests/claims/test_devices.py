"""Several devices."""

import json

import pytest

EXPERIMENTS = """
import json
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

EVENTS = {
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lowerings",
    "/jax/core/compile/backend_compile_duration": "compiles",
}
seen, runs, facts = Counter(), [], {}
jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: seen.update([EVENTS.get(event)]))


def done(f, x):
    "The runs of the body, lowerings and compilations of one call, and the ids of the devices of its result."
    before = len(runs)
    seen.clear()
    result = f(x)
    return [len(runs) - before, seen["lowerings"], seen["compiles"]], sorted(d.id for d in result.devices())


def committed(array):
    return array.committed if hasattr(array, "committed") else array._committed


def message(call):
    try:
        return str(call())
    except ValueError as error:
        return f"ValueError: {error}"


double = jax.jit(lambda x: runs.append(1) or x * 2)
devices = jax.devices()
mesh = Mesh(np.array(devices), ("i",))
split, whole = NamedSharding(mesh, P("i")), NamedSharding(mesh, P())
x, host = jnp.arange(8.0), np.arange(8, dtype=np.float32)
on = [jax.device_put(x, d) for d in devices]
shards, copies = jax.device_put(x, split), jax.device_put(x, whole)
for name, value in dict(cold=x, committed=on[0], other=on[1], split=shards, copies=copies, again=x).items():
    facts[name] = done(double, value)
with jax.default_device(devices[2]):
    facts["default_numpy"] = done(double, host)
    facts["default_jax"] = done(double, x)
facts["two_devices"] = message(lambda: jax.jit(jnp.add)(on[0], on[1]))
facts["follows"] = sorted(d.id for d in jax.jit(jnp.add)(x, on[1]).devices())
facts["uncommitted"] = [committed(a) for a in (x, on[0], double(x), double(on[1]))]
moved = jax.jit(lambda x: x + 1, out_shardings=SingleDeviceSharding(devices[2]))
facts["placed"] = [committed(moved(x)), committed(jax.jit(lambda x, y: y + 1)(on[1], x))]
for name, f in {"sum": lambda x: jnp.sum(x * x), "elementwise": lambda x: x * x}.items():
    facts[name] = "all-reduce(" in jax.jit(f).lower(shards).compile().as_text()
facts["sum_value"] = float(jax.jit(lambda x: jnp.sum(x * x))(shards))
facts["shard_shapes"] = sorted({s.data.shape for s in double(shards).addressable_shards})
moved = jax.jit(lambda x: x + 1, in_shardings=NamedSharding(Mesh(np.array(devices[1:2]), ("i",)), P()))
facts["in_shardings"] = message(lambda: sorted(d.id for d in moved(on[0]).devices()))
facts["out_shardings"] = len(jax.jit(lambda x: x + 1, out_shardings=split)(x).devices())
pmapped = []
facts["pmap"] = jax.pmap(lambda x: pmapped.append(1) or x * 2)(jnp.arange(4.0)).tolist() + [len(pmapped)]
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def facts(child):
    return json.loads(child(EXPERIMENTS, devices=4).splitlines()[-1])


@pytest.mark.claim(
    "other-device-compiles-only",
    "An array committed to another device keeps the trace and the lowered code, and is compiled for again.",
)
def test_other_device_compiles_only(facts):
    assert facts["cold"] == [[1, 1, 1], [0]]
    assert facts["committed"] == [[0, 1, 1], [0]]
    assert facts["other"] == [[0, 0, 1], [1]]


@pytest.mark.wrong_twin("other-device-compiles-only")
def test_wrong_twin_other_device_traces_again(facts):
    assert facts["other"][0][0] == 1


@pytest.mark.claim(
    "sharded-argument-retraces",
    "An array split over devices traces and compiles again, as if it had another type.",
    seeds="S002-20",
)
def test_sharded_argument_retraces(facts):
    assert facts["split"] == [[1, 1, 1], [0, 1, 2, 3]]


@pytest.mark.claim(
    "replicated-argument-keeps-the-mesh-trace",
    "On one mesh, a replicated array in place of a split one keeps the trace, and lowers and compiles again.",
)
def test_replicated_argument_keeps_the_mesh_trace(facts):
    assert facts["copies"] == [[0, 1, 1], [0, 1, 2, 3]]


@pytest.mark.claim(
    "earlier-device-stays-cached",
    "Returning to an array on the default device hits, also after calls on other devices.",
)
def test_earlier_device_stays_cached(facts):
    assert facts["again"] == [[0, 0, 0], [0]]


@pytest.mark.claim(
    "default-device-is-a-key",
    "Under `jax.default_device` a NumPy argument traces and compiles again, and the work is done on that "
    "device.",
)
def test_default_device_is_a_key(facts):
    assert facts["default_numpy"] == [[1, 1, 1], [2]]


@pytest.mark.claim(
    "default-device-moves-uncommitted-arrays",
    "Under `jax.default_device` an uncommitted array is moved to that device for the call.",
)
def test_default_device_moves_uncommitted_arrays(facts):
    assert facts["default_jax"] == [[0, 0, 0], [2]]


@pytest.mark.claim(
    "committed-devices-must-agree",
    "Arguments committed to different devices raise `ValueError`, where `in_shardings` does not place them.",
)
def test_committed_devices_must_agree(facts):
    assert facts["two_devices"].startswith("ValueError: Received incompatible devices for jitted computation")


@pytest.mark.claim(
    "work-follows-the-committed-argument",
    "With one committed and one uncommitted argument the work is done where the committed one is.",
)
def test_work_follows_the_committed_argument(facts):
    assert facts["follows"] == [1]


@pytest.mark.claim(
    "results-inherit-commitment",
    "A result is committed if an argument that the function uses was, or if `out_shardings` places it, and otherwise "
    "uncommitted.",
)
def test_results_inherit_commitment(facts):
    assert facts["uncommitted"] == [False, True, False, True]
    assert facts["placed"] == [True, False]


@pytest.mark.claim(
    "sharding-is-computed-in-place",
    "A jitted function of a split array works on each device's part, without code that mentions devices.",
    seeds="S002-20 S002-24",
)
def test_sharding_is_computed_in_place(facts):
    assert facts["shard_shapes"] == [[2]]


@pytest.mark.claim(
    "reductions-of-sharded-arrays-communicate",
    "The compiler adds communication where it is needed: a sum over a split array has an all-reduce, an "
    "elementwise function does not.",
    seeds="S002-20",
)
def test_reductions_of_sharded_arrays_communicate(facts):
    assert facts["sum"]
    assert facts["sum_value"] == 140
    assert not facts["elementwise"]


@pytest.mark.claim(
    "in-shardings-move-silently",
    "`in_shardings` with one device moves an argument that is committed to another, without an error.",
)
def test_in_shardings_move_silently(facts):
    assert facts["in_shardings"] == "[1]"


@pytest.mark.claim(
    "out-shardings-split-the-result",
    "`out_shardings` spreads a result over devices, also if the argument is on one.",
)
def test_out_shardings_split_the_result(facts):
    assert facts["out_shardings"] == 4


@pytest.mark.claim(
    "pmap-maps-over-devices",
    "`pmap` still runs a function on several devices, each for a slice of its own; the function is traced "
    "once for them together.",
    seeds="S002-20",
)
def test_pmap_maps_over_devices(facts):
    assert facts["pmap"] == [0, 2, 4, 6, 1]
