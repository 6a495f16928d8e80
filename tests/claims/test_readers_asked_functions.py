"""Static arguments of JAX, deleting, decorators, results, names."""

from functools import partial, wraps

import jax
import jax.numpy as jnp
import jax.scipy.linalg as linalg
import numpy as np
import pytest
from jax import lax

# Arguments that a function of JAX declares static ----------------------------------------------------------


@pytest.mark.claim(
    "functions-of-jax-have-static-arguments",
    "`jnp.triu` and `jnp.tril` with a traced `k`, and `jnp.diagonal` with a traced `offset`, raise ValueError "
    "`Non-hashable static arguments`. `jnp.where(jnp.tri(*x.shape, k=k, dtype=bool), x, 0)` takes a traced `k`.",
)
def test_functions_of_jax_have_static_arguments():
    x = jnp.arange(12.0).reshape(3, 4)
    for function in (jnp.triu, jnp.tril, lambda x, k: jnp.diagonal(x, offset=k)):
        assert jnp.array_equal(jax.jit(function, static_argnums=1)(x, 1), function(x, 1))
        with pytest.raises(ValueError, match="Non-hashable static arguments"):
            jax.jit(function)(x, 1)
    lower = jax.jit(lambda x, k: jnp.where(jnp.tri(*x.shape, k=k, dtype=bool), x, 0))
    for k in (-9, -1, 0, 2, 9):
        assert jnp.array_equal(lower(x, k), jnp.tril(x, k))


@pytest.mark.claim(
    "flag-of-a-factor-becomes-an-array",
    "`cho_factor` returns a flag that jit turns into an array, both on the way in and on the way out, so that "
    "`cho_solve` raises ValueError `Non-hashable static arguments`. Pass the factor alone, with the flag in the code. "
    "`lu_solve` takes what `lu_factor` returned.",
)
def test_flag_of_a_factor_becomes_an_array():
    a, b = jnp.array([[4.0, 1.0], [1.0, 3.0]]), jnp.array([1.0, 2.0])
    outside, inside = linalg.cho_factor(a), jax.jit(linalg.cho_factor)(a)
    assert isinstance(outside[1], bool)
    assert isinstance(inside[1], jax.Array)
    assert np.allclose(linalg.cho_solve(outside, b), [1 / 11, 7 / 11])
    for solve, factor in ((linalg.cho_solve, inside), (jax.jit(linalg.cho_solve), outside)):
        with pytest.raises(ValueError, match="Non-hashable static arguments"):
            solve(factor, b)
    alone = jax.jit(lambda factor, b: linalg.cho_solve((factor, False), b))
    assert np.allclose(alone(inside[0], b), [1 / 11, 7 / 11])
    assert np.allclose(jax.jit(linalg.lu_solve)(jax.jit(linalg.lu_factor)(a), b), [1 / 11, 7 / 11])


@pytest.mark.wrong_twin("flag-of-a-factor-becomes-an-array", raises=ValueError)
def test_wrong_twin_cho_solve_takes_the_factor_of_a_jitted_function():
    a, b = jnp.eye(2), jnp.ones(2)
    assert linalg.cho_solve(jax.jit(linalg.cho_factor)(a), b).tolist() == [1, 1]


# An index that is traced -----------------------------------------------------------------------------------


@pytest.mark.claim(
    "delete-at-a-traced-index-needs-a-promise",
    "`jnp.delete(x, i)` with a traced index raises ConcretizationTypeError. With `assume_unique_indices=True` it "
    "works, and an index beyond the end deletes the last entry. `jnp.insert` takes a traced index.",
)
def test_delete_at_a_traced_index_needs_a_promise():
    x = jnp.arange(5)
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(jnp.delete)(x, 1)
    promised = jax.jit(partial(jnp.delete, assume_unique_indices=True))
    for i in (0, 1, 4, -1, -5):
        assert promised(x, i).tolist() == np.delete(np.arange(5), i).tolist()
    for beyond in (5, 6, 1000):
        assert promised(x, beyond).tolist() == [0, 1, 2, 3]
    assert promised(x, np.array([3, 0])).tolist() == [1, 2, 4]
    for i in (0, 2, -1, 5):
        assert jax.jit(jnp.insert)(x, i, 9).tolist() == np.insert(np.arange(5), i, 9).tolist()


# Decorators ------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "decorator-below-jit-runs-while-tracing",
    "A decorator above `@jax.jit` runs its code on each call; one below `@jax.jit` runs it while JAX traces, and not on "
    "a hit.",
)
def test_decorator_below_jit_runs_while_tracing():
    ran = []

    def counting(name):
        def decorate(fn):
            count = 0

            @wraps(fn)
            def wrapper(*args):
                nonlocal count
                count += 1
                ran.append((name, count))
                return fn(*args)

            return wrapper

        return decorate

    @counting("above")
    @jax.jit
    @counting("below")
    def double(x):
        return x * 2

    for x in (jnp.ones(3), jnp.zeros(3), np.ones(3, np.float32)):
        double(x)
    assert ran == [("above", 1), ("below", 1), ("above", 2), ("above", 3)]


# Results ---------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "a-repeated-call-computes-again",
    "A jitted function computes again for values that it has had before, and returns another array.",
)
def test_a_repeated_call_computes_again():
    ran = []

    @jax.jit
    def counted(x):
        jax.debug.callback(lambda: ran.append(1))
        return x * 2

    x = jnp.arange(100_000.0)
    first, second = counted(x), counted(x)
    jax.effects_barrier()
    assert len(ran) == 2
    doubled = jax.jit(lambda x: x * 2)
    first, second = doubled(x), doubled(x)
    assert first is not second
    assert first.unsafe_buffer_pointer() != second.unsafe_buffer_pointer()


@pytest.mark.claim(
    "reverse-scan-keeps-the-order-of-inputs",
    "With `reverse=True`, `lax.scan` takes the last input first, and stacks its results in the order of the inputs.",
)
def test_reverse_scan_keeps_the_order_of_inputs():
    def step(total, x):
        return total + x, total + x

    xs = jnp.array([1.0, 2.0, 4.0])
    last, sums = jax.jit(lambda xs: lax.scan(step, 0.0, xs, reverse=True))(xs)
    assert last == 7
    assert sums.tolist() == [7, 6, 4]
    _, order = lax.scan(lambda i, _: (i + 1, i), 0, xs, reverse=True)
    assert order.tolist() == [2, 1, 0]


@pytest.mark.claim(
    "partial-comes-out-of-jit",
    "A jitted function can return a `jax.tree_util.Partial`: outside, it is a function that holds the arrays.",
)
def test_partial_comes_out_of_jit():
    @jax.jit
    def fit(x, y):
        return jax.tree_util.Partial(jnp.polyval, jnp.polyfit(x, y, 1))

    x = jnp.arange(4.0)
    curve = fit(x, 3 * x + 1)
    assert np.allclose(curve(jnp.array([0.0, 10.0])), [1, 31], atol=1e-4)
    assert np.allclose(jax.jit(curve)(2.0), 7, atol=1e-4)


# Names -----------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "compiled-functions-are-named-after-yours",
    "The compiled function is called `jit_` and the `__name__` of yours: a lambda is `jit__lambda`, and a `partial` has "
    "the name of its function, unless you set its `__name__` before you pass it to `jax.jit`.",
)
def test_compiled_functions_are_named_after_yours():
    def scaled(x, factor):
        return x * factor

    def module(function):
        return jax.jit(function).lower(1.0).as_text().split("@", 1)[1].split()[0]

    named = partial(scaled, factor=3)
    assert module(partial(scaled, factor=2)) == "jit_scaled"
    named.__name__ = "tripled"
    assert module(named) == "jit_tripled"
    assert module(lambda x: x + 1).rstrip("_") == "jit__lambda"
    assert module(partial(lambda x, y: x + y, 1.0)).rstrip("_") == "jit__lambda"
