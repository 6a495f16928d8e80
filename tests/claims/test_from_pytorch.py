"""Coming from PyTorch: no_grad, detach, hooks, updates in place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

# no_grad, detach, hooks -------------------------------------------------------------------------------------

WEIGHTS, ROWS = np.full((64, 64), 0.01, np.float32), np.ones((1024, 64), np.float32)


def deep(weights, x):
    for _ in range(20):
        x = jnp.tanh(x @ weights)
    return x.sum()


def detached(weights, x):
    return deep(lax.stop_gradient(weights), x)


def memory(function, *arguments, **options):
    stats = jax.jit(function, **options).lower(*arguments).compile().memory_analysis()
    if stats is None:
        pytest.skip("not applicable: this backend reports no memory use")
    return stats


def temporaries(function):
    return memory(function, WEIGHTS, ROWS).temp_size_in_bytes


@pytest.mark.claim(
    "forward-pass-stores-no-activations",
    "A jitted forward pass of twenty layers needs less temporary memory than the activations of three of them; its "
    "gradient needs more than those of ten.",
)
def test_forward_pass_stores_no_activations():
    assert temporaries(deep) < 3 * ROWS.nbytes
    assert temporaries(jax.grad(deep)) > 10 * ROWS.nbytes


@pytest.mark.wrong_twin("forward-pass-stores-no-activations")
def test_wrong_twin_the_forward_pass_stores_activations():
    assert temporaries(deep) > 10 * ROWS.nbytes


@pytest.mark.claim(
    "stop-gradient-detaches",
    "`jax.lax.stop_gradient(x)` has the value of `x` and a derivative of zero; in a product with `x` itself, the "
    "derivative is that of the other factor, and with all weights detached, the gradient stores as little as a "
    "forward pass.",
)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, lambda f: jax.jit(jax.jit(f))])
def test_stop_gradient_detaches(wrap):
    def half_detached(x):
        return x * lax.stop_gradient(x)

    assert wrap(half_detached)(3.0) == 9.0
    assert jax.grad(wrap(half_detached))(3.0) == 3.0
    assert jax.grad(wrap(lax.stop_gradient))(3.0) == 0.0
    assert not np.any(jax.grad(wrap(detached))(WEIGHTS, ROWS))
    assert temporaries(jax.grad(wrap(detached))) < 3 * ROWS.nbytes


def loss_of(params, hidden):
    return jnp.mean((hidden @ params["b"]) ** 2)


def loss(params, x, zero):
    hidden = jnp.tanh(x @ params["a"]) + zero
    return loss_of(params, hidden), hidden


@pytest.mark.claim(
    "added-zero-gives-the-gradient-of-an-intermediate-value",
    "Where a function adds a zero to an intermediate value, the gradient with respect to that zero is the gradient "
    "with respect to the value, and the gradient of the parameters stays the same; `has_aux=True` returns the value.",
)
def test_added_zero_gives_the_gradient_of_an_intermediate_value():
    params, x = {"a": jnp.full((3, 4), 0.1), "b": jnp.ones((4, 2))}, jnp.arange(6.0).reshape(2, 3)
    both = jax.jit(jax.value_and_grad(loss, argnums=(0, 2), has_aux=True))
    (_, hidden), (params_grad, hidden_grad) = both(params, x, jnp.zeros((2, 4)))
    np.testing.assert_allclose(hidden, jnp.tanh(x @ params["a"]), rtol=1e-6)
    np.testing.assert_allclose(hidden_grad, jax.grad(loss_of, argnums=1)(params, hidden), rtol=1e-5)
    alone = jax.grad(lambda params: loss(params, x, 0.0)[0])(params)
    for name in params:
        np.testing.assert_allclose(params_grad[name], alone[name], rtol=1e-5)


# One condition for each row ---------------------------------------------------------------------------------

DONE = np.array([True, False, False])
OLD, NEW = np.zeros((3, 3)), np.ones((3, 3))


@pytest.mark.claim(
    "where-lines-a-vector-condition-up-with-the-last-axis",
    "For three conditions and matrices of three by three, `jnp.where(done, new, old)` selects columns without an "
    "error, and `jax.vmap(jnp.where)(done, new, old)` selects rows.",
)
def test_where_lines_a_vector_condition_up_with_the_last_axis():
    expected = np.array([[1, 0, 0]] * 3)
    for where in (jnp.where, jax.jit(jnp.where)):
        assert np.array_equal(where(DONE, NEW, OLD), expected)
    for where in (jax.vmap(jnp.where), jax.jit(jax.vmap(jnp.where))):
        assert np.array_equal(where(DONE, NEW, OLD), expected.T)


@pytest.mark.wrong_twin("where-lines-a-vector-condition-up-with-the-last-axis")
def test_wrong_twin_where_selects_rows():
    assert np.array_equal(jnp.where(DONE, NEW, OLD), [[1, 1, 1], [0, 0, 0], [0, 0, 0]])


# Updates ----------------------------------------------------------------------------------------------------

BIG, PLACES = np.zeros(100_000, np.float32), np.arange(50)


def returns_old(x, i):
    return x.at[i].add(1.0), x[i]


def returns_new(x, i):
    x = x.at[i].add(1.0)
    return x, x[i]


def loop_of(step):
    return jax.jit(lambda x: lax.scan(step, x, PLACES), donate_argnums=0).lower(BIG).compile()


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "temporaries-show-an-update-that-copies-in-a-loop",
    "On a CPU, the compiled text of a `scan` that updates its donated carry in place contains `copy` as well; its "
    "temporaries are less than a hundredth of the array, and as large as the array where each step copies it.",
)
def test_temporaries_show_an_update_that_copies_in_a_loop():
    in_place, copying = loop_of(returns_new), loop_of(returns_old)
    assert " copy(" in in_place.as_text()
    assert in_place.memory_analysis().temp_size_in_bytes < BIG.nbytes / 100
    assert copying.memory_analysis().temp_size_in_bytes >= BIG.nbytes


@pytest.mark.wrong_twin("temporaries-show-an-update-that-copies-in-a-loop")
def test_wrong_twin_an_update_in_place_needs_as_much():
    assert loop_of(returns_new).memory_analysis().temp_size_in_bytes >= BIG.nbytes


TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
STARTS, VALUES = np.array([2, 0, 3]), np.array([70.0, 80.0, 90.0], np.float32)


def update_row(row, value, start):
    return lax.dynamic_update_slice(row, value[None], (start,))


@pytest.mark.claim(
    "masked-write-replaces-an-update-for-each-row",
    "`jnp.where(jnp.arange(n) == starts[:, None], values[:, None], x)` writes what `jax.vmap` of a "
    "`dynamic_update_slice` of one element writes.",
)
def test_masked_write_replaces_an_update_for_each_row():
    def masked(x, values, starts):
        return jnp.where(jnp.arange(x.shape[1]) == starts[:, None], values[:, None], x)

    expected = TABLE.copy()
    expected[np.arange(3), STARTS] = VALUES
    for write in (masked, jax.vmap(update_row)):
        assert np.array_equal(jax.jit(write)(TABLE, VALUES, STARTS), expected)


# Several steps in each iteration of a while_loop --------------------------------------------------------------


def unfinished(state):
    return state[0] > 1


def one(state):
    n, count = state
    return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1


def eight(state):
    def guarded(_, state):
        return jax.tree_util.tree_map(
            lambda new, old: jnp.where(unfinished(state), new, old), one(state), state
        )

    return lax.fori_loop(0, 8, guarded, state, unroll=True)


@pytest.mark.claim(
    "guarded-steps-in-one-iteration-give-the-same-result",
    "A `while_loop` whose body takes eight steps, each of which keeps the state of an element that has finished, "
    "returns what the loop of single steps returns, also under `vmap`, in an eighth of the iterations, rounded up.",
)
def test_guarded_steps_in_one_iteration_give_the_same_result():
    def run(body):
        def counted(state):
            return body(state[0]), state[1] + 1

        def loop(n):
            return lax.while_loop(lambda state: unfinished(state[0]), counted, ((n, 0), 0))

        return jax.jit(loop)

    for n, steps in ((1, 0), (2, 1), (27, 111), (97, 118), (871, 178)):
        (_, count), iterations = run(one)(n)
        assert count == iterations == steps
        (_, count), iterations = run(eight)(n)
        assert (count, iterations) == (steps, -(-steps // 8))
    numbers = jnp.array([27, 97, 871, 1, 2])
    assert jax.vmap(run(eight))(numbers)[0][1].tolist() == [111, 118, 178, 0, 1]


# Eigenvalues on the host --------------------------------------------------------------------------------------


def host_eigvals(a):
    return np.linalg.eigvals(np.asarray(a)).astype(np.complex64)


def eigvals(a):
    out = jax.ShapeDtypeStruct(a.shape[:-1], jnp.complex64)
    return jax.pure_callback(host_eigvals, out, a, vmap_method="broadcast_all")


@pytest.mark.claim(
    "eigenvalues-by-callback-under-jit-and-vmap",
    "A `pure_callback` of `np.linalg.eigvals` with `vmap_method='broadcast_all'` gives the eigenvalues of a matrix "
    "under jit, and those of a batch of matrices under `vmap`.",
)
def test_eigenvalues_by_callback_under_jit_and_vmap():
    turn = np.array([[0.0, -1.0], [1.0, 0.0]], np.float32)
    batch = jnp.asarray(np.stack([turn, 2 * turn, np.diag([1.0, 3.0])]).astype(np.float32))
    expected = np.array([[-1j, 1j], [-2j, 2j], [1, 3]])
    found = np.sort(np.asarray(jax.jit(jax.vmap(eigvals))(batch)), axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(np.sort(np.asarray(jax.jit(eigvals)(batch[1]))), expected[1], atol=1e-6)
