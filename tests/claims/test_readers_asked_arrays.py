"""Constants that become tracers, counts, dates, fits, Fourier transforms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

# Values that depend on no argument ---------------------------------------------------------------------------


def message(function):
    with pytest.raises(jax.errors.ConcretizationTypeError) as caught:
        jax.jit(function)(1.0)
    return str(caught.value)


@pytest.mark.claim(
    "value-from-constants-names-operations",
    "Under jit, the error for a value that `jnp` computed from constants names the operations instead of an argument; "
    "that for a value which depends on an argument names the argument. With Python's or NumPy's function it works.",
)
def test_value_from_constants_names_operations():
    ids = np.array([2, 1, 3])
    on_device = jnp.asarray(ids)
    ours, arguments = "became a tracer due to JAX operations", "depends on the value of the argument x"
    for function in (
        lambda x: x * int(on_device[0]),
        lambda x: jnp.linspace(0, x, jnp.maximum(3, 4)),
        lambda x: x if jnp.any(on_device > 2) else -x,
    ):
        assert ours in message(function)
        assert arguments not in message(function)
    assert arguments in message(lambda x: int(x * on_device[0]))
    assert ours not in message(lambda x: int(x * on_device[0]))
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(lambda x: x * jnp.unique(on_device).size)(1.0)
    assert jax.jit(lambda x: x * int(ids[0]) * np.unique(ids).size)(1.0) == 6
    assert jax.jit(lambda x: jnp.linspace(0, x, max(3, 4)))(1.0).shape == (4,)


@pytest.mark.wrong_twin("value-from-constants-names-operations")
def test_wrong_twin_a_value_from_an_argument_names_operations():
    assert "became a tracer due to JAX operations" in message(lambda x: int(x * 2))


# Counts and dates -------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "histogram-counts-stop-at-two-to-the-24",
    "`jnp.histogram` counts in `float32`, so a bin with 2**24 + 8 entries gets the count 2**24, where `jnp.bincount` "
    "gives the true one. Under jit, a boolean mask as `weights=` counts the selected entries.",
)
def test_histogram_counts_stop_at_two_to_the_24():
    count = 2**24 + 8
    x = jnp.full(count, 0.5)
    counts = jnp.histogram(x, bins=2, range=(0, 1))[0]
    assert counts.dtype == jnp.float32
    assert counts.tolist() == [0, 2**24]
    assert jnp.bincount((x * 2).astype(int), length=2).tolist() == [0, count]
    few, mask = jnp.array([0.2, 0.5, 0.9]), jnp.array([False, True, True])
    masked = jax.jit(lambda x, mask: jnp.histogram(x, bins=3, range=(0, 1), weights=mask)[0])
    assert masked(few, mask).tolist() == [0, 1, 1]


@pytest.mark.claim(
    "dates-are-refused-and-nanoseconds-overflow",
    "jit refuses NumPy's `datetime64` and `timedelta64` with a TypeError. Five seconds as integer nanoseconds silently "
    "become 705032704; divided by a unit in NumPy, they stay 5.",
)
def test_dates_are_refused_and_nanoseconds_overflow():
    @jax.jit
    def unchanged(t):
        return t

    dates = np.array(["2026-11-26", "2026-11-28"], "datetime64[ns]")
    for refused in (dates, dates - dates[0], dates.astype("datetime64[s]")):
        with pytest.raises(TypeError):
            unchanged(refused)
    seconds = np.array([5], "timedelta64[s]").astype("timedelta64[ns]")
    assert unchanged(seconds.astype(np.int64)).tolist() == [705032704]
    assert unchanged(seconds / np.timedelta64(1, "s")).tolist() == [5]
    assert unchanged((dates - dates[0]) / np.timedelta64(1, "D")).tolist() == [0, 2]


# Static objects ---------------------------------------------------------------------------------------------


class Description:
    """A static value that counts how often JAX hashes and compares it."""

    hashes = comparisons = 0

    def __init__(self, factor):
        self.factor = factor

    def __hash__(self):
        Description.hashes += 1
        return hash(self.factor)

    def __eq__(self, other):
        Description.comparisons += 1
        return self.factor == other.factor


@jax.tree_util.register_pytree_node_class
class Model:
    def __init__(self, weights, description):
        self.weights, self.description = weights, description

    def tree_flatten(self):
        return (self.weights,), self.description

    @classmethod
    def tree_unflatten(cls, description, children):
        return cls(*children, description)


def costs(call):
    """Return the hashes and comparisons of one call."""
    Description.hashes = Description.comparisons = 0
    call()
    return Description.hashes, Description.comparisons


@pytest.mark.claim(
    "static-argument-is-hashed-in-each-call",
    "On a cache hit, JAX hashes a static argument, and compares it too if it is a new equal object. A static field of "
    "a pytree is not hashed, and is compared if it is a new equal object.",
)
def test_static_argument_is_hashed_in_each_call():
    weights, one = jnp.ones(3), Description(2.0)
    by_static = jax.jit(lambda x, d: x * d.factor, static_argnames="d")
    by_field = jax.jit(lambda model: model.weights * model.description.factor)
    for _ in range(2):
        by_static(weights, d=one)
        by_field(Model(weights, one))
    hashes, comparisons = costs(lambda: by_static(weights, d=one))
    assert hashes >= 1
    assert comparisons == 0
    hashes, comparisons = costs(lambda: by_static(weights, d=Description(2.0)))
    assert hashes >= 1
    assert comparisons >= 1
    assert costs(lambda: by_field(Model(weights, one))) == (0, 0)
    hashes, comparisons = costs(lambda: by_field(Model(weights, Description(2.0))))
    assert hashes == 0
    assert comparisons >= 1


# A fit, and Fourier transforms ------------------------------------------------------------------------------

TIMES = np.linspace(0.0, 2.0, 30, dtype=np.float32)


def decay(params):
    return params[0] * jnp.exp(-params[1] * TIMES) + params[2]


def fit(y, params, steps=50):
    def residual(params):
        return decay(params) - y

    def step(_, state):
        params, damping = state
        jacobian, r = jax.jacfwd(residual)(params), residual(params)
        normal = jacobian.T @ jacobian
        normal = normal + damping * jnp.diag(jnp.diag(normal))
        new = params - jnp.linalg.solve(normal, jacobian.T @ r)
        better = jnp.sum(residual(new) ** 2) < jnp.sum(r**2)
        params = jnp.where(better, new, params)
        return params, jnp.where(better, damping / 3, damping * 2)

    return lax.fori_loop(0, steps, step, (params, 1e-2))[0]


@pytest.mark.claim(
    "levenberg-marquardt-fits-under-vmap",
    "Fifty steps of the Levenberg-Marquardt method in a `fori_loop`, under jit and `vmap`, find the parameters of three "
    "exponentials, each in its own data.",
)
def test_levenberg_marquardt_fits_under_vmap():
    truth = jnp.array([[2.0, 1.5, 0.3], [1.0, 0.7, -0.2], [3.0, 3.0, 1.0]])
    data = jax.vmap(decay)(truth)
    fits = jax.jit(jax.vmap(fit, in_axes=(0, None)))(data, jnp.ones(3))
    assert np.allclose(fits, truth, atol=1e-3)


@jax.jit
def dft(x, n):
    j = jnp.arange(x.size)
    turn = jnp.exp(-1j * jnp.pi * ((j * j) % (2 * n)) / n)
    a = jnp.where(j < n, x * turn, 0)
    size, back = 2 * x.size, turn.conj()
    kernel = jnp.zeros(size, a.dtype).at[j].set(back).at[-j].set(back)
    y = jnp.fft.ifft(jnp.fft.fft(a, size) * jnp.fft.fft(kernel))
    return jnp.where(j < n, y[: x.size] * turn, 0)


@pytest.mark.claim(
    "bluestein-takes-a-traced-length",
    "Bluestein's algorithm gives the discrete Fourier transforms of the first n elements for a traced n, in one "
    "compilation and under `vmap`; the FFT of data padded with zeros differs from them.",
)
def test_bluestein_takes_a_traced_length(counted):
    x = np.random.default_rng(0).normal(size=16).astype(np.float32)
    dft(x, 7).block_until_ready()
    counted()
    results = {n: dft(x, n) for n in (1, 5, 12, 16)}
    assert not counted()["compiles"]
    for n, result in results.items():
        assert np.allclose(result[:n], np.fft.fft(x[:n]), atol=1e-5)
        assert not np.any(result[n:])
    batch = jax.vmap(partial(dft, x))(jnp.array([5, 12]))
    assert np.allclose(batch[0, :5], np.fft.fft(x[:5]), atol=1e-5)
    padded = np.fft.fft(np.pad(x[:5], (0, 11)))
    assert not np.allclose(padded[:5], np.fft.fft(x[:5]), atol=1e-2)
