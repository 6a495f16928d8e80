"""What goes wrong without an error where an array is split over several devices: extrema and convolutions."""

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
x = jnp.arange(8.0).at[3].set(jnp.nan)
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
    "On a CPU, `jnp.max`, `jnp.min` and the `inf` norm of an array that is split over four devices drop a NaN, with jit "
    "and without; `jnp.sum` and `jnp.isnan(x).any()` keep it.",
)
def test_extremum_of_a_split_array_drops_nan(child):
    whole, jitted, plain = json.loads(child(START + EXTREMA, devices=4))
    assert [x != x for x in whole] == [True, True, True, True, False]
    assert jitted[:3] == plain[:3] == [7, 0, 7]
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
    "convolve-of-two-split-signals-counts-an-unused-mesh-axis",
    "`jnp.convolve` in the mode `same` of two signals that are both split over one axis of a mesh of two by two is twice "
    "as large as it should be; split over both axes, it is right.",
)
def test_convolve_of_two_split_signals_counts_an_unused_mesh_axis(child):
    assert json.loads(child(START + SIGNALS, devices=4)) == pytest.approx([2, 1], rel=1e-3)
