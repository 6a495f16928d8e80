"""Tracer errors, sizes, rounding, debugging and keys in practice."""

import contextlib
import io
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify

# Tracer errors ----------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "numpy-reductions-pass-tracers-on",
    "`np.sum` and `np.mean` of a traced array work, because NumPy hands them to the array's own method; `np.power` raises.",
)
def test_numpy_reductions_pass_tracers_on():
    x = jnp.arange(4.0)
    assert (jax.jit(lambda x: np.sum(x))(x), jax.jit(lambda x: np.mean(x))(x)) == (6.0, 1.5)
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda x: np.power(x, 2))(x)


@pytest.mark.wrong_twin("numpy-reductions-pass-tracers-on", raises=jax.errors.TracerArrayConversionError)
def test_wrong_twin_numpy_power_passes_tracers_on():
    assert jax.jit(lambda x: np.power(x, 2))(3.0) == 9.0


@pytest.mark.claim(
    "numpy-buffer-cannot-hold-tracers",
    "Writing a traced value into a NumPy array raises NumPy's `ValueError` about setting an element with a sequence.",
)
def test_numpy_buffer_cannot_hold_tracers():
    @jax.jit
    def f(x):
        buffer = np.zeros(3)
        buffer[0] = x
        return buffer

    with pytest.raises(ValueError, match="setting an array element with a sequence"):
        f(1.0)


@pytest.mark.claim(
    "match-any-and-sorted-raise",
    "`match`, `sorted` and the builtin `any` ask for truth values too, and raise "
    "`TracerBoolConversionError`.",
)
def test_match_any_and_sorted_raise():
    def by_match(x):
        match x[0]:
            case 1:
                return x
            case _:
                return -x

    for f in (by_match, lambda x: any(x), lambda x: sorted(x)):
        with pytest.raises(jax.errors.TracerBoolConversionError):
            jax.jit(f)(jnp.arange(3))


@pytest.mark.claim(
    "span-of-traced-bounds-fails",
    "`jnp.arange(i - 1, i + 1)` fails for a traced `i`, although its length is two for each `i`; `i + "
    "jnp.arange(-1, 1)` works.",
)
def test_span_of_traced_bounds_fails():
    with pytest.raises(jax.errors.ConcretizationTypeError, match="argument 'start'"):
        jax.jit(lambda i: jnp.arange(i - 1, i + 1))(5)
    assert jax.jit(lambda i: i + jnp.arange(-1, 1))(5).tolist() == [4, 5]


@pytest.mark.claim(
    "mask-made-by-jnp-is-traced",
    "A mask that `jnp` computes inside a jitted function cannot index, even if it depends on shapes alone.",
)
def test_mask_made_by_jnp_is_traced():
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError):
        jax.jit(lambda x: x[jnp.arange(x.shape[0]) % 2 == 0])(jnp.arange(6))


@pytest.mark.claim(
    "compile-time-mask-may-index",
    "A mask that `jnp` computes under `jax.ensure_compile_time_eval()` may index: its entries are known while tracing.",
)
def test_compile_time_mask_may_index():
    @jax.jit
    def f(x):
        with jax.ensure_compile_time_eval():
            even = jnp.arange(x.shape[0]) % 2 == 0
        return x[even]

    assert f(jnp.arange(6)).tolist() == [0, 2, 4]


# Changing shapes --------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "padding-outside-jit-compiles-too",
    "Padding with `jnp.pad` before a jitted call, and cutting its result with `y[:n]`, compiles for each length; in NumPy it compiles nothing.",
)
def test_padding_outside_jit_compiles_too(counted):
    double = jax.jit(lambda x: 2 * x)
    np.asarray(double(np.ones(16, np.float32)))
    arrays = {n: jnp.asarray(np.ones(n, np.float32)) for n in (9, 10, 11)}
    counted()
    for n, x in arrays.items():
        double(jnp.pad(x, (0, 16 - n)))[:n].block_until_ready()
    by_jnp = counted()["compiles"]
    for n, x in arrays.items():
        np.asarray(double(np.pad(np.asarray(x), (0, 16 - n))))[:n]
    assert (by_jnp >= 2 * len(arrays), counted()["compiles"]) == (True, 0)


@pytest.mark.claim(
    "pad-length-must-be-static",
    "`jnp.pad` to a traced length raises `ConcretizationTypeError`; with the length static it compiles once for each.",
)
def test_pad_length_must_be_static(counted):
    def pad_to(x, length):
        return jnp.pad(x, (0, length - x.shape[0]))

    x = np.ones(3, np.float32)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="pad_width"):
        jax.jit(pad_to)(x, 8)
    static = jax.jit(pad_to, static_argnames="length")
    counted()
    shapes = [static(x, length=n).shape for n in (8, 16, 8)]
    assert (shapes, counted()["compiles"]) == ([(8,), (16,), (8,)], 2)


@pytest.mark.claim(
    "where-replaces-slice-assignment",
    "For a function that works entry by entry, `jnp.where(jnp.arange(n) < i, f(x), x)` is `x[:i] = f(x[:i])`, "
    "with one compile for the values of `i`.",
)
def test_where_replaces_slice_assignment(counted):
    f = jax.jit(lambda x, i: jnp.where(jnp.arange(x.shape[0]) < i, x**2, x))
    x = np.arange(6, dtype=np.float32)
    f(x, 0)
    counted()
    for i in range(7):
        expected = x.copy()
        expected[:i] = expected[:i] ** 2
        assert f(x, i).tolist() == expected.tolist()
    assert counted()["traces"] == 0


# Rounding and types -----------------------------------------------------------------------------------------


def _bend(x):
    return 1.0 - 1.4 * x * x + 0.3 * x


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "compiled-code-may-round-differently",
    "On a CPU, the same float operations may round differently jitted than one by one: the results agree within a few units of the last digit, and not bit for bit.",
)
def test_compiled_code_may_round_differently():
    x = jnp.asarray(np.random.default_rng(0).normal(size=10_000), jnp.float32)
    one_by_one, jitted = np.asarray(_bend(x)), np.asarray(jax.jit(_bend)(x))
    assert (one_by_one != jitted).any()
    np.testing.assert_allclose(one_by_one, jitted, rtol=1e-5, atol=1e-5)


@pytest.mark.wrong_twin("compiled-code-may-round-differently")
def test_wrong_twin_compiled_code_rounds_as_eager_code():
    x = jnp.asarray(np.random.default_rng(0).normal(size=10_000), jnp.float32)
    assert (np.asarray(_bend(x)) == np.asarray(jax.jit(_bend)(x))).all()


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "multiply-and-add-may-round-once",
    "On a CPU, a product and a sum in one compiled function may be rounded once, as one fused operation, where one-by-one operations round twice.",
)
def test_multiply_and_add_may_round_once():
    x, y, z = (np.random.default_rng(i).normal(size=10_000).astype(np.float32) for i in range(3))
    once = (x.astype(np.float64) * y + z).astype(np.float32)
    assert (np.asarray(jax.jit(lambda x, y, z: x * y + z)(x, y, z)) == once).all()
    assert (np.asarray(jnp.asarray(x) * y + z) != once).any()


@pytest.mark.claim(
    "rounding-shrinks-in-float64",
    "The difference between jitted and eager shrinks with the digits: in `float64` it is at least a million times smaller than in `float32`.",
)
def test_rounding_shrinks_in_float64():
    def difference(dtype):
        x = jnp.asarray(np.random.default_rng(0).normal(size=10_000), dtype)
        return float(jnp.max(jnp.abs(_bend(x) - jax.jit(_bend)(x))))

    single = difference("float32")
    with jax.enable_x64(True):
        double = difference("float64")
    assert double <= 1e-6 * single


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "chaotic-loops-drift-apart",
    "On a CPU, a chaotic recurrence starts with the same values in an eager Python loop and in `lax.scan`, whose "
    "body is compiled, and ends elsewhere.",
)
def test_chaotic_loops_drift_apart():
    def step(state):
        x, y = state
        return 1.0 - 1.4 * x * x + y, 0.3 * x

    state, eager = (jnp.float32(0.1), jnp.float32(0.1)), []
    for _ in range(100):
        state = step(state)
        eager.append(float(state[0]))

    def body(state, _):
        state = step(state)
        return state, state[0]

    start = (jnp.float32(0.1), jnp.float32(0.1))
    compiled = np.asarray(lax.scan(body, start, length=100)[1])
    np.testing.assert_allclose(eager[:10], compiled[:10], atol=1e-4)
    assert np.abs(eager - compiled).max() > 0.1


@pytest.mark.claim(
    "optimization-barrier-keeps-the-order",
    "With `lax.optimization_barrier` between them, the compiler does not cancel an addition and a subtraction.",
)
def test_optimization_barrier_keeps_the_order():
    f = jax.jit(lambda x: lax.optimization_barrier(x + 1e8) - 1e8)
    assert f(jnp.float32(1.0)) == 0.0


@pytest.mark.claim(
    "precision-setting-holds-with-and-without-jit",
    "`jax.default_matmul_precision` counts for eager products as for jitted ones: under another setting, each is compiled "
    "again.",
)
@pytest.mark.parametrize("product", [lambda a: a @ a, jax.jit(lambda a: a @ a)], ids=["eager", "jitted"])
def test_precision_setting_holds_with_and_without_jit(counted, product):
    a = jnp.asarray(np.random.default_rng(0).normal(size=(47, 47)), jnp.float32)
    product(a)
    for precision in ("bfloat16", "highest"):
        counted()
        with jax.default_matmul_precision(precision):
            product(a)
            assert counted()["compiles"] == 1
            product(a)
            assert counted()["compiles"] == 0


@pytest.mark.claim(
    "x64-changes-default-types",
    "With 64-bit types on, new arrays such as `jnp.zeros(2)` and `jnp.arange(2)` have 64 bits; an array that is float32 stays float32, also times a Python number.",
)
def test_x64_changes_default_types():
    def kinds():
        single = jnp.ones(2, jnp.float32)
        return [
            str(a.dtype) for a in (jnp.zeros(2), jnp.arange(2), jnp.linspace(0, 1, 2), single, single * 2.5)
        ]

    assert kinds() == ["float32", "int32", "float32", "float32", "float32"]
    with jax.enable_x64(True):
        assert kinds() == ["float64", "int64", "float64", "float32", "float32"]


@pytest.mark.wrong_twin("x64-changes-default-types")
def test_wrong_twin_x64_widens_existing_arrays():
    single = jnp.ones(2, jnp.float32)
    with jax.enable_x64(True):
        assert (single * 2.5).dtype == "float64"


@pytest.mark.claim(
    "experimental-enable-x64-is-gone",
    "`jax.experimental.enable_x64` is gone; `jax.enable_x64` does its work.",
)
def test_experimental_enable_x64_is_gone():
    with pytest.raises(ImportError):
        from jax.experimental import enable_x64  # noqa: F401
    with jax.enable_x64(True):
        assert jnp.zeros(1).dtype == "float64"


@pytest.mark.claim(
    "x64-around-one-call",
    "`with jax.enable_x64(True):` around a call runs this call in float64, as another program, and leaves calls outside the block in float32.",
)
def test_x64_around_one_call():
    runs = []
    f = jax.jit(lambda x: runs.append(x.dtype) or x * 2)
    x = np.ones(3)
    before = f(x).dtype
    with jax.enable_x64(True):
        inside = f(x).dtype
    assert (before, inside, f(x).dtype) == ("float32", "float64", "float32")
    assert runs == ["float32", "float64"]


@pytest.mark.claim(
    "x64-block-inside-jit",
    "`with jax.enable_x64(True):` also works around a part of a jitted function: the values are cast on the way in and on the way out.",
)
def test_x64_block_inside_jit():
    @jax.jit
    def excess(x):
        with jax.enable_x64(True):
            total = jnp.sum(x.astype(jnp.float64) * 1e-9 + 1.0) - x.size
        return total.astype(jnp.float32)

    x = jnp.ones(3)
    assert excess(x).dtype == jax.grad(excess)(x).dtype == "float32"
    assert float(excess(x)) == pytest.approx(3e-9, rel=1e-6)
    assert jnp.sum(x * 1e-9 + 1.0) - x.size == 0.0


@pytest.mark.claim(
    "float64-array-outside-falls-back",
    "A float64 array that leaves the 64-bit block becomes float32 in a sum with a number, with a "
    "`UserWarning` the first time and silently afterwards; `jnp.sin` leaves it float64.",
)
def test_float64_array_outside_falls_back():
    with jax.enable_x64(True):
        wide = jnp.zeros(3)
    assert wide.dtype == "float64"
    with pytest.warns(UserWarning, match="float64"):
        assert (wide + 1).dtype == "float32"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jax.jit(lambda x: x + 1)(wide).dtype == "float32"
        assert jnp.sin(wide).dtype == "float64"


@pytest.mark.claim(
    "explicit-float64-can-be-allowed",
    "With the option `jax_explicit_x64_dtypes` on 'allow', a dtype of 64 bits that you name is respected, and the defaults stay at 32 bits.",
)
def test_explicit_float64_can_be_allowed():
    old = jax.config.jax_explicit_x64_dtypes
    jax.config.update("jax_explicit_x64_dtypes", "allow")
    try:
        wide = jnp.zeros(3, jnp.float64)
        assert (wide.dtype, jax.jit(jnp.sin)(wide).dtype) == ("float64", "float64")
        assert (jnp.zeros(3).dtype, jnp.asarray(np.zeros(3)).dtype) == ("float32", "float32")
    finally:
        jax.config.update("jax_explicit_x64_dtypes", old)


@pytest.mark.claim(
    "x64-changes-random-numbers",
    "With 64-bit types on, `jax.random.uniform` in the default dtype gives other numbers for the same key, and in `float32` the same ones.",
)
def test_x64_changes_random_numbers():
    key = jax.random.key(0)
    single = jax.random.uniform(key, (3,))
    with jax.enable_x64(True):
        wide, named = jax.random.uniform(key, (3,)), jax.random.uniform(key, (3,), jnp.float32)
    assert named.tolist() == single.tolist()
    assert np.abs(np.asarray(wide) - np.asarray(single)).min() > 1e-3


# NaN and stepping through -----------------------------------------------------------------------------------


@pytest.mark.claim(
    "debug-nans-names-the-operation",
    "The error of `debug_nans` names the operation that made the first `nan`, forward and in a gradient, in a function without donation or refs.",
)
def test_debug_nans_names_the_operation():
    x = jnp.array([0.0, 4.0])
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError, match=r"\(nan\) encountered in (jit\()?log"):
            jax.jit(lambda x: jnp.log(x - 1.0) + 1.0)(x)
        with pytest.raises(FloatingPointError, match=r"\(nan\) encountered in (jit\()?mul"):
            jax.jit(jax.grad(lambda x: jnp.sum(jnp.where(x < 1, x, jnp.sqrt(x)))))(x)


@pytest.mark.claim(
    "debug-nans-runs-the-body-on-values",
    "After a `nan` in the result, `debug_nans` runs your Python function once more, operation by operation, on values, if its arguments still exist.",
)
def test_debug_nans_runs_the_body_on_values():
    seen = []

    @jax.jit
    def f(x):
        seen.append(isinstance(x, jax.core.Tracer))
        return jnp.log(x)

    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        f(jnp.array([-1.0]))
    assert seen == [True, False]


@pytest.mark.claim(
    "debug-nans-may-blame-a-hidden-nan",
    "`debug_nans` stops at the first `nan` of its second run, which may be a hidden one that does not "
    "reach the result.",
)
def test_debug_nans_may_blame_a_hidden_nan():
    def f(x):
        safe = jnp.where(x > 0, jnp.log(x), 0.0)
        return safe / (x - x)

    with jax.debug_nans(True), pytest.raises(FloatingPointError, match=r"encountered in (jit\()?log"):
        jax.jit(f)(jnp.array([1.0, -1.0]))


@pytest.mark.claim(
    "debug-nans-checks-eager-operations",
    "Without jit, `debug_nans` checks each operation by itself, so a `nan` that `where` hides raises as "
    "well.",
)
def test_debug_nans_checks_eager_operations():
    def f(x):
        return jnp.where(x > 0, jnp.log(x), 0.0)

    x = jnp.array([1.0, -1.0])
    with jax.debug_nans(True):
        assert jax.jit(f)(x).tolist() == [0.0, 0.0]
        with pytest.raises(FloatingPointError, match=r"encountered in (jit\()?log"):
            f(x)


@pytest.mark.wrong_twin("debug-nans-checks-eager-operations", raises=FloatingPointError)
def test_wrong_twin_debug_nans_ignores_hidden_eager_nans():
    x = jnp.array([1.0, -1.0])
    with jax.debug_nans(True):
        assert jnp.where(x > 0, jnp.log(x), 0.0).tolist() == [0.0, 0.0]


@pytest.mark.claim(
    "debug-nans-names-a-loop-as-a-whole",
    "For a `nan` made in a loop primitive, `debug_nans` names the loop; with `disable_jit` as well it names the operation.",
)
def test_debug_nans_names_a_loop_as_a_whole():
    f = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sqrt(c - 1.0), x))
    x = jnp.float32(1.5)
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError, match=r"encountered in (jit\()?scan"):
            f(x)
        with jax.disable_jit(), pytest.raises(FloatingPointError, match=r"encountered in (jit\()?sqrt"):
            f(x)


@pytest.mark.claim(
    "debug-infs-looks-at-results",
    "`debug_infs` looks at the results of a jitted function too: an `inf` that becomes `nan` inside goes unnoticed, until `disable_jit` shows each operation.",
)
def test_debug_infs_looks_at_results():
    f = jax.jit(lambda x: x * jnp.log(x))
    x = jnp.zeros(2)
    with jax.debug_infs(True):
        assert np.isnan(np.asarray(f(x))).all()
        with (
            jax.disable_jit(),
            pytest.raises(FloatingPointError, match=r"\(inf\) encountered in (jit\()?log"),
        ):
            f(x)


@pytest.mark.claim(
    "double-where-repairs-the-gradient",
    "A second `where` that gives the unsafe branch a harmless input makes the gradient finite, and leaves the value as it was.",
)
def test_double_where_repairs_the_gradient():
    def once(x):
        return jnp.where(x < 1, x, jnp.sqrt(x))

    def twice(x):
        return jnp.where(x < 1, x, jnp.sqrt(jnp.where(x < 1, 1.0, x)))

    assert np.isnan(jax.grad(once)(0.0))
    assert jax.grad(twice)(0.0) == 1.0
    x = jnp.linspace(0.0, 4.0, 9)
    assert once(x).tolist() == twice(x).tolist()


@pytest.mark.claim(
    "cond-differentiates-the-chosen-branch",
    "The derivative of `lax.cond` is that of the chosen branch, so an infinite slope in the other does not "
    "harm, even under `vmap`, where both are computed.",
)
def test_cond_differentiates_the_chosen_branch():
    def f(x):
        return lax.cond(x < 1, lambda x: x, jnp.sqrt, x)

    zeros = jnp.zeros(2)
    assert jax.jit(jax.grad(f))(0.0) == 1.0
    assert jax.jit(jax.vmap(jax.grad(f)))(zeros).tolist() == [1.0, 1.0]
    assert jax.grad(lambda x: jax.vmap(f)(x).sum())(zeros).tolist() == [1.0, 1.0]
    assert np.isnan(jax.grad(lambda x: jnp.where(x < 1, x, jnp.sqrt(x)).sum())(zeros)).all()


@pytest.mark.claim(
    "disable-jit-leaves-other-tracers",
    "`disable_jit` switches off jit and the tracing of `scan`; under `vmap` and `grad` the body still gets "
    "tracers.",
)
def test_disable_jit_leaves_other_tracers():
    seen = []

    def f(x):
        seen.append(isinstance(x, jax.core.Tracer))
        return x * 2.0

    x = jnp.float32(3.0)
    with jax.disable_jit():
        jax.jit(f)(x)
        lax.scan(lambda c, _: (f(c), None), x, length=1)
        jax.vmap(jax.jit(f))(jnp.ones(2))
        jax.grad(jax.jit(f))(x)
    assert seen == [False, False, True, True]


@pytest.mark.wrong_twin("disable-jit-leaves-other-tracers")
def test_wrong_twin_disable_jit_removes_every_tracer():
    seen = []
    with jax.disable_jit():
        jax.vmap(lambda x: (seen.append(isinstance(x, jax.core.Tracer)), x)[1])(jnp.ones(2))
    assert seen == [False]


@pytest.mark.claim(
    "disable-jit-counts-at-the-call",
    "`disable_jit` counts when a jitted function is called: a function that was wrapped under it and is called "
    "later is traced as usual.",
)
def test_disable_jit_counts_at_the_call():
    seen = []

    def f(x):
        seen.append(isinstance(x, jax.core.Tracer))
        return x

    with jax.disable_jit():
        wrapped = jax.jit(f)
    wrapped(jnp.float32(1.0))
    with jax.disable_jit():
        wrapped(jnp.float32(1.0))
    assert seen == [True, False]


@pytest.mark.claim(
    "debug-print-under-vmap-shows-each",
    "`jax.debug.print` under `vmap` prints the value of each element, with and without `disable_jit`.",
)
def test_debug_print_under_vmap_shows_each(capsys):
    def f(x):
        jax.debug.print("x = {x}", x=x)
        return x

    for context in (contextlib.nullcontext(), jax.disable_jit()):
        with context:
            jax.vmap(f)(jnp.arange(2))
            jax.effects_barrier()
        assert sorted(capsys.readouterr().out.splitlines()) == ["x = 0", "x = 1"]


@pytest.mark.filterwarnings("ignore:Python iterable type:DeprecationWarning")  # raised in JAX's own code
@pytest.mark.claim(
    "breakpoint-shows-values-of-a-jitted-function",
    "`jax.debug.breakpoint` stops a jitted function while it runs, and its prompt evaluates expressions on the values there.",
)
def test_breakpoint_shows_values_of_a_jitted_function():
    out = io.StringIO()

    @jax.jit
    def f(x):
        y = jnp.sqrt(x)
        jax.debug.breakpoint(backend="cli", stdin=io.StringIO("p y + 1\nc\n"), stdout=out)
        return y

    assert f(jnp.array([4.0, 9.0])).tolist() == [2.0, 3.0]
    jax.effects_barrier()
    assert "[3., 4.]" in out.getvalue()


@pytest.mark.claim(
    "raise-in-a-branch-always-fires",
    "A `raise` in a branch of `lax.cond` fires while tracing, for a true and for a false condition.",
)
def test_raise_in_a_branch_always_fires():
    def refuse(x):
        raise ValueError("negative")

    for x in (1.0, -1.0):
        with pytest.raises(ValueError, match="negative"):
            jax.jit(lambda x: lax.cond(x < 0, refuse, jnp.sqrt, x))(x)


def _checked_log(x):
    checkify.check(x > 0, "x must be positive, got {x}", x=x)
    return jnp.log(x)


@pytest.mark.claim(
    "checkify-returns-the-error",
    "`checkify.checkify` makes a function return an error next to its result, jitted inside or outside; `err.throw()` raises it in Python.",
)
def test_checkify_returns_the_error():
    inside, outside = jax.jit(checkify.checkify(_checked_log)), checkify.checkify(jax.jit(_checked_log))
    for f in (inside, outside):
        err, _ = f(jnp.float32(-1.0))
        assert err.get().startswith("x must be positive, got -1.0")
        with pytest.raises(ValueError, match="x must be positive"):
            err.throw()
        err, out = f(jnp.float32(1.0))
        err.throw()
        assert (err.get(), out) == (None, 0.0)


@pytest.mark.claim(
    "check-without-checkify-raises",
    "A `checkify.check` in a jitted function raises `ValueError` while tracing without a "
    "`checkify.checkify` around it, and so does `err.throw()` inside jit.",
)
def test_check_without_checkify_raises():
    def throw_inside(x):
        err, out = checkify.checkify(_checked_log)(x)
        err.throw()
        return out

    for f in (_checked_log, throw_inside):
        with pytest.raises(ValueError, match="not functionalized"):
            jax.jit(f)(jnp.float32(1.0))


@pytest.mark.claim(
    "checkify-error-is-a-value-error",
    "What `err.throw()` raises is a `ValueError` whose class is called `JaxRuntimeError`, and not the `jax.errors.JaxRuntimeError` of the runtime.",
)
def test_checkify_error_is_a_value_error():
    err, _ = checkify.checkify(_checked_log)(jnp.float32(-1.0))
    with pytest.raises(ValueError, match="x must be positive") as caught:
        err.throw()
    assert type(caught.value).__name__ == "JaxRuntimeError"
    assert not isinstance(caught.value, jax.errors.JaxRuntimeError)


@pytest.mark.claim(
    "checkify-takes-a-bound-method",
    "checkify takes a bound method; the unbound one fails when it is jitted, because `self` is not a JAX "
    "type.",
)
def test_checkify_takes_a_bound_method():
    class Model:
        def run(self, x):
            return _checked_log(x)

    model, x = Model(), jnp.float32(-1.0)
    assert jax.jit(checkify.checkify(model.run))(x)[0].get().startswith("x must be positive")
    with pytest.raises(TypeError, match="Model"):
        jax.jit(checkify.checkify(Model.run))(model, x)


@pytest.mark.claim(
    "automatic-checks-need-no-check",
    "`checkify.index_checks` reports an index out of range, and `checkify.float_checks` the operation that made a `nan`, without a `check` in the body.",
)
def test_automatic_checks_need_no_check():
    x = jnp.arange(3.0)
    read = jax.jit(checkify.checkify(lambda x, i: x[i], errors=checkify.index_checks))
    write = jax.jit(checkify.checkify(lambda x, i: x.at[i].set(0.0), errors=checkify.index_checks))
    for f in (read, write):
        assert "index 7 is out of bounds" in f(x, 7)[0].get()
        assert f(x, 2)[0].get() is None
    log = jax.jit(checkify.checkify(jnp.log, errors=checkify.float_checks))
    assert "nan generated by primitive: log" in log(-1.0)[0].get()


@pytest.mark.claim(
    "callback-error-reaches-the-caller",
    "An exception raised in a `jax.pure_callback` reaches the caller as a `JaxRuntimeError` with the Python traceback in its message.",
)
def test_callback_error_reaches_the_caller():
    def refuse(x):
        raise ValueError("negative input")

    f = jax.jit(lambda x: jax.pure_callback(refuse, jax.ShapeDtypeStruct((), jnp.float32), x))
    with pytest.raises(jax.errors.JaxRuntimeError, match="negative input"):
        f(jnp.float32(-1.0)).block_until_ready()


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "callback-error-on-the-fast-path-is-a-value-error",
    "On a CPU, after a good call of a program with a `jax.pure_callback`, an exception raised in the callback of a "
    "later call arrives as a `ValueError` that is not a `JaxRuntimeError`.",
)
def test_callback_error_on_the_fast_path_is_a_value_error():
    def refuse(x):
        if float(x) < 0:
            raise ArithmeticError("negative input")
        return np.asarray(x)

    f = jax.jit(lambda x: jax.pure_callback(refuse, jax.ShapeDtypeStruct((), jnp.float32), x))
    good, bad = jnp.float32(1.0), jnp.float32(-1.0)
    for _ in range(3):
        f(good).block_until_ready()
    with pytest.raises(ValueError, match="negative input") as caught:
        f(bad).block_until_ready()
    assert not isinstance(caught.value, jax.errors.JaxRuntimeError)


# Random keys ------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "number-of-keys-must-be-static",
    "`jax.random.split(key, n)` with a traced `n` raises `TypeError`; a number computed by `math` or NumPy from shapes works.",
)
def test_number_of_keys_must_be_static():
    key = jax.random.key(0)
    with pytest.raises(TypeError, match=r"random_split|concrete values of integer type"):
        jax.jit(jax.random.split)(key, 3)
    with pytest.raises(TypeError, match=r"random_split|concrete values of integer type"):
        jax.jit(lambda k, x: jax.random.split(k, jnp.log2(x.shape[0]).astype(int)))(key, jnp.ones(8))
    assert jax.jit(lambda k, x: jax.random.split(k, int(np.log2(x.shape[0]))))(key, jnp.ones(8)).shape == (3,)


@pytest.mark.claim(
    "one-key-under-vmap-repeats",
    "Under `vmap` with one key for the whole batch the elements draw the same number, and the key reuse "
    "check is silent.",
)
def test_one_key_under_vmap_repeats():
    draw = jax.vmap(lambda x, key: x + jax.random.normal(key), in_axes=(0, None))
    with jax.debug_key_reuse(True):
        drawn = draw(jnp.zeros(3), jax.random.key(0))
    assert len(set(drawn.tolist())) == 1


@pytest.mark.claim(
    "longer-split-begins-with-the-shorter",
    "Splitting one key twice repeats keys: the first three of `split(key, 8)` are those of `split(key, 3)`.",
)
def test_longer_split_begins_with_the_shorter():
    key = jax.random.key(5)
    long, short = (jax.random.key_data(jax.random.split(key, n)).tolist() for n in (8, 3))
    assert long[:3] == short


@pytest.mark.claim(
    "fold-in-and-split-overlap",
    "`fold_in(key, i)` is the same key as `split(key, n)[i]`, so do one or the other to a key; the key "
    "reuse check does not tell.",
)
def test_fold_in_and_split_overlap():
    with jax.debug_key_reuse(True):
        key = jax.random.key(5)
        folded = [jax.random.key_data(jax.random.fold_in(key, i)).tolist() for i in range(4)]
        assert jax.random.key_data(jax.random.split(key, 4)).tolist() == folded


@pytest.mark.claim(
    "key-reuse-check-raises",
    "Under `jax.debug_key_reuse` a key that is used for two draws raises `KeyReuseError`: within a jitted function, in its loops, and from one call to the next.",
)
def test_key_reuse_check_raises():
    def twice(key):
        return jax.random.normal(key) + jax.random.uniform(key)

    def in_a_loop(key):
        return lax.fori_loop(0, 3, lambda i, total: total + jax.random.normal(key), 0.0)

    with jax.debug_key_reuse(True):
        for f in (twice, in_a_loop):
            with pytest.raises(jax.errors.KeyReuseError):
                jax.jit(f)(jax.random.key(0))
        draw, key = jax.jit(jax.random.normal), jax.random.key(0)
        draw(key)
        with pytest.raises(jax.errors.KeyReuseError, match="Previously-consumed"):
            draw(key)


@pytest.mark.wrong_twin("key-reuse-check-raises", raises=pytest.fail.Exception)
def test_wrong_twin_the_check_is_on_without_asking():
    with pytest.raises(jax.errors.KeyReuseError):
        jax.jit(lambda key: jax.random.normal(key) + jax.random.uniform(key))(jax.random.key(0))


@pytest.mark.claim(
    "key-reuse-check-knows-objects-only",
    "The key reuse check follows typed key objects: it overlooks a key made again from the same seed, and raw `uint32` keys.",
)
def test_key_reuse_check_knows_objects_only():
    with jax.debug_key_reuse(True):
        same = [float(jax.random.normal(jax.random.key(7))) for _ in range(2)]
        raw = jax.random.PRNGKey(7)
        same += [float(jax.random.normal(raw)) for _ in range(2)]
    assert len(set(same)) == 1


@pytest.mark.claim(
    "key-reuse-check-is-in-the-key",
    "Switching `jax.debug_key_reuse` on traces and compiles again; with it off, the earlier program is used.",
)
def test_key_reuse_check_is_in_the_key(counted):
    draw = jax.jit(lambda key: jax.random.normal(key))
    keys = jax.random.split(jax.random.key(0), 3)
    keys = [keys[i] for i in range(3)]
    draw(keys[0])
    counted()
    with jax.debug_key_reuse(True):
        draw(keys[1])
    assert counted()["compiles"] >= 1
    draw(keys[2])
    assert counted()["compiles"] == 0


@pytest.mark.claim(
    "scan-can-carry-or-consume-keys",
    "In `lax.scan`, a key that is split in the carry and keys that are scanned over both give other "
    "numbers in each step.",
)
def test_scan_can_carry_or_consume_keys():
    def carried(key, _):
        key, now = jax.random.split(key)
        return key, jax.random.normal(now)

    def consumed(total, key):
        return total, jax.random.normal(key)

    key = jax.random.key(0)
    a = lax.scan(carried, key, length=5)[1]
    b = lax.scan(consumed, 0.0, jax.random.split(key, 5))[1]
    assert len(set(a.tolist())) == len(set(b.tolist())) == 5


@pytest.mark.claim(
    "stateful-generator-moves-on",
    "A generator of `jax.experimental.random.stateful_rng` passed to a jitted function moves on with each call, "
    "after one compile; one that is made inside repeats.",
)
def test_stateful_generator_moves_on(counted):
    from jax.experimental.random import stateful_rng

    generator = stateful_rng(0)
    draw = jax.jit(lambda generator: generator.normal())
    draw(generator)
    counted()
    drawn = [float(draw(generator)) for _ in range(4)]
    assert (len(set(drawn)), counted()["traces"]) == (4, 0)
    inside = jax.jit(lambda: stateful_rng(0).normal())
    assert inside() == inside()
