"""Branches and loops side by side."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

X = np.arange(4, dtype=np.float32)


def primitives(fn, *args):
    """The names of the outermost equations of the jaxpr of fn."""
    return [eqn.primitive.name for eqn in jax.make_jaxpr(fn)(*args).eqns]


@pytest.mark.claim(
    "select-does-not-promote",
    "`lax.select` wants both values in one shape and one dtype, where `jnp.where` broadcasts and promotes.",
)
def test_select_does_not_promote():
    p = X > 1
    for other in (X[:1], X.astype(int)):
        with pytest.raises(TypeError):
            lax.select(p, X, other)
        assert jnp.where(p, X, other).shape == X.shape


@pytest.mark.claim(
    "vmap-of-switch-computes-every-branch",
    "`vmap` of `switch` over a batch of indices computes each branch for the whole batch, and selects.",
)
def test_vmap_of_switch_computes_every_branch():
    f = jax.vmap(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x))
    index = jnp.array([2, 0, 1, 2])
    names = primitives(f, index, X)
    assert "cond" not in names
    assert {"sin", "cos", "tanh", "select_n"} <= set(names)
    assert np.allclose(f(index, X), [np.tanh(0), np.sin(1), np.cos(2), np.tanh(3)], atol=1e-6)


@pytest.mark.claim(
    "where-gradient-can-be-nan",
    "The gradient of `jnp.where` is `nan` where the derivative of the side that was not taken is infinite; "
    "a second `where` on its input fixes it.",
)
def test_where_gradient_can_be_nan():
    assert jnp.isnan(jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))(0.0))
    assert jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0))(0.0) == 0


@pytest.mark.claim(
    "cond-gradient-is-safe-under-vmap",
    "The gradient of `cond` is not `nan` because of the branch that was not taken, even when `vmap` makes "
    "a selection of it.",
)
def test_cond_gradient_is_safe_under_vmap():
    def root(x):
        return lax.cond(x > 0, jnp.sqrt, jnp.zeros_like, x)

    assert jax.grad(root)(0.0) == 0
    batch = jnp.array([0.0, 4.0])
    assert "select_n" in primitives(jax.vmap(root), batch)
    assert jax.vmap(jax.grad(root))(batch).tolist() == [0, 0.25]
    assert jax.grad(lambda x: jax.vmap(root)(x).sum())(batch).tolist() == [0, 0.25]


@pytest.mark.wrong_twin("cond-gradient-is-safe-under-vmap")
def test_wrong_twin_where_is_safe_too():
    root = jax.vmap(jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0)))
    assert root(jnp.array([0.0, 4.0])).tolist() == [0, 0.25]


@pytest.mark.claim(
    "while-loop-has-forward-derivatives",
    "`while_loop` has forward-mode derivatives, and `grad` of it raises `ValueError`.",
)
def test_while_loop_has_forward_derivatives():
    def f(x):
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, x))[1]

    assert jax.jacfwd(f)(2.0) == 4 * 2.0**3
    with pytest.raises(ValueError, match="Reverse-mode"):
        jax.grad(f)(2.0)


@pytest.mark.claim(
    "scan-that-stops-by-cond-has-a-gradient",
    "A `scan` over a limit of steps whose body stops changing by `cond` has the derivative of the "
    "`while_loop`, also under `vmap`; by `where` it is `nan` if the derivative of an unwanted step is "
    "infinite or `nan`.",
)
def test_scan_that_stops_by_cond_has_a_gradient():
    def root(y):
        return jnp.sqrt(y - 0.5)

    def limited(stop):
        return lambda x: lax.scan(lambda y, _: (stop(y > 0.5, y), None), x, None, length=10)[0]

    by_where = limited(lambda go_on, y: jnp.where(go_on, root(y), y))
    by_cond = limited(lambda go_on, y: lax.cond(go_on, root, lambda y: y, y))
    loop = jax.jacfwd(lambda x: lax.while_loop(lambda y: y > 0.5, root, x))
    x = jnp.array([0.55, 0.6, 0.95])
    assert np.allclose(by_where(x[0]), by_cond(x[0]))
    assert jnp.isnan(jax.grad(by_where)(x[0]))
    expected = [loop(number) for number in x]
    assert np.allclose([jax.grad(by_cond)(number) for number in x], expected)
    assert np.allclose(jax.vmap(jax.grad(by_cond))(x), expected)
    assert np.allclose(jax.grad(lambda x: jax.vmap(by_cond)(x).sum())(x), expected)


@pytest.mark.claim(
    "carry-error-names-the-component",
    "The error of a carry that changes names the component and both of its types.",
)
def test_carry_error_names_the_component():
    start = {"position": jnp.zeros(2), "reward": jnp.zeros(())}

    def body(state, _):
        return {**state, "reward": state["position"][:1]}, None

    with pytest.raises(TypeError, match=r"\['reward'\] has type float32\[\].*float32\[1\]"):
        lax.scan(body, start, None, length=3)
    lax.scan(body, {**start, "reward": jnp.zeros(1)}, None, length=3)


@pytest.mark.claim(
    "python-number-carry-is-promoted",
    "A carry that starts as a whole number of Python's, or as `jnp.array` of one, takes the float type that the body "
    "returns; a Python float does not become an integer, and a carry with a dtype of its own raises.",
)
def test_python_number_carry_is_promoted():
    def loop(start):
        return lax.scan(lambda c, _: (c + 1.5, None), start, None, length=3)[0]

    for start in (0, jnp.array(0)):
        assert (loop(start), loop(start).dtype) == (4.5, jnp.float32)
    for start in (jnp.int32(0), jnp.array(0, jnp.int32)):
        with pytest.raises(TypeError, match="dtypes do not match"):
            loop(start)
    with pytest.raises(TypeError):
        lax.fori_loop(0, 3, lambda i, _: i, 0.0)


@pytest.mark.wrong_twin("python-number-carry-is-promoted", raises=TypeError)
def test_wrong_twin_any_carry_is_promoted():
    assert lax.scan(lambda c, _: (c + 1.5, None), jnp.int32(0), None, length=3)[0] == 4.5


@pytest.mark.claim(
    "raise-in-an-untaken-branch-fires",
    "A `raise` in a branch of `cond` that is not taken fires, with jit and without: both branches are traced.",
)
@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_raise_in_an_untaken_branch_fires(wrap):
    def refuse(x):
        raise RuntimeError("not this branch")

    with pytest.raises(RuntimeError, match="not this branch"):
        wrap(lambda x: lax.cond(x < 0, refuse, jnp.sqrt, x))(4.0)


@pytest.mark.claim(
    "int-branch-is-not-unified-with-float",
    "A Python integer in one branch of `cond` and a `float32` in the other raise `TypeError`.",
)
def test_int_branch_is_not_unified_with_float():
    with pytest.raises(TypeError, match=r"(branch|true_fun)[\s\S]*(type|dtype)"):
        lax.cond(True, lambda: 1, lambda: jnp.float32(2))


@pytest.mark.claim(
    "list-of-functions-is-unrolled",
    "A list comprehension over functions is legal in a jitted function: each function's operations are unrolled.",
)
def test_list_of_functions_is_unrolled():
    functions = [jnp.sin, jnp.cos, jnp.tanh]
    names = primitives(lambda x: [f(x) for f in functions], X)
    assert names == ["sin", "cos", "tanh"]


@pytest.mark.claim(
    "traced-list-index-raises",
    "A traced index cannot pick from a Python list: it raises `TracerIntegerConversionError`; `switch` takes it.",
)
def test_traced_list_index_raises():
    functions = [jnp.sin, jnp.cos]
    with pytest.raises(jax.errors.TracerIntegerConversionError):
        jax.jit(lambda i, x: functions[i](x))(1, X)
    assert np.allclose(jax.jit(lambda i, x: lax.switch(i, functions, x))(1, X), np.cos(X), atol=1e-6)


def halvings(n, turns, limit=50):
    def halve(state):
        jax.debug.callback(lambda: turns.append(1))
        return state[0] // 2, state[1] + 1

    return lax.while_loop(lambda s: (s[0] != 1) & (s[1] < limit), halve, (n, 0))[1]


@pytest.mark.claim(
    "guard-by-cond-does-not-stop-a-batched-loop",
    "Under `vmap`, a `cond` around a `while_loop` does not keep an element out of the loop: one that does "
    "not end keeps the batch running.",
)
def test_guard_by_cond_does_not_stop_a_batched_loop():
    turns = []

    def guarded(n):
        return lax.cond(n > 0, lambda n: halvings(n, turns), jnp.zeros_like, n)

    assert jax.jit(guarded)(jnp.array(0)) == 0
    jax.effects_barrier()
    assert not turns
    assert jax.jit(jax.vmap(guarded))(jnp.array([8, 0])).tolist() == [3, 0]
    jax.effects_barrier()
    assert len(turns) == 50


@pytest.mark.claim(
    "safe-input-stops-a-batched-loop",
    "A `where` in front of a batched `while_loop` that replaces inputs for which it does not end lets it "
    "end.",
)
def test_safe_input_stops_a_batched_loop():
    turns = []
    safe = jax.jit(jax.vmap(lambda n: halvings(jnp.where(n > 0, n, 1), turns)))
    assert safe(jnp.array([8, 0])).tolist() == [3, 0]
    jax.effects_barrier()
    assert len(turns) == 3
