"""Updates under a batched condition, recursion, batches in loops."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

NUMBERS = np.array([[1.0, -1.0, 2.0, -2.0, 0.5], [-1.0, 1.0, -3.0, 2.0, -0.5]], np.float32)


# A condition around an update -------------------------------------------------------------------------------


def update_by_cond(x, i, wanted, value):
    return lax.cond(wanted, lambda x: x.at[i].set(value), lambda x: x, x)


def update_by_value(x, i, wanted, value):
    return x.at[i].set(jnp.where(wanted, value, x[i]))


def filled(update, numbers):
    """Write the square of each positive number, in a loop."""

    def step(i, x):
        return update(x, i, numbers[i] > 0, numbers[i] ** 2)

    return lax.fori_loop(0, len(numbers), step, jnp.zeros(len(numbers)))


def selections(update):
    """Return the shapes between which the batched loop selects."""
    jaxpr = str(jax.make_jaxpr(jax.vmap(partial(filled, update)))(NUMBERS))
    return set(re.findall(r"f32\[([\d,]*)\] = select_n", jaxpr))


@pytest.mark.claim(
    "batched-cond-around-an-update-selects-whole-arrays",
    "Under `vmap`, a `cond` around the update of one element in a loop selects between two whole arrays in each step; "
    "with the condition in the value that is written, it selects between numbers, with equal results.",
)
def test_batched_cond_around_an_update_selects_whole_arrays():
    assert "2,5" in selections(update_by_cond)
    assert "2,5" not in selections(update_by_value)
    expected = np.where(NUMBERS > 0, NUMBERS**2, 0)
    for update in (update_by_cond, update_by_value):
        assert np.array_equal(jax.jit(jax.vmap(partial(filled, update)))(NUMBERS), expected)
        assert np.array_equal(filled(update, jnp.asarray(NUMBERS[0])), expected[0])


@pytest.mark.wrong_twin("batched-cond-around-an-update-selects-whole-arrays")
def test_wrong_twin_the_value_selects_whole_arrays():
    assert "2,5" in selections(update_by_value)


# Recursion --------------------------------------------------------------------------------------------------


class TooDeep(Exception):  # noqa: N818 -- what the experiment looks for
    """The function called itself more often than its input could ask for."""


def halved(depths, choose, x, depth=0):
    depths.append(depth)
    if depth > 20:
        raise TooDeep

    def parts(x):
        half = (len(x) + 1) // 2
        return jnp.concatenate([halved(depths, choose, x[:half], depth + 1), x[half:]])

    return choose(len(x) == 1, lambda x: x, parts, x)


def python_if(condition, f, g, x):
    return f(x) if condition else g(x)


@pytest.mark.claim(
    "recursion-through-cond-does-not-end",
    "A function that calls itself in a branch of `lax.cond` calls itself without end while tracing, also outside jit; with "
    "a Python `if` on a shape it ends.",
)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_recursion_through_cond_does_not_end(wrap):
    with pytest.raises(TooDeep):
        wrap(partial(halved, [], lax.cond))(jnp.arange(4.0))
    depths = []
    assert wrap(partial(halved, depths, python_if))(jnp.arange(4.0)).tolist() == [0, 1, 2, 3]
    assert max(depths) == 2


# Integers under custom rules --------------------------------------------------------------------------------


def ramp_sum(x, n):
    return x * jnp.arange(n).sum()


def by_custom_vjp(**options):
    function = jax.custom_vjp(ramp_sum, **options)
    if options:
        function.defvjp(lambda x, n: (function(x, n), None), lambda n, _, g: (g * jnp.arange(n).sum(),))
    else:
        function.defvjp(lambda x, n: (function(x, n), n), lambda n, g: (g * jnp.arange(n).sum(), None))
    return function


def by_custom_jvp(**options):
    function = jax.custom_jvp(ramp_sum, **options)
    if options:
        function.defjvp(lambda n, x, dx: (function(*x, n), dx[0] * jnp.arange(n).sum()))
    else:
        function.defjvp(lambda x, dx: (function(*x), dx[0] * jnp.arange(x[1]).sum()))
    return function


@pytest.mark.claim(
    "custom-rules-trace-a-static-integer",
    "Under jit, `custom_vjp` and `custom_jvp` trace an integer that is static in that jit, so `jnp.arange` of it raises; "
    "outside jit it works, and in `nondiff_argnums` it stays an integer.",
)
@pytest.mark.parametrize("define", [by_custom_vjp, by_custom_jvp])
def test_custom_rules_trace_a_static_integer(define):
    function = define()
    assert function(2.0, 4) == 12
    assert jax.grad(function)(2.0, 4) == 6
    for traced in (function, jax.grad(function)):
        with pytest.raises(jax.errors.ConcretizationTypeError):
            jax.jit(traced, static_argnums=1)(2.0, 4)
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(lambda x: function(x, 4))(2.0)
    static = define(nondiff_argnums=(1,))
    assert jax.jit(static, static_argnums=1)(2.0, 4) == 12
    assert jax.jit(jax.grad(static), static_argnums=1)(2.0, 4) == 6


# What lax.map and vmap pass on ------------------------------------------------------------------------------


@pytest.mark.claim(
    "lax-map-passes-one-argument",
    "`jax.lax.map` passes one argument to its function: a tuple of arrays arrives as a tuple of their rows, and a function "
    "of two arguments raises `TypeError`.",
)
def test_lax_map_passes_one_argument():
    a, b = jnp.arange(3.0), jnp.ones((3, 2))
    result = lax.map(lambda row: row[0] + row[1], (a, b))
    assert np.array_equal(result, a[:, None] + b)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        lax.map(lambda x, y: x + y, (a, b))
    with pytest.raises(TypeError):
        lax.map(lambda x: x, a, in_axes=0)


@pytest.mark.claim(
    "in-axes-counts-positional-arguments",
    "`vmap` with a tuple as `in_axes` refuses a call that passes one of these arguments by keyword; without `in_axes` it "
    "maps the keyword argument as well.",
)
def test_in_axes_counts_positional_arguments():
    def scaled(factor, x):
        return factor * x

    with pytest.raises(ValueError, match="in_axes"):
        jax.vmap(scaled, in_axes=(None, 0))(2.0, x=jnp.ones(3))
    assert jax.vmap(scaled, in_axes=(None, 0))(2.0, jnp.ones(3)).tolist() == [2, 2, 2]
    assert jax.vmap(partial(scaled, 2.0))(x=jnp.ones(3)).tolist() == [2, 2, 2]


@pytest.mark.claim(
    "vmap-does-not-map-a-function",
    "`vmap` refuses a function as a mapped argument; with `in_axes=None` for it, or closed over, it works, and `jit` of that "
    "`vmap` refuses the argument, but not the closure.",
)
def test_vmap_does_not_map_a_function():
    def applied(f, x):
        return f(x)

    x = jnp.zeros(3)
    with pytest.raises((TypeError, ValueError)):  # older releases ask for its rank
        jax.vmap(applied)(jnp.cos, x)
    batched = jax.vmap(applied, in_axes=(None, 0))
    assert batched(jnp.cos, x).tolist() == [1, 1, 1]
    with pytest.raises(TypeError):
        jax.jit(batched)(jnp.cos, x)
    assert jax.jit(jax.vmap(lambda x: applied(jnp.cos, x)))(x).tolist() == [1, 1, 1]


# A minimizer, and memory ------------------------------------------------------------------------------------


def bowl(x):
    return jnp.sum((x - 3.0) ** 4)


@pytest.mark.claim(
    "minimize-compiles-at-each-call-outside-jit",
    "`jax.scipy.optimize.minimize` compiles again at a second call outside jit, for the same function and shapes; under "
    "jit it does not. Where it has not converged, it returns `success` as false instead of raising.",
)
def test_minimize_compiles_at_each_call_outside_jit(counted):
    minimize = pytest.importorskip("jax.scipy.optimize").minimize

    def minimum(x):
        return minimize(bowl, x, method="BFGS", options={"maxiter": 1})

    jitted, x = jax.jit(minimum), jnp.zeros(3)
    for function in (minimum, jitted):
        assert not minimum(x).success
        function(x)
    counted()
    minimum(x)
    assert counted()["compiles"] > 0
    jitted(x)
    assert counted()["compiles"] == 0


@pytest.mark.claim(
    "one-number-per-step-saves-memory-without-a-gradient",
    "A `scan` of 200 steps that returns a number per step needs less than a tenth of the memory of one that returns the "
    "state and sums it afterwards; under `grad` it needs as much, unless its body is in `jax.checkpoint`.",
)
def test_one_number_per_step_saves_memory_without_a_gradient():
    def advance(state):
        for _ in range(4):
            state = jnp.sin(state) * 1.01 + 0.1
        return state

    def sums(state):
        return lax.scan(lambda s, _: (advance(s), s.sum()), state, None, length=200)[1]

    def sums_afterwards(state):
        return lax.scan(lambda s, _: (advance(s), s), state, None, length=200)[1].sum(axis=1)

    def checkpointed(state):
        body = jax.checkpoint(lambda s, _: (advance(s), s.sum()))
        return lax.scan(body, state, None, length=200)[1].sum()

    def temporaries(function):
        state = jax.ShapeDtypeStruct((1000,), jnp.float32)
        return jax.jit(function).lower(state).compile().memory_analysis().temp_size_in_bytes

    def gradient(function):
        return temporaries(jax.grad(lambda state: function(state).sum()))

    assert temporaries(sums) < temporaries(sums_afterwards) / 10
    assert gradient(sums) > 0.9 * gradient(sums_afterwards)
    assert gradient(checkpointed) < gradient(sums) / 2
