"""Recipes with other data or functions than their example has."""

import io
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify, serialize_executable

try:
    from jax import enable_x64, export
except ImportError:
    from jax import export
    from jax.experimental import enable_x64


def donating_log():
    """Return a donating function that is already compiled."""
    step = jax.jit(jnp.log, donate_argnums=0)
    step(jnp.ones(2)).block_until_ready()
    return step


@pytest.mark.claim(
    "debug-nans-rerun-needs-the-donated-argument",
    "Under `debug_nans`, a donating function that was compiled before and returns `nan` raises `Array has been deleted`, "
    "and the argument is lost; with `disable_jit` as well, or in a jit of the plain function, the error names the "
    "operation and the argument stays.",
)
def test_debug_nans_rerun_needs_the_donated_argument():
    step, x = donating_log(), -jnp.ones(2)
    with jax.debug_nans(True), pytest.raises(RuntimeError, match="Array has been deleted"):
        step(x)
    assert x.is_deleted()
    x = -jnp.ones(2)
    with jax.debug_nans(True):
        with jax.disable_jit(), pytest.raises(FloatingPointError, match="log"):
            step(x)
        with pytest.raises(FloatingPointError, match="log"):
            jax.jit(step.__wrapped__)(x)
    assert not x.is_deleted()


@pytest.mark.wrong_twin("debug-nans-rerun-needs-the-donated-argument", raises=RuntimeError)
def test_wrong_twin_debug_nans_names_the_operation_of_a_donating_function():
    step = donating_log()
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        step(-jnp.ones(2))


@pytest.mark.claim(
    "debug-nans-loses-a-ref",
    "Under `debug_nans`, a jitted function that returns `nan` and uses a ref from outside raises `Array has been deleted`, "
    "and the ref is lost; with `disable_jit` as well, the error names the operation and the ref stays.",
)
def test_debug_nans_loses_a_ref():
    ref = jax.new_ref(jnp.zeros(()))

    @jax.jit
    def f(x):
        ref[...] += 1.0
        return jnp.log(x)

    with jax.debug_nans(True):
        with jax.disable_jit(), pytest.raises(FloatingPointError, match="log"):
            f(-1.0)
        assert ref[...] == 1.0
        with pytest.raises(RuntimeError, match="Array has been deleted"):
            f(-1.0)
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        ref[...].block_until_ready()


TIMES = jnp.linspace(0, 4, 50)


def decay(params):
    return params[0] * jnp.exp(-params[1] * TIMES)


def fit(y, params, damped):
    def residual(params):
        return decay(params) - y

    def step(_, state):
        params, damping = state
        jacobian, r = jax.jacfwd(residual)(params), residual(params)
        normal = jacobian.T @ jacobian
        normal = normal + damping * jnp.diag(damped(jnp.diag(normal)))
        new = params - jnp.linalg.solve(normal, jacobian.T @ r)
        better = jnp.sum(residual(new) ** 2) < jnp.sum(r**2)
        params = jnp.where(better, new, params)
        return params, jnp.where(better, damping / 3, damping * 2)

    return lax.fori_loop(0, 50, step, (params, 1e-2))[0]


@pytest.mark.claim(
    "levenberg-marquardt-damps-a-column-of-zeros",
    "If a column of the Jacobian is zero, a Levenberg-Marquardt fit whose damping is a multiple of the diagonal of "
    "`J.T @ J` stays at the start; with 1 in place of the zero on the diagonal, it finds the parameters.",
)
@pytest.mark.parametrize("start", [[0.0, 1.0], [0.0, 0.0]])
def test_levenberg_marquardt_damps_a_column_of_zeros(start):
    y, start = decay(jnp.array([2.0, 1.5])), jnp.array(start)
    assert fit(y, start, lambda d: d).tolist() == start.tolist()
    found = fit(y, start, lambda d: jnp.where(d > 0, d, 1.0))
    np.testing.assert_allclose(found, [2.0, 1.5], atol=1e-3)


@pytest.mark.claim(
    "levenberg-marquardt-returns-the-start-for-data-with-nan",
    "A Levenberg-Marquardt fit under `vmap` returns the start, without an error, for a curve with a `nan` in its data.",
)
def test_levenberg_marquardt_returns_the_start_for_data_with_nan():
    truth = jnp.array([[2.0, 1.5], [3.0, 0.5]])
    data = jax.vmap(decay)(truth).at[0, 7].set(jnp.nan)
    fits = jax.vmap(lambda y: fit(y, jnp.ones(2), lambda d: jnp.where(d > 0, d, 1.0)))(data)
    assert fits[0].tolist() == [1.0, 1.0]
    np.testing.assert_allclose(fits[1], truth[1], atol=1e-3)


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "used-sort-is-saved-after-clear-cache",
    "On a CPU, if a jitted sort was called, what its `lower().compile()` returns can't be serialized; after "
    "`clear_cache()`, it can.",
)
@pytest.mark.parametrize("function", [jnp.sort, jnp.argsort, jnp.median], ids=["sort", "argsort", "median"])
def test_used_sort_is_saved_after_clear_cache(function):
    f, x = jax.jit(lambda x: function(x)), jnp.array([3.0, 1.0, 2.0])
    f(x).block_until_ready()
    with pytest.raises(Exception, match="is not serializable"):
        serialize_executable.serialize(f.lower(x).compile())
    f.clear_cache()
    assert serialize_executable.serialize(f.lower(x).compile())


def with_pure_callback(x):
    return jax.pure_callback(lambda a: 2 * np.asarray(a), x, x)


def with_print(x):
    jax.debug.print("{}", x)
    return x


@pytest.mark.claim(
    "executable-with-a-callback-is-not-saved",
    "`serialize_executable.serialize` raises an error about `emit_python_callback` for an executable with a "
    "`pure_callback` or a `jax.debug.print`.",
)
@pytest.mark.parametrize("function", [with_pure_callback, with_print])
def test_executable_with_a_callback_is_not_saved(function):
    compiled = jax.jit(function).lower(jnp.ones(3)).compile()
    with pytest.raises((AttributeError, pickle.PicklingError), match="emit_python_callback"):
        serialize_executable.serialize(compiled)


def vector(length):
    return jax.ShapeDtypeStruct((length,), jnp.float32)


def squares(x):
    return lax.fori_loop(0, x.shape[0], lambda i, total: total + x[i] ** 2, 0.0)


@pytest.mark.claim(
    "export-with-an-open-size-may-lack-a-gradient",
    "`cumprod`, `cummax` and a `fori_loop` up to the open size can be exported, but `grad` of the export raises; "
    "exported for a fixed size, it works.",
)
@pytest.mark.parametrize("function", [jnp.cumprod, lax.cummax, squares])
def test_export_with_an_open_size_may_lack_a_gradient(function):
    (b,), x = export.symbolic_shape("b"), jnp.arange(1.0, 4.0)
    jitted = jax.jit(lambda x: function(x).sum())
    fixed, free = (export.export(jitted)(vector(n)).call for n in (3, b))
    np.testing.assert_allclose(free(x), jitted(x), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(fixed)(x), jax.grad(jitted)(x), rtol=1e-6)
    with pytest.raises((NotImplementedError, ValueError)):
        jax.grad(free)(x)


REFUSALS = ("InconclusiveDimensionOperation", "NotImplementedError", "TypeError")
OPEN_AXIS = {
    "fft": jnp.fft.fft,
    "associative_scan": lambda x: lax.associative_scan(jnp.add, x),
    "linspace": lambda x: x * jnp.linspace(0, 1, x.shape[0]),
    "searchsorted": lambda x: jnp.searchsorted(x, 0.5),
    "permutation": lambda x: jax.random.permutation(jax.random.key(0), x),
    "convolve": lambda x: jnp.convolve(x, jnp.ones(3)),
    "map": lambda x: lax.map(jnp.sin, x, batch_size=2),
}


@pytest.mark.claim(
    "export-refuses-functions-over-an-open-axis",
    "An FFT, `associative_scan`, `linspace`, `searchsorted`, `random.permutation`, `convolve` and a `lax.map` with "
    "`batch_size` can't be exported over an axis of open size, but for a fixed one.",
)
@pytest.mark.parametrize("name", OPEN_AXIS)
def test_export_refuses_functions_over_an_open_axis(name):
    (b,), f = export.symbolic_shape("b"), jax.jit(OPEN_AXIS[name])
    export.export(f)(vector(4))
    with pytest.raises(Exception, match=r"(?i)symbolic|non-constant|_DimExpr|polymorphi") as caught:
        export.export(f)(vector(b))
    assert type(caught.value).__name__ in REFUSALS


@pytest.mark.claim(
    "nan-fills-the-end-of-a-sort",
    "`nan` sorts behind `inf`: padding of `inf` displaces a `nan` of the data from the first sorted elements, and padding "
    "of `nan` doesn't.",
)
def test_nan_fills_the_end_of_a_sort():
    x, real = jnp.array([jnp.nan, 1.0, 2.0, 0.0]), jnp.arange(4) < 3
    by_inf, by_nan = (jnp.sort(jnp.where(real, x, fill))[:3] for fill in (jnp.inf, jnp.nan))
    np.testing.assert_array_equal(by_inf, [1.0, 2.0, np.inf])
    np.testing.assert_array_equal(by_nan, jnp.sort(x[:3]))


@pytest.mark.wrong_twin("nan-fills-the-end-of-a-sort")
def test_wrong_twin_inf_keeps_the_nan():
    x = jnp.array([jnp.nan, 1.0, 2.0, jnp.inf])
    assert jnp.isnan(jnp.sort(x)[2])


@pytest.mark.claim(
    "largest-uint32-needs-its-dtype",
    "In `jnp.where`, `jnp.iinfo(jnp.uint32).max` overflows as a Python number, and works as an array of `uint32`.",
)
def test_largest_uint32_needs_its_dtype():
    x, real = jnp.array([3, 1, 2, 0], jnp.uint32), jnp.arange(4) < 3
    largest = jnp.iinfo(x.dtype).max
    with pytest.raises(OverflowError):
        jnp.where(real, x, largest)
    filled = jnp.where(real, x, jnp.array(largest, x.dtype))
    assert filled.dtype == x.dtype
    assert jnp.sort(filled).tolist() == [1, 2, 3, largest]


@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types")
@pytest.mark.claim(
    "sum-widens-and-set-narrows",
    "`jnp.sum` of `bool` or 8-bit integers gives 32 bits, and `.at[i].set` of this sum in an array of the small dtype "
    "narrows it again.",
)
@pytest.mark.parametrize(("dtype", "narrow"), [("bool", 1), ("int8", 44), ("uint8", 44)])
def test_sum_widens_and_set_narrows(dtype, narrow):
    x = jnp.full(3, 1 if dtype == "bool" else 100).astype(dtype)
    total = jnp.sum(x)
    assert total == (3 if dtype == "bool" else 300)
    assert total.dtype.itemsize == 4
    assert jnp.zeros(2, dtype).at[0].set(total)[0] == narrow


@pytest.mark.claim(
    "gradient-sum-of-complex-parameters-is-complex",
    "A `scan` that adds up gradients of `complex64` raises `TypeError` from `float32` zeros, and works from zeros of "
    "`jnp.promote_types(dtype, jnp.float32)`, which is `float32` for `bfloat16`.",
)
def test_gradient_sum_of_complex_parameters_is_complex():
    def add_up(dtype, zeros):
        w = jnp.ones(3, dtype)
        slope = jax.grad(lambda w, x: jnp.mean(jnp.abs(x @ w) ** 2))
        return lax.scan(lambda total, x: (total + slope(w, x), None), zeros, jnp.ones((4, 2, 3)))[0]

    wide = jnp.promote_types(jnp.complex64, jnp.float32)
    np.testing.assert_allclose(add_up(jnp.complex64, jnp.zeros(3, wide)), jnp.full(3, 24.0))
    with pytest.raises(TypeError, match="carry"):
        add_up(jnp.complex64, jnp.zeros(3))
    assert jnp.promote_types(jnp.bfloat16, jnp.float32) == jnp.float32
    np.testing.assert_allclose(add_up(jnp.bfloat16, jnp.zeros(3)), jnp.full(3, 24.0))


@pytest.mark.claim(
    "gram-matrix-needs-the-conjugate",
    "`eigh(a.mT.conj() @ a)` gives the squared singular values of a tall complex `a`, and `eigh(a.T @ a)` gives different "
    "numbers.",
)
def test_gram_matrix_needs_the_conjugate():
    parts = np.random.default_rng(0).normal(size=(2, 6, 3)).astype(np.float32)
    a = jnp.asarray(parts[0] + 1j * parts[1])
    squares = jnp.linalg.svd(a, compute_uv=False)[::-1] ** 2
    np.testing.assert_allclose(jnp.linalg.eigh(a.mT.conj() @ a)[0], squares, rtol=1e-3)
    assert not np.allclose(jnp.linalg.eigh(a.T @ a)[0], squares, rtol=0.1)


EXPLICIT = """
import jax, jax.numpy as jnp
from jax import lax

mesh = jax.make_mesh((2,), ("rows",), axis_types=(jax.sharding.AxisType.Explicit,))
rows = jax.P("rows")
a = jax.device_put(jnp.ones((4, 3, 3)) + jnp.eye(3), jax.NamedSharding(mesh, rows))
split = jax.shard_map(jnp.linalg.inv, mesh=mesh, in_specs=rows, out_specs=rows)
for f in (
    jnp.linalg.det,
    jnp.linalg.cholesky,
    jnp.linalg.inv,
    lambda a: lax.map(jnp.sum, a),
    lambda a: lax.scan(lambda c, x: (c + x.sum(), None), 0.0, a)[0],
    split,
):
    try:
        jax.block_until_ready(jax.jit(f)(a))
        print("works")
    except Exception as error:
        assert type(error).__name__ in ("ValueError", "ShardingTypeError"), error
        print("raises")
"""


@pytest.mark.claim(
    "explicit-axes-refuse-inv-of-a-split-batch",
    "On explicit axes, `jnp.linalg.inv` of a split batch of matrices and a `lax.map` or `lax.scan` over the split axis "
    "raise, whereas `det` and `cholesky` work; in `jax.shard_map`, `inv` works.",
)
def test_explicit_axes_refuse_inv_of_a_split_batch(child):
    assert child(EXPLICIT, devices=2).split() == ["works"] * 2 + ["raises"] * 3 + ["works"]


def drawn(draw):
    """What a draw gives for one key without and with 64-bit types."""
    key = jax.random.key(3)
    single = np.asarray(draw(key))
    with enable_x64(True):
        return single, np.asarray(draw(key))


FLOAT = jnp.float32


@pytest.mark.claim(
    "parameters-decide-the-dtype-of-binomial",
    "With 64-bit types, `binomial` in `float32` draws other values for Python numbers `n` and `p`, and the same ones for "
    "`float32` `n` and `p`.",
)
def test_parameters_decide_the_dtype_of_binomial():
    numbers = drawn(lambda key: jax.random.binomial(key, 10, 0.3, (50,), dtype=FLOAT))
    arrays = drawn(lambda key: jax.random.binomial(key, FLOAT(10), FLOAT(0.3), (50,), dtype=FLOAT))
    assert (numbers[0] != numbers[1]).mean() > 0.3
    np.testing.assert_array_equal(*arrays)


CHANGED = {
    "ball": lambda key: jax.random.ball(key, 3, 2, (50,), FLOAT),
    "rademacher": lambda key: jax.random.rademacher(key, (50,), FLOAT),
    "double_sided_maxwell": lambda key: jax.random.double_sided_maxwell(key, 0.0, 1.0, (50,), FLOAT),
    "generalized_normal": lambda key: jax.random.generalized_normal(key, FLOAT(2), (50,), FLOAT),
    "choice": lambda key: jax.random.choice(key, jnp.arange(9, dtype=FLOAT), (50,)),
}


@pytest.mark.claim(
    "some-float32-draws-change-with-x64",
    "With 64-bit types, `ball`, `rademacher`, `double_sided_maxwell` and `generalized_normal` in `float32`, and `choice` with "
    "replacement from a `float32` array, draw other values for the same key; `choice` with `replace=False` doesn't.",
)
@pytest.mark.parametrize("name", CHANGED)
def test_some_float32_draws_change_with_x64(name):
    single, wide = drawn(CHANGED[name])
    assert single.dtype == wide.dtype == FLOAT
    assert not np.allclose(single, wide)
    np.testing.assert_array_equal(*drawn(lambda key: jax.random.choice(key, 9, (4,), replace=False)))


@pytest.mark.claim(
    "empty-scan-raises-under-disable-jit",
    "A `lax.scan` or `lax.map` over an empty array works under jit, and raises `ValueError` under `disable_jit`.",
)
@pytest.mark.parametrize(
    "function",
    [lambda x: lax.scan(lambda c, a: (c + a, c), 0.0, x), lambda x: lax.map(jnp.sin, x)],
    ids=["scan", "map"],
)
def test_empty_scan_raises_under_disable_jit(function):
    empty = jnp.zeros(0)
    jax.block_until_ready(jax.jit(function)(empty))
    with jax.disable_jit(), pytest.raises(ValueError, match="zero-length scan"):
        function(empty)


@pytest.mark.claim(
    "custom-root-cg-and-vectorize-trace-under-disable-jit",
    "`lax.custom_root`, `jax.scipy.sparse.linalg.cg` and `jnp.vectorize` trace their function under `disable_jit` as well.",
)
def test_custom_root_cg_and_vectorize_trace_under_disable_jit():
    seen = []

    def see(x):
        seen.append(isinstance(x, jax.core.Tracer))
        return x

    x = jnp.arange(3.0)
    for call in (
        lambda: lax.custom_root(lambda y: see(y) - 1, 0.0, lambda f, y: y - f(y), lambda g, y: y / g(1.0)),
        lambda: jax.scipy.sparse.linalg.cg(lambda v: see(v) * 2, x),
        lambda: jnp.vectorize(see)(x),
    ):
        seen.clear()
        with jax.disable_jit():
            call()
        assert any(seen)


def through_a_file(array):
    file = io.BytesIO()
    np.savez(file, array)
    file.seek(0)
    return np.load(file)["arr_0"]


@pytest.mark.claim(
    "int4-comes-back-from-a-numpy-file-as-int8",
    "An `int4` or `uint4` array saved by `np.savez` comes back as bytes that JAX can't cast; saved as `int8`, it can be "
    "cast to its dtype again.",
)
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_int4_comes_back_from_a_numpy_file_as_int8(dtype):
    x = jnp.arange(5).astype(dtype)
    with pytest.raises((TypeError, ValueError)):
        jnp.asarray(through_a_file(x), dtype)
    again = jnp.asarray(through_a_file(x.astype(jnp.int8)), dtype)
    assert again.dtype == x.dtype
    assert again.tolist() == x.tolist()


@pytest.mark.claim(
    "index-checks-shift-a-negative-index",
    "`checkify.index_checks` reports the index -9 into three entries as -6.",
)
def test_index_checks_shift_a_negative_index():
    checked = jax.jit(checkify.checkify(lambda x, i: x[i], errors=checkify.index_checks))
    assert "index -6 is out of bounds" in checked(jnp.arange(3.0), -9)[0].get()


@pytest.mark.claim(
    "key-reuse-check-overlooks-a-repeated-key",
    "`debug_key_reuse` doesn't notice draws under `vmap` from a key that `jnp.repeat` or `jnp.broadcast_to` repeated, but "
    "those from a `jnp.stack` of the key raise.",
)
def test_key_reuse_check_overlooks_a_repeated_key():
    draw = jax.vmap(jax.random.normal)
    with jax.debug_key_reuse(True):
        assert len(set(draw(jnp.repeat(jax.random.key(0)[None], 3)).tolist())) == 1
        assert len(set(draw(jnp.broadcast_to(jax.random.key(1), (3,))).tolist())) == 1
        key = jax.random.key(2)
        with pytest.raises(jax.errors.KeyReuseError):
            draw(jnp.stack([key, key]))


@pytest.mark.claim(
    "key-reuse-check-overlooks-a-key-wrapped-again",
    "`debug_key_reuse` doesn't notice two draws from a key and from `wrap_key_data(key_data(key))`.",
)
def test_key_reuse_check_overlooks_a_key_wrapped_again():
    key = jax.random.key(0)
    with jax.debug_key_reuse(True):
        first = jax.random.normal(key)
        again = jax.random.normal(jax.random.wrap_key_data(jax.random.key_data(key)))
    assert first == again
