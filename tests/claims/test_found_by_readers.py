"""Work before a cond, objects built while tracing, draws under vmap."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def branches_of(text):
    """Return the bodies of the computations of HLO that a conditional calls, however deep."""
    bodies = dict(
        re.findall(r"^(?:ENTRY )?%?([\w.\-]+) \([^\n]*\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    )
    entry = re.search(r"^ENTRY %?([\w.\-]+)", text, re.MULTILINE)[1]
    return bodies, entry


def costly(x):
    return jax.lax.fori_loop(0, 5, lambda i, m: jnp.tanh(m @ x), x)


def before(done, x):
    new = costly(x)
    return jax.lax.cond(done, lambda: new, lambda: x)


def before_as_operand(done, x):
    return jax.lax.cond(done, lambda new: new, lambda new: x, costly(x))


def inside(done, x):
    return jax.lax.cond(done, lambda: costly(x), lambda: x)


def loops_outside_branches(function, x):
    """Return whether the function's loop stands in what runs on each call."""
    bodies, entry = branches_of(jax.jit(function).lower(False, x).compile().as_text())
    reached, new = set(), {entry}
    while new:
        reached |= new
        called = " ".join(
            line for name in new for line in bodies.get(name, "").splitlines() if "conditional(" not in line
        )
        new = {name for name in bodies if re.search(rf"%?{re.escape(name)}\b", called)} - reached
    return any(" while(" in bodies[name] for name in reached)


@pytest.mark.claim(
    "work-before-a-cond-runs-in-each-call",
    "XLA doesn't move a loop that you compute before a `lax.cond` into the branch that uses it: it runs in each call.",
)
@pytest.mark.parametrize("size", [4, 64])
def test_work_before_a_cond_runs_in_each_call(size):
    x = jnp.eye(size)
    assert loops_outside_branches(before, x)
    assert loops_outside_branches(before_as_operand, x)
    assert not loops_outside_branches(inside, x)


@pytest.mark.wrong_twin("work-before-a-cond-runs-in-each-call")
def test_wrong_twin_work_before_a_cond_moves_into_the_branch():
    assert not loops_outside_branches(before, jnp.eye(4))


class Solver:
    """Neither registered nor hashable by value."""

    def __init__(self, rate, size):
        self.matrix = rate * jnp.eye(size)
        self.history = [self.matrix]

    def run(self, state):
        self.history.append(self.matrix @ state)
        return self.history[-1]


@pytest.mark.claim(
    "object-built-while-tracing-needs-no-registration",
    "A jitted function may create an object of a class that JAX doesn't know, from traced arrays, and use it: new values "
    "don't compile again.",
)
def test_object_built_while_tracing_needs_no_registration():
    traces = []

    def final(rate, state):
        traces.append(1)
        return Solver(rate, state.size).run(state)

    jitted = jax.jit(final)
    for rate in (0.5, 1.0, 2.0):
        np.testing.assert_allclose(jitted(rate, jnp.ones(3)), rate * np.ones(3))
    np.testing.assert_allclose(
        jax.jit(jax.vmap(final, (0, None)))(jnp.arange(2.0), jnp.ones(2)), [[0, 0], [1, 1]]
    )
    np.testing.assert_allclose(jax.jit(jax.grad(lambda r: final(r, jnp.ones(2)).sum()))(3.0), 2.0)
    assert len(traces) == 3  # the first of the three calls, vmap, grad


@pytest.mark.claim(
    "attribute-of-an-array-is-lost",
    "An attribute that you set on a JAX array is gone in a jitted function, in what that returns, and in a new array that an "
    "operation makes.",
)
def test_attribute_of_an_array_is_lost():
    x = jnp.arange(3.0)
    try:
        x.unit = "m"
    except AttributeError:
        pytest.fail("an array takes no attribute")
    assert not jax.jit(lambda x: [hasattr(x, "unit"), x][0])(x)
    results = [
        jax.jit(lambda x: x)(x), x + 1, jnp.sin(x), x[:2], jax.jit(lambda x: {"x": x})(x)["x"],
        jax.device_put(x, jax.devices()[0]) + 0, jax.vmap(lambda x: -x)(x), x.copy(),
    ]  # fmt: skip
    assert not any(hasattr(result, "unit") for result in results)


def steps_to_a_large_draw(key):
    """Draw until a number is large; return how many draws it took, and the number."""

    def body(carry):
        key, count, _ = carry
        key, now = jax.random.split(key)
        return key, count + 1, jax.random.normal(now)

    return jax.lax.while_loop(lambda carry: carry[2] < 1.5, body, (key, 0, jnp.float32(0)))[1:]


@pytest.mark.claim(
    "threefry-draws-under-vmap-are-those-of-one-element",
    "With threefry keys, an element draws under `vmap` what it draws alone, also in a `while_loop` that ends at different "
    "times.",
)
@pytest.mark.parametrize(
    "draw",
    [
        steps_to_a_large_draw,
        lambda key: jax.random.uniform(key, (5,)),
        lambda key: jax.random.randint(key, (5,), 0, 1000),
        lambda key: jax.random.permutation(key, 10),
        lambda key: jax.lax.cond(
            jax.random.bernoulli(key), lambda: jax.random.bits(key), lambda: jnp.uint32(0)
        ),
        lambda key: jax.random.gumbel(jax.random.fold_in(key, 3), (4,)).argmax(),
    ],
)
def test_threefry_draws_under_vmap_are_those_of_one_element(draw):
    keys = jax.random.split(jax.random.PRNGKey(7), 30)
    together = jax.tree_util.tree_leaves(jax.jit(jax.vmap(draw))(keys))
    one = jax.jit(draw)
    for i, key in enumerate(keys):
        for all_of_them, alone in zip(together, jax.tree_util.tree_leaves(one(key)), strict=True):
            np.testing.assert_array_equal(all_of_them[i], alone)


OTHER_DEVICES = """
import jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

traces = []


@jax.jit
def double(x):
    traces.append(1)
    return 2 * x


devices = jax.devices()
for some in (devices[:2], devices[2:], devices[:2]):
    double(jax.device_put(jnp.arange(4.0), NamedSharding(Mesh(some, ("i",)), P("i"))))
    print(len(traces), double._cache_size())
"""


@pytest.mark.claim(
    "other-devices-compile-without-a-trace",
    "For arrays on another set of devices, with a mesh of the same shape and names, a jitted function compiles again "
    "without a new trace; on returning to the first devices it finds what it compiled.",
)
def test_other_devices_compile_without_a_trace(child):
    lines = [list(map(int, line.split())) for line in child(OTHER_DEVICES, devices=4).split("\n") if line]
    assert [traces for traces, _ in lines] == [1, 1, 1]
    assert [compiled for _, compiled in lines] == [1, 2, 2]
