"""Loops of one step, integer images, layouts, meshes inside jit."""

import json
import re

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.scipy.ndimage import map_coordinates


def whiles(f, *args):
    return len(re.findall(r" while\(", jax.jit(f).lower(*args).compile().as_text()))


def stepped(length):
    return lambda x: lax.scan(lambda c, _: (jnp.sin(c), c), x, length=length)


@pytest.mark.claim(
    "loop-of-static-length-one-is-removed",
    "XLA removes the loop of a `scan` or `fori_loop` of static length 1 and keeps its body, under `grad` too; it keeps a loop "
    "of length 2, and one whose length is a traced 1.",
)
def test_loop_of_static_length_one_is_removed():
    x = jnp.arange(4.0)

    def counted(n, x):
        return lax.fori_loop(0, n, lambda i, c: jnp.sin(c), x)

    assert whiles(stepped(1), x) == whiles(lambda x: counted(1, x), x) == 0
    assert whiles(jax.grad(lambda x: stepped(1)(x)[0].sum()), x) == 0
    assert whiles(stepped(2), x) == whiles(counted, 1, x) == 1


@pytest.mark.wrong_twin("loop-of-static-length-one-is-removed")
def test_wrong_twin_a_loop_of_one_step_stays():
    assert whiles(stepped(1), jnp.arange(4.0)) == 1


@pytest.mark.claim(
    "map-coordinates-rounds-for-an-integer-image",
    "`jax.scipy.ndimage.map_coordinates` of an integer image gives integers, whose gradient is 0 in a float loss; of the "
    "image as floats, it gives floats with a gradient.",
)
def test_map_coordinates_rounds_for_an_integer_image():
    image, rows, columns = jnp.arange(9).reshape(3, 3), jnp.array([0.5, 1.25]), jnp.array([0.25, 0.5])

    def read(image, rows):
        return map_coordinates(image, [rows, columns], order=1)

    def slope(image):
        return jax.grad(lambda rows: (1.0 * read(image, rows)).sum())(rows)

    whole, exact = jax.jit(read)(image, rows), jax.jit(read)(image.astype(float), rows)
    assert jnp.issubdtype(whole.dtype, jnp.integer)
    assert exact.tolist() == [1.75, 4.25]
    assert whole.tolist() == [2, 4]
    assert slope(image).tolist() == [0, 0]
    assert slope(image.astype(float)).tolist() == [3, 3]


@pytest.mark.claim(
    "straight-through-passes-the-gradient",
    "`x + lax.stop_gradient(jnp.round(x) - x)` has the value of `jnp.round(x)` and a gradient of 1.",
)
def test_straight_through_passes_the_gradient():
    def through(x):
        return x + lax.stop_gradient(jnp.round(x) - x)

    for x in (1.3, -0.75, 2.0):
        value, slope = jax.jit(jax.value_and_grad(through))(x)
        assert value == round(x)
        assert slope == 1
    assert jax.grad(jnp.round)(1.3) == 0


@pytest.mark.claim(
    "options-of-a-jitted-jax-function-are-traced",
    "`jax.jit(jnp.linalg.norm)(x, ord=1)` and `jax.jit(jnp.sum)(x, axis=0)` raise an error, because jit traces the option; "
    "with the option in `static_argnames` they work.",
)
def test_options_of_a_jitted_jax_function_are_traced():
    x = jnp.ones((2, 3))
    for f, option, shape in ((jnp.linalg.norm, {"ord": 1}, ()), (jnp.sum, {"axis": 0}, (3,))):
        with pytest.raises((TypeError, ValueError)):
            jax.jit(f)(x, **option)
        assert jax.jit(f, static_argnames=tuple(option))(x, **option).shape == shape


@pytest.mark.claim(
    "format-of-a-result-sets-its-layout",
    "A `Format` in `out_shardings` sets the order of the axes in memory, not the shape; a layout without a sharding raises "
    "`ValueError`.",
)
def test_format_of_a_result_sets_its_layout():
    layout = pytest.importorskip("jax.experimental.layout", reason="not applicable: no module for layouts")
    if not hasattr(layout, "Format"):
        pytest.skip("not applicable: layouts have other names in this JAX")
    columns, x = layout.Layout(major_to_minor=(1, 0)), jnp.ones((8, 4))
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    y = jax.jit(lambda x: x + 1, out_shardings=layout.Format(columns, here))(x)
    assert y.shape == x.shape
    assert y.format.layout.major_to_minor == (1, 0)
    assert x.format.layout.major_to_minor == (0, 1)
    with pytest.raises(ValueError, match="layout"):
        jax.jit(lambda x: x + 1, out_shardings=layout.Format(columns))(x)


MESHES = """
import json
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

devices = jax.devices("cpu")
row, square = Mesh(np.array(devices), ("rows",)), Mesh(np.array(devices).reshape(2, 2), ("a", "b"))
x = jnp.arange(16.0).reshape(4, 4)
split = jax.device_put(x, NamedSharding(row, P("rows")))
turned = jax.jit(lambda x: x + 1, out_shardings=NamedSharding(square, P("a", "b")))(split)
fixed = jax.device_put(x, devices[0])
moved = jax.jit(lambda x: jax.device_put(x, devices[1]) + 1)(fixed)
print(json.dumps({
    "axes": list(turned.sharding.mesh.axis_names),
    "right": bool((turned == x + 1).all()),
    "moved": [device.id for device in moved.devices()],
}))
"""


@pytest.mark.claim(
    "out-shardings-may-name-another-mesh",
    "`out_shardings` may name a mesh of another shape than that of the argument, over the same devices in the same order.",
)
def test_out_shardings_may_name_another_mesh(child):
    facts = json.loads(child(MESHES, devices=4))
    assert facts["axes"] == ["a", "b"]
    assert facts["right"]


@pytest.mark.claim(
    "device-put-to-another-device-is-ignored-under-jit",
    "Inside a jitted function, `jax.device_put(x, device)` to another device of the same platform leaves the work on the "
    "device of the argument, without an error.",
)
def test_device_put_to_another_device_is_ignored_under_jit(child):
    assert json.loads(child(MESHES, devices=4))["moved"] == [0]


@pytest.mark.claim(
    "unused-result-is-dropped-in-an-outer-jit",
    "A jitted function computes a result that its caller ignores; inside another jitted function that ignores it too, it "
    "is dropped.",
)
def test_unused_result_is_dropped_in_an_outer_jit():
    both = jax.jit(lambda x: (x + 1, jnp.sin(x)))
    x = jnp.arange(4.0)
    assert "sine" in both.lower(x).compile().as_text()
    assert "sine" not in jax.jit(lambda x: both(x)[0]).lower(x).compile().as_text()
