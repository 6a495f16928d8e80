"""Extrema and convolutions of arrays that are split over devices."""

import json

import pytest

START = """
import json
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

devices = np.array(jax.devices())
"""

EXTREMA = """
split = NamedSharding(Mesh(devices, ("rows",)), P("rows"))
x = jnp.arange(8.0).at[7].set(jnp.nan)
functions = [jnp.max, jnp.min, lambda x: jnp.linalg.norm(x, jnp.inf), jnp.sum, lambda x: jnp.isnan(x).any()]
whole, parts = ([float(jax.jit(f)(v)) for f in functions] for v in (x, jax.device_put(x, split)))
print(json.dumps([whole, parts, [float(f(jax.device_put(x, split))) for f in functions]]))
"""

KERNEL = """
images = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype("float32")
kernel = np.random.default_rng(1).normal(size=(4, 3, 3, 3)).astype("float32")

def loss(kernel, images):
    return (lax.conv(images, kernel, (1, 1), "SAME") ** 2).sum()

right = jax.jit(jax.grad(loss))(kernel, images)
found = []
for shape, spec in (((4,), P(None, None, "a")), ((2, 2), P(None, None, "a")), ((2, 2), P("b", None, "a"))):
    split = NamedSharding(Mesh(devices.reshape(shape), ("a", "b")[: len(shape)]), spec)
    gradient = jax.jit(jax.grad(loss))(kernel, jax.device_put(images, split))
    found.append(float(jnp.median(gradient / right)))
print(json.dumps(found))
"""

SPLIT_KERNEL = """
images = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype("float32")
kernel = np.random.default_rng(1).normal(size=(4, 3, 3, 3)).astype("float32")
convolve = jax.jit(lambda images, kernel: lax.conv(images, kernel, (1, 1), "SAME"))
right = convolve(images, kernel)
mesh = Mesh(devices.reshape(2, 2), ("a", "b"))
found = []
for spec in (P(None, None, "a"), P("b", None, "a"), P("b")):
    placed = (jax.device_put(images, NamedSharding(mesh, spec)), jax.device_put(kernel, NamedSharding(mesh, P("b"))))
    found.append(float(jnp.median(convolve(*placed) / right)))
print(json.dumps(found))
"""

SIGNALS = """
a, b = (np.random.default_rng(seed).normal(size=48).astype("float32") for seed in (0, 1))
convolve = jax.jit(lambda a, b: jnp.convolve(a, b, mode="same"))
right = convolve(a, b)
mesh = Mesh(devices.reshape(2, 2), ("a", "b"))
found = []
for axes in ("a", ("a", "b")):
    split = NamedSharding(mesh, P(axes))
    found.append(float(jnp.median(convolve(jax.device_put(a, split), jax.device_put(b, split)) / right)))
print(json.dumps(found))
"""


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "extremum-of-a-split-array-drops-nan",
    "On a CPU, `jnp.max`, `jnp.min` and the `inf` norm of an array that is split over four devices drop a NaN and the "
    "other number on its device, with jit and without; `jnp.sum` and `jnp.isnan(x).any()` keep it.",
)
def test_extremum_of_a_split_array_drops_nan(child):
    whole, jitted, plain = json.loads(child(START + EXTREMA, devices=4))
    assert [x != x for x in whole] == [True, True, True, True, False]
    assert jitted[:3] == plain[:3] == [5, 0, 5]
    assert jitted[3] != jitted[3]
    assert jitted[4] == plain[4] == 1


@pytest.mark.wrong_twin("extremum-of-a-split-array-drops-nan")
def test_wrong_twin_a_split_array_has_the_same_maximum(child):
    whole, parts, _ = json.loads(child(START + EXTREMA, devices=4))
    assert str(whole) == str(parts)


@pytest.mark.claim(
    "kernel-gradient-counts-an-unused-mesh-axis",
    "With the height of the images split over one axis of a mesh of two by two, and nothing over the other, the gradient "
    "of a convolution's kernel is twice as large as it should be; with the batch split over the other, or on a mesh of "
    "one axis, it is right.",
)
def test_kernel_gradient_counts_an_unused_mesh_axis(child):
    assert json.loads(child(START + KERNEL, devices=4)) == pytest.approx([1, 2, 1], rel=1e-3)


@pytest.mark.wrong_twin("kernel-gradient-counts-an-unused-mesh-axis")
def test_wrong_twin_the_gradient_does_not_depend_on_the_mesh(child):
    assert json.loads(child(START + KERNEL, devices=4)) == pytest.approx([1, 1, 1], rel=1e-3)


@pytest.mark.claim(
    "split-kernel-counts-an-unused-mesh-axis",
    "With the height of the images split over one axis of a mesh of two by two, and the kernel over the other, a "
    "convolution is twice as large as it should be; with the batch split over the other as well, or alone, it is right.",
)
def test_split_kernel_counts_an_unused_mesh_axis(child):
    assert json.loads(child(START + SPLIT_KERNEL, devices=4)) == pytest.approx([2, 1, 1], rel=1e-3)


@pytest.mark.claim(
    "convolve-of-two-split-signals-counts-an-unused-mesh-axis",
    "`jnp.convolve` in the mode `same` of two signals that are both split over one axis of a mesh of two by two is twice "
    "as large as it should be; split over both axes, it is right.",
)
def test_convolve_of_two_split_signals_counts_an_unused_mesh_axis(child):
    assert json.loads(child(START + SIGNALS, devices=4)) == pytest.approx([2, 1], rel=1e-3)


INNER = """
mesh = Mesh(devices, ("rows",))
x = jnp.arange(8.0)

def loss(w, x):
    return jnp.sin(lax.psum((w * x).sum(), "rows") / 30)

right = jax.grad(lambda w: jnp.sin((w * x).sum() / 30))(1.0)

def ratios(check):
    specs = {"mesh": mesh, "in_specs": (P(), P("rows")), "out_specs": P(), "check_vma": check}
    inside = jax.shard_map(jax.grad(loss), **specs)(1.0, x)
    outside = jax.grad(jax.shard_map(loss, **specs))(1.0, x)
    return [float(inside / right), float(outside / right)]

print(json.dumps([ratios(True), ratios(False)]))
"""

BYTES = """
mesh = Mesh(devices, ("rows",))
x = np.full(4, 100, np.int8)

def over_devices(f):
    return jax.shard_map(f, mesh=mesh, in_specs=P("rows"), out_specs=P())(x).item()

found = [over_devices(lambda x: lax.pmean(x, "rows")), over_devices(lambda x: lax.psum(x, "rows"))]
found += [over_devices(lambda x: lax.pmean(x.astype(float), "rows")), jnp.mean(x).item(), jnp.sum(x).item()]
print(json.dumps(found))
"""

SHARED = """
split = NamedSharding(Mesh(devices, ("rows",)), P("rows"))

def becomes(convert):
    raw = np.empty(4 * 1000 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    source = raw[start : start + 4 * 1000].view(np.float32)
    source[:] = 1
    converted = jax.block_until_ready(convert(source))
    source[:] = 99
    return float(np.asarray(converted)[0])

ways = [
    lambda a: jax.make_array_from_process_local_data(split, a),
    lambda a: jax.make_array_from_callback(a.shape, split, lambda index: a[index]),
    lambda a: jax.make_array_from_process_local_data(split, a.copy()),
]
print(json.dumps([becomes(way) for way in ways]))
"""


@pytest.mark.claim(
    "inner-gradient-without-check-vma-misses-the-other-devices",
    "In a `shard_map` with `check_vma=False`, the gradient, taken inside, of a loss that ends in `psum` is wrong; with "
    "`check_vma=True`, or taken of the whole `shard_map`, it is right.",
)
def test_inner_gradient_without_check_vma_misses_the_other_devices(child):
    checked, unchecked = json.loads(child(START + INNER, devices=4))
    assert checked == pytest.approx([1, 1], rel=1e-5)
    assert unchecked[0] < 0.5
    assert unchecked[1] == pytest.approx(1, rel=1e-5)


@pytest.mark.claim(
    "mean-of-small-integers-over-devices-wraps-around",
    "`pmean` and `psum` of `int8` numbers on four devices wrap around, where `jnp.mean` and `jnp.sum` give 100 and 400; "
    "of floats, `pmean` is right.",
)
def test_mean_of_small_integers_over_devices_wraps_around(child):
    mean, total, of_floats, *right = json.loads(child(START + BYTES, devices=4))
    assert mean != 100
    assert total == 400 - 512
    assert of_floats == right[0] == 100
    assert right[1] == 400


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "array-of-local-data-shares-numpy-memory",
    "On a CPU, arrays that `make_array_from_process_local_data` and `make_array_from_callback` build from aligned NumPy "
    "memory change with it; those of a copy don't.",
)
def test_array_of_local_data_shares_numpy_memory(child):
    assert json.loads(child(START + SHARED, devices=4)) == [99, 99, 1]
