"""Dispatch by type, defaults, windows, padding, powers."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


@pytest.mark.claim(
    "integer-to-a-negative-power",
    "An integer to a traced negative power is a wrong number without an error, such as 0 for `2**-1`; a static exponent "
    "raises `TypeError`, and a float base gives 0.5.",
)
def test_integer_to_a_negative_power():
    power = jax.jit(lambda x, n: x**n)
    assert power(2, -1) == 0
    assert power(jnp.arange(1, 4), -1)[2] > 2**30
    assert power(2.0, -1) == 0.5
    with pytest.raises(TypeError, match="negative power"):
        jax.jit(lambda x: x**-1)(2)


@pytest.mark.wrong_twin("integer-to-a-negative-power")
def test_wrong_twin_a_negative_power_is_a_fraction():
    assert jax.jit(lambda x, n: x**n)(2, -1) == 0.5


@pytest.mark.claim(
    "singledispatch-overlooks-tracers",
    "A function that `functools.singledispatch` has registered for `jax.Array` is passed over under jit, `grad` and "
    "`vmap`, and the default runs; registered for `jax.core.Tracer` as well, it runs.",
)
def test_singledispatch_overlooks_tracers():
    def made(*classes):
        @functools.singledispatch
        def energy(x):
            return 0.0

        for cls in classes:
            energy.register(cls, lambda x: (x**2).sum())
        return energy

    x = jnp.ones(3)
    for classes, value, slope in (((jax.Array,), 0, 0), ((jax.Array, jax.core.Tracer), 3, 2)):
        energy = made(*classes)
        assert energy(x) == 3
        assert jax.jit(energy)(x) == value
        assert jax.grad(energy)(x).tolist() == [slope] * 3
        assert jax.vmap(energy)(x[None]) == value


@pytest.mark.claim(
    "array-as-a-default-of-a-dataclass-is-refused",
    "A dataclass refuses a JAX array as the default of a field with `ValueError`, `use default_factory`; a factory works, "
    "and a `NamedTuple` takes the array.",
)
def test_array_as_a_default_of_a_dataclass_is_refused():
    array = jnp.zeros(3)
    with pytest.raises(ValueError, match="use default_factory"):

        @dataclasses.dataclass
        class Refused:
            x: jax.Array = array

    @dataclasses.dataclass
    class Made:
        x: jax.Array = dataclasses.field(default_factory=lambda: jnp.zeros(3))

    class Named(NamedTuple):
        x: jax.Array = array

    assert Made().x.shape == Named().x.shape == (3,)


@pytest.mark.claim(
    "rolling-sums-by-cumsum-lose-digits",
    "For a random walk of 200,000 steps in `float32`, the standard deviation of a rolling window by differences of a "
    "`cumsum` is off by more than its own size; that of the windows is right to a thousandth.",
)
def test_rolling_sums_by_cumsum_lose_digits():
    walk = np.random.default_rng(0).normal(size=200_000).cumsum()
    width = 50

    def windows(x):
        return x[jnp.arange(x.size - width + 1)[:, None] + jnp.arange(width)]

    def rolling(x):
        total = jnp.cumsum(jnp.concatenate([jnp.zeros(1), x]))
        return (total[width:] - total[:-width]) / width

    x = jnp.asarray(walk, "float32")
    right = np.lib.stride_tricks.sliding_window_view(walk, width).std(axis=1)
    by_cumsum = jnp.sqrt(jnp.maximum(rolling(x**2) - rolling(x) ** 2, 0))
    by_windows = jax.jit(lambda x: windows(x).std(axis=1))(x)
    assert np.abs(by_cumsum - right).max() > np.median(right)
    assert np.abs(by_windows - right).max() < 1e-3 * np.median(right)


@pytest.mark.claim(
    "reduce-window-sums-a-rolling-window",
    "`lax.reduce_window` with `lax.add` sums a rolling window, and `jax.grad` of it works.",
)
def test_reduce_window_sums_a_rolling_window():
    def total(x):
        return lax.reduce_window(x, 0.0, lax.add, (3,), (1,), "VALID")

    assert jax.jit(total)(jnp.arange(5.0)).tolist() == [3, 6, 9]
    assert jax.grad(lambda x: total(x).sum())(jnp.arange(5.0)).tolist() == [1, 2, 3, 2, 1]


@pytest.mark.claim(
    "identity-pads-a-matrix",
    "A positive definite matrix that is padded with the identity has the same determinant, and with a right-hand side "
    "padded with zeros the same solution and gradient.",
)
def test_identity_pads_a_matrix():
    def negative_log_likelihood(scale, x, y, mask):
        kernel = jnp.exp(-((x[:, None] - x) ** 2) / scale) + 0.1 * jnp.eye(x.size)
        kernel = jnp.where(mask[:, None] & mask, kernel, jnp.eye(x.size))
        factor = jnp.linalg.cholesky(kernel)
        w = jax.scipy.linalg.solve_triangular(factor, jnp.where(mask, y, 0.0), lower=True)
        return w @ w / 2 + jnp.log(jnp.diag(factor)).sum()

    f = jax.jit(jax.value_and_grad(negative_log_likelihood))
    x, y = jnp.arange(5.0), jnp.sin(jnp.arange(5.0))
    value, slope = f(2.0, x, y, jnp.ones(5, bool))
    padded, its_slope = f(2.0, jnp.pad(x, (0, 3)), jnp.pad(y, (0, 3)), jnp.arange(8) < 5)
    assert padded == pytest.approx(float(value), rel=1e-5)
    assert its_slope == pytest.approx(float(slope), rel=1e-4)


@pytest.mark.claim(
    "counting-resamples-by-weight",
    "Systematic resampling by one scatter and one `cumsum` draws a particle within one of its expected number of times, "
    "and does not draw one of weight 0.",
)
def test_counting_resamples_by_weight():
    @jax.jit
    def resample(key, weights):
        n = weights.size
        total = jnp.cumsum(weights)
        ends = total / total[-1] * n - jax.random.uniform(key)
        ends = jnp.ceil(ends).astype(int).at[-1].set(n)
        copies = jnp.zeros(n, int).at[ends].add(1, mode="drop")
        return jnp.cumsum(copies)

    weights = jnp.array([0.0, 1.0, 2.5, 0.5, 0.0, 4.0])
    for seed in range(20):
        drawn = jnp.bincount(resample(jax.random.key(seed), weights), length=6)
        assert drawn.sum() == 6
        assert jnp.abs(drawn - 6 * weights / weights.sum()).max() < 1.001
        assert drawn[0] == drawn[4] == 0


@pytest.mark.claim(
    "einsum-path-contracts-two-at-a-time",
    "`jnp.einsum` with a path that contracts three operands at once raises `NotImplementedError`.",
)
def test_einsum_path_contracts_two_at_a_time():
    a = jnp.ones((2, 2))
    with pytest.raises(NotImplementedError, match="3 or more operands"):
        jnp.einsum("ij,jk,kl->il", a, a, a, optimize=[(0, 1, 2)])


@pytest.mark.claim(
    "numpy-matrix-is-multiplied-by-element",
    "Under jit, a `np.matrix` is a plain array, so `a * a` multiplies element by element, where NumPy multiplies matrices.",
)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_numpy_matrix_is_multiplied_by_element():
    a = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    assert (a * a).tolist() == [[7, 10], [15, 22]]
    assert jax.jit(lambda a: a * a)(a).tolist() == [[1, 4], [9, 16]]


@pytest.mark.claim(
    "broad-except-hides-a-tracer-error",
    "A `try` with `except Exception` around an `if` on a traced value takes the `except` while JAX traces, and the jitted "
    "function returns the wrong branch without an error.",
)
def test_broad_except_hides_a_tracer_error():
    def absolute(x):
        try:
            if x > 0:
                return x
        except Exception:
            pass
        return -x

    assert absolute(3.0) == 3
    assert jax.jit(absolute)(3.0) == -3


@pytest.mark.claim(
    "sph-harm-y-checks-neither-lengths-nor-n-max",
    "`jax.scipy.special.sph_harm_y` gives wrong values without an error for one `n` and several angles, and for an `n` "
    "above `n_max`; with four arguments of one length and a larger `n_max` they are those of the formula.",
)
def test_sph_harm_y_checks_neither_lengths_nor_n_max():
    harmonic = getattr(jax.scipy.special, "sph_harm_y", None)
    if harmonic is None:
        pytest.skip("not applicable: this JAX has no sph_harm_y")
    theta, phi = jnp.array([0.1, 0.5, 1.0, 2.0]), jnp.array([0.0, 0.2, 0.4, 0.6])
    right = np.sqrt(5 / (16 * np.pi)) * (3 * np.cos(theta) ** 2 - 1)  # n = 2, m = 0

    def error(n, m, n_max):
        return float(np.abs(harmonic(n, m, theta, phi, n_max=n_max) - right).max())

    one, four = jnp.array([2]), jnp.full(4, 2)
    assert error(four, 0 * four, 2) < 1e-5
    assert error(one, 0 * one, 2) > 0.1
    assert error(four, 0 * four, 1) > 0.1


LOGGED = """
import os, sys
os.dup2(1, 2)  # what XLA logs comes back as well
if sys.argv[1] == "before":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import jax, jax.numpy as jnp
if sys.argv[1] == "after":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
x = jnp.ones(3)
try:
    jax.jit(lambda a, b: a + b, donate_argnums=0)(x, x)
except Exception:
    pass
"""


@pytest.mark.claim(
    "log-level-of-xla-counts-before-the-import",
    "`TF_CPP_MIN_LOG_LEVEL=3` hides a log line of level E from XLA if it is set before JAX is imported, not after.",
)
def test_log_level_of_xla_counts_before_the_import(child):
    if not child(LOGGED, "never"):
        pytest.skip("not applicable: this JAX logs nothing here")
    assert child(LOGGED, "before") == ""
    assert "buffer" in child(LOGGED, "after")
