"""Memory of loops, structure of shardings, exports, types of gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.ad_checkpoint import print_saved_residuals
from jax.experimental import checkify, io_callback
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def temporaries(function, *args):
    return jax.jit(function).lower(*args).compile().memory_analysis().temp_size_in_bytes


def floats(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


# Memory -----------------------------------------------------------------------------------------------------


def loss(weights, rows):
    for weight in weights:
        rows = jnp.tanh(rows @ weight)
    return (rows**2).mean()


WEIGHTS, PARTS = (floats(128, 128),) * 3, floats(8, 256, 128)


def summed_in_python(weights, parts):
    total = jax.tree.map(jnp.zeros_like, weights)
    for part in parts:
        total = jax.tree.map(jnp.add, total, jax.grad(loss)(weights, part))
    return total


def summed_by_scan(weights, parts):
    def add(total, part):
        return jax.tree.map(jnp.add, total, jax.grad(loss)(weights, part)), None

    return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, weights), parts)[0]


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "unrolled-micro-batches-need-the-memory-of-all",
    "On a CPU, gradients of eight micro-batches summed in an unrolled Python loop need more than twice the temporary "
    "memory of a `scan` over them.",
)
def test_unrolled_micro_batches_need_the_memory_of_all():
    assert temporaries(summed_in_python, WEIGHTS, PARTS) > 2 * temporaries(summed_by_scan, WEIGHTS, PARTS)


@pytest.mark.wrong_twin("unrolled-micro-batches-need-the-memory-of-all")
def test_wrong_twin_scan_needs_the_memory_of_all():
    assert temporaries(summed_by_scan, WEIGHTS, PARTS) > 2 * temporaries(summed_in_python, WEIGHTS, PARTS)


def body(state, _):
    return jnp.tanh(state @ state * 1e-3), None


def one_scan(state):
    return jax.lax.scan(jax.checkpoint(body), state, length=400)[0].sum()


def scan_of_scans(state):
    def twenty(state, _):
        return jax.lax.scan(jax.checkpoint(body), state, length=20)[0], None

    return jax.lax.scan(jax.checkpoint(twenty), state, length=20)[0].sum()


@pytest.mark.claim(
    "nested-checkpointed-scans-save-carries",
    "The gradient of 20 × 20 steps in two nested scans, both bodies in `jax.checkpoint`, needs less than a quarter of "
    "the temporary memory of one scan of 400 checkpointed steps.",
)
def test_nested_checkpointed_scans_save_carries():
    one, nested = (temporaries(jax.grad(f), floats(100, 100)) for f in (one_scan, scan_of_scans))
    assert 4 * nested < one


@pytest.mark.claim(
    "checkpoint-without-policy-saves-inputs-only",
    "Without a policy `jax.checkpoint` saves what `nothing_saveable` does, only the inputs; `everything_saveable` saves "
    "as many values as no `checkpoint` at all.",
)
@pytest.mark.parametrize("shape", [(3,), (), (0,), (2, 2)])
def test_checkpoint_without_policy_saves_inputs_only(capsys, shape):
    def wave(x):
        return jnp.sin(jnp.cos(jnp.exp(x))).sum()

    def saved(function):
        print_saved_residuals(function, jnp.ones(shape))
        return len(capsys.readouterr().out.strip().splitlines())

    policies = jax.checkpoint_policies
    default = saved(jax.checkpoint(wave))
    assert default == saved(jax.checkpoint(wave, policy=policies.nothing_saveable)) == 1
    assert saved(jax.checkpoint(wave, policy=policies.everything_saveable)) == saved(wave) > 1


# Numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "gradient-has-the-type-of-its-argument",
    "A gradient has the dtype of the argument that it is taken for: `bfloat16` weights get a `bfloat16` gradient, and a "
    "`float32` copy made outside of the differentiated function gets a `float32` one.",
)
@pytest.mark.parametrize("shape", [(), (0,), (4,)])
@pytest.mark.parametrize("jit", [jax.jit, lambda f: f])
def test_gradient_has_the_type_of_its_argument(shape, jit):
    def loss(w):
        return (w.astype(jnp.float32) ** 2).sum()

    for dtype in (jnp.bfloat16, jnp.float16, jnp.float32):
        weights = jnp.ones(shape, dtype)
        assert jit(jax.grad(loss))(weights).dtype == dtype
        assert jit(lambda w: jax.grad(loss)(w.astype(jnp.float32)))(weights).dtype == jnp.float32


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "division-by-a-constant-may-differ-in-the-last-bit",
    "On a CPU under jit, `0.1e9 / 1e9` is just below the `float32` number 0.1, and without jit it is equal to it: XLA may "
    "multiply by the reciprocal of a constant.",
)
def test_division_by_a_constant_may_differ_in_the_last_bit():
    def reached(x):
        return x / 1e9 >= 0.1

    assert reached(jnp.float32(0.1e9))
    assert not jax.jit(reached)(jnp.float32(0.1e9))
    assert np.float32(0.1e9) / np.float32(1e9) >= np.float32(0.1)


@pytest.mark.claim(
    "x64-block-in-the-body-solves-in-float64",
    "A `with jax.enable_x64(True):` block in the body of a jitted function solves a badly conditioned `float32` system "
    "in `float64`.",
)
def test_x64_block_in_the_body_solves_in_float64():
    rows = np.arange(8)
    matrix = (1 / (rows[:, None] + rows + 1)).astype(np.float32)  # the Hilbert matrix
    right = matrix @ np.ones(8, np.float32)

    @jax.jit
    def solve(matrix, right):
        with jax.enable_x64(True):
            wide = jnp.linalg.solve(matrix.astype(jnp.float64), right.astype(jnp.float64))
            return wide.astype(jnp.float32)

    exact = np.linalg.solve(matrix.astype(np.float64), right.astype(np.float64))
    found, narrow = solve(matrix, right), jax.jit(jnp.linalg.solve)(matrix, right)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, exact, rtol=1e-5)
    assert abs(narrow - exact).max() > 0.01


@pytest.mark.claim(
    "allowed-float64-still-narrows-numpy-inputs",
    'With `jax_explicit_x64_dtypes` at "allow", NumPy `float64` inputs still become `float32`, unless the dtype is named.',
)
def test_allowed_float64_still_narrows_numpy_inputs():
    before = jax.config.jax_explicit_x64_dtypes
    jax.config.update("jax_explicit_x64_dtypes", "allow")
    try:
        for host in (np.ones(2), np.ones(0), np.float64(1.0)):
            assert jax.jit(lambda x: x)(host).dtype == jnp.asarray(host).dtype == jnp.float32
            assert jnp.asarray(host, dtype=np.float64).dtype == np.float64
    finally:
        jax.config.update("jax_explicit_x64_dtypes", before)


@pytest.mark.claim(
    "zero-padding-makes-a-system-singular",
    "A matrix padded with zeros has no solution; with ones on the new diagonal, the first entries are the solution, and "
    "the determinant is the same.",
)
@pytest.mark.parametrize("matrix", [[[2.0, 1], [1, 3]], [[-4.0]], [[0.0, 1, 0], [1, 0, 0], [0, 0, 5]]])
def test_zero_padding_makes_a_system_singular(matrix):
    matrix = jnp.array(matrix)
    n, right = len(matrix), jnp.arange(1.0, 1 + len(matrix))
    padded = jnp.pad(matrix, (0, 2))
    assert not jnp.isfinite(jnp.linalg.solve(padded, jnp.pad(right, (0, 2)))).all()
    padded = padded.at[jnp.arange(n, n + 2), jnp.arange(n, n + 2)].set(1)
    solution = jnp.linalg.solve(padded, jnp.pad(right, (0, 2)))
    np.testing.assert_allclose(solution[:n], jnp.linalg.solve(matrix, right), rtol=1e-5)
    np.testing.assert_allclose(jnp.linalg.slogdet(padded)[1], jnp.linalg.slogdet(matrix)[1], rtol=1e-5)


# Several devices --------------------------------------------------------------------------------------------


def halvings(x):
    return jax.lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] / 2, s[1] + 1), (x, 0.0))[1]


@pytest.mark.claim(
    "batched-while-over-a-split-batch-communicates",
    "A `while_loop` under `vmap` over a split batch exchanges its condition between the devices at each step; in a "
    "`shard_map` each device loops over its own part.",
)
def test_batched_while_over_a_split_batch_communicates():
    if len(jax.devices()) < 2:
        pytest.skip("not applicable: this process has one device only")
    mesh = Mesh(np.array(jax.devices()[:2]), ("rows",))
    split = NamedSharding(mesh, PartitionSpec("rows"))
    x = jax.device_put(jnp.arange(1.0, 9.0), split)
    spec = PartitionSpec("rows")
    local = jax.jit(jax.shard_map(jax.vmap(halvings), mesh=mesh, in_specs=spec, out_specs=spec))
    assert "all-reduce" in jax.jit(jax.vmap(halvings)).lower(x).compile().as_text()
    assert "all-reduce" not in local.lower(x).compile().as_text()
    np.testing.assert_array_equal(local(x), jax.vmap(halvings)(np.asarray(x)))


@pytest.mark.claim(
    "out-shardings-have-the-structure-of-the-result",
    "`out_shardings` is a prefix of the result's structure: one sharding serves a whole dict, and a tuple or list of one "
    "is refused for a single array.",
)
def test_out_shardings_have_the_structure_of_the_result():
    here = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("rows",)), PartitionSpec())
    for wrong in ((here,), [here], (None,)):
        with pytest.raises(ValueError, match="pytree structure"):
            jax.jit(lambda x: 2 * x, out_shardings=wrong)(jnp.ones(4))
    found = jax.jit(lambda x: {"a": x, "b": [x, 2 * x]}, out_shardings=here)(jnp.ones(4))
    assert all(leaf.sharding == here for leaf in jax.tree.leaves(found))


# Exports ----------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "one-symbol-is-one-size",
    "A symbol of `symbolic_shape` stands for one size: the same symbol in two arguments demands equal lengths, and two "
    "symbols leave them independent.",
)
def test_one_symbol_is_one_size():
    n, m = export.symbolic_shape("n, m")
    sums = jax.jit(lambda a, b: (a.sum(), b.sum()))
    same, apart = (export.export(sums)(floats(n), floats(size)) for size in (n, m))
    assert same.call(jnp.ones(3), jnp.ones(3)) == apart.call(jnp.ones(3), jnp.ones(3)) == (3, 3)
    assert apart.call(jnp.ones(3), jnp.ones(4)) == (3, 4)
    with pytest.raises(ValueError, match="inconsistency"):
        same.call(jnp.ones(3), jnp.ones(4))


@pytest.mark.claim(
    "symbols-of-one-scope-fit-together",
    "Symbols of two calls of `symbolic_shape` can be combined if both name the same scope.",
)
def test_symbols_of_one_scope_fit_together():
    scope = export.SymbolicScope()
    (n,), (m,) = (export.symbolic_shape(name, scope=scope) for name in "nm")
    assert export.export(jax.jit(jnp.sum))(floats(n, m)).call(jnp.ones((3, 4))) == 12
    (n,), (m,) = (export.symbolic_shape(name) for name in "nm")
    with pytest.raises(ValueError, match="scope"):
        export.export(jax.jit(lambda x: jnp.sum(x)))(floats(n, m))


@pytest.mark.claim(
    "export-without-platforms-is-for-the-default-one",
    "Without `platforms=`, an export is for the default platform of the process, and `Exported.platforms` names it.",
)
def test_export_without_platforms_is_for_the_default_one():
    made = export.export(jax.jit(lambda x: 2 * x))(floats(3))
    assert [{"cuda": "gpu"}.get(name, name) for name in made.platforms] == [jax.default_backend()]
    assert set(export.export(jax.jit(lambda x: 2 * x), platforms=["cpu", "tpu"])(floats(3)).platforms) == {
        "cpu",
        "tpu",
    }


# Derivatives ------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "float-checks-see-the-gradient-under-jit",
    "`checkify` around `jax.grad(f)` with `float_checks` reports what goes wrong in the backward pass, under jit, and a "
    "division by zero.",
)
def test_float_checks_see_the_gradient_under_jit():
    def hidden(x):
        return jnp.where(x > 0, jnp.sqrt(x), 0.0).sum()

    checks = checkify.float_checks
    for function, bad, good in (
        (hidden, jnp.zeros(1), jnp.ones(1)),
        (lambda x: jnp.sum(1 / x), jnp.zeros(2), jnp.ones(2)),
    ):
        checked = jax.jit(checkify.checkify(jax.grad(function), errors=checks))
        assert checked(bad)[0].get()
        assert checked(good)[0].get() is None
    error, _ = jax.jit(checkify.checkify(lambda x: 1 / x, errors=checks))(0.0)
    assert "division by zero" in error.get()


@pytest.mark.claim(
    "rules-of-custom-vjp-are-traced",
    "The rules of a `custom_vjp` are traced as well: what they store is a tracer, and they do not run in Python at a "
    "second call.",
)
def test_rules_of_custom_vjp_are_traced():
    stored = []

    @jax.custom_vjp
    def wave(x):
        return jnp.sin(x)

    def forward(x):
        stored.append(x.max())
        return jnp.sin(x), x

    wave.defvjp(forward, lambda x, cotangent: (cotangent * jnp.cos(x),))
    step = jax.jit(jax.grad(lambda x: wave(x).sum()))
    step(jnp.ones(3))
    step(jnp.zeros(3))
    assert len(stored) == 1
    with pytest.raises(jax.errors.UnexpectedTracerError):
        stored[0] + 1


@pytest.mark.claim(
    "debug-callback-in-a-scan-runs-once-per-step-under-grad",
    "A debug callback in the body of a `scan` runs once for each step, under `jax.grad` and jit too.",
)
@pytest.mark.parametrize("length", [0, 1, 5])
@pytest.mark.parametrize("transform", ["plain", "jit", "grad", "jit of grad"])
def test_debug_callback_in_a_scan_runs_once_per_step_under_grad(length, transform):
    seen = []

    def total(x):
        def step(state, _):
            jax.debug.callback(lambda value: seen.append(float(value)), state)
            return jnp.sin(state), None

        return jax.lax.scan(step, x, length=length)[0]

    made = {
        "plain": total,
        "jit": jax.jit(total),
        "grad": jax.grad(total),
        "jit of grad": jax.jit(jax.grad(total)),
    }
    jax.block_until_ready(made[transform](1.0))
    jax.effects_barrier()
    assert len(seen) == length


# What the loops of others hide ------------------------------------------------------------------------------


def to_the_end(report):
    """Count up to `n` in a `while_loop` that reports each step."""

    def step(count):
        report(count)
        return count + 1

    return lambda n: jax.lax.while_loop(lambda count: count < n, step, 0)


def by_io_callback(count):
    io_callback(lambda _: None, None, count)


@pytest.mark.claim(
    "io-callback-is-refused-in-a-batched-while",
    "`vmap` of a `while_loop` whose condition differs between the elements refuses an `io_callback` in the body; "
    "`lax.map` over the elements runs it.",
)
def test_io_callback_is_refused_in_a_batched_while():
    ends = jnp.array([1, 3])
    with pytest.raises(Exception, match="IO effects not supported in while_loop with batched predicate"):
        jax.vmap(to_the_end(by_io_callback))(ends)
    assert jax.lax.map(to_the_end(by_io_callback), ends).tolist() == [1, 3]


@pytest.mark.claim(
    "debug-callback-runs-for-finished-elements",
    "In a `while_loop` under `vmap`, `jax.debug.callback` and a sequential `pure_callback` are called for elements that "
    "are done, too: once per element and step of the slowest.",
)
@pytest.mark.parametrize("ends", [[1, 3], [3, 3], [0, 2, 4]])
@pytest.mark.parametrize("callback", ["debug", "pure"])
def test_debug_callback_runs_for_finished_elements(callback, ends):
    seen = []

    def by_debug(count):
        jax.debug.callback(lambda value: seen.append(int(value)), count)
        return count + 1

    def by_pure(count):
        def add(value):
            seen.append(int(value))
            return np.asarray(value + 1, np.int32)

        return jax.pure_callback(add, jax.ShapeDtypeStruct((), jnp.int32), count, vmap_method="sequential")

    body = by_debug if callback == "debug" else by_pure
    done = jax.vmap(lambda n: jax.lax.while_loop(lambda count: count < n, body, 0))(jnp.array(ends))
    assert done.tolist() == ends
    jax.effects_barrier()
    assert len(seen) == len(ends) * max(ends)


@pytest.mark.claim(
    "eager-indexing-sends-its-numbers",
    "Under `transfer_guard('disallow')`, indexing or scaling an array outside jit raises, because the Python numbers are "
    "sent to the device; the same line in a jitted function passes.",
)
@pytest.mark.parametrize(
    "line",
    [lambda a: a[1:, :10], lambda a: a[3], lambda a: 2 * a],
    ids=["slice", "index", "scale"],
)
def test_eager_indexing_sends_its_numbers(line):
    a = jnp.ones((20, 20))
    jitted = jax.jit(line)
    with jax.transfer_guard("disallow"):
        with pytest.raises(Exception, match="Disallowed host-to-device transfer"):
            line(a)
        jitted(a)


@pytest.mark.claim(
    "none-int-float-and-scalar-are-four-traces",
    "`None`, a Python int, a Python float and a NumPy scalar for one argument are four traces; converted by "
    "`jnp.asarray(…, float)`, the numbers are one.",
)
def test_none_int_float_and_scalar_are_four_traces():
    traces = []

    @jax.jit
    def scaled(x, alpha=None):
        traces.append(alpha)
        return x if alpha is None else alpha * x

    for alpha in (None, 1, 2, 1.0, 2.5, np.float32(1)):
        scaled(jnp.ones(3), alpha)
    assert len(traces) == 4
    scaled.clear_cache()
    jax.clear_caches()
    traces.clear()
    for alpha in (0, 1.0, np.float32(1), np.float64(1), jnp.float32(2)):
        scaled(jnp.ones(3), jnp.asarray(alpha, float))
    assert len(traces) == 1


@pytest.mark.claim(
    "size-as-a-multiple-can-be-halved",
    "`reshape(-1, 2)` fails for an exported size `b`, also with a constraint on `mod(b, 2)`, and works for `2*b`; a call "
    "with an odd size then raises `ValueError`.",
)
def test_size_as_a_multiple_can_be_halved():
    def pairs(x):
        return x.reshape(-1, 2).sum(1)

    def exported(size, constraints=()):
        return export.export(jax.jit(pairs))(floats(*export.symbolic_shape(size, constraints=constraints)))

    for constraints in ((), ("mod(b, 2) == 0",)):
        with pytest.raises(Exception, match="Cannot divide evenly"):
            exported("b", constraints)
    halved = exported("2*b")
    assert halved.call(jnp.ones(6)).shape == (3,)
    with pytest.raises(ValueError, match="do not match the polymorphic shapes"):
        halved.call(jnp.ones(5))


@pytest.mark.claim(
    "export-takes-no-static-values",
    "A static argument gets its value when a function is exported: it is not an input of the export, and passing it again "
    "raises `ValueError`, by position or by keyword.",
)
def test_export_takes_no_static_values():
    power = jax.jit(lambda x, n: x**n, static_argnames="n")
    cubed = export.export(power)(floats(3), n=3)
    assert len(cubed.in_avals) == 1
    assert cubed.call(jnp.full(3, 2.0)).tolist() == [8.0] * 3
    for args, kwargs in (((3,), {}), ((), {"n": 3})):
        with pytest.raises(ValueError, match="pytree structure"):
            cubed.call(jnp.ones(3), *args, **kwargs)


@pytest.mark.claim(
    "gamma-and-poisson-loop-until-accepted",
    "Draws of `gamma`, `poisson`, `beta`, `dirichlet` and `binomial` are lowered to a `while` loop; those of `normal`, "
    "`uniform` and `exponential` are not.",
)
@pytest.mark.parametrize(
    ("name", "parameters", "loops"),
    [
        ("gamma", (2.0,), True),
        ("poisson", (3.0,), True),
        ("beta", (2.0, 3.0), True),
        ("dirichlet", (jnp.ones(4),), True),
        ("binomial", (10.0, 0.3), True),
        ("normal", (), False),
        ("uniform", (), False),
        ("exponential", (), False),
    ],
)
def test_gamma_and_poisson_loop_until_accepted(name, parameters, loops):
    shape = (2,) if name == "dirichlet" else (8,)
    draw = jax.jit(lambda key: getattr(jax.random, name)(key, *parameters, shape=shape))
    # rbg draws its bits by one operation, threefry by a loop on some versions; poisson is defined for threefry only.
    key = jax.random.key(0, impl="threefry2x32" if name == "poisson" else "rbg")
    assert ("stablehlo.while" in draw.lower(key).as_text()) == loops


@pytest.mark.claim(
    "loggamma-does-not-underflow",
    "For a shape parameter of 0.001 most float32 draws of `gamma` are 0, while those of `loggamma` are finite.",
)
def test_loggamma_does_not_underflow():
    key, shape = jax.random.key(0), (1000,)
    assert (jax.random.gamma(key, 0.001, shape) == 0).mean() > 0.5
    assert jnp.isfinite(jax.random.loggamma(key, 0.001, shape)).all()


@pytest.mark.claim(
    "bincount-counts-what-did-not-occur",
    "In a jitted function `jnp.bincount` with a length returns a count for each value below it, 0 for one that does not "
    "occur.",
)
@pytest.mark.parametrize("values", [[1, 1, 3], [0], [7, 7, 7]])
def test_bincount_counts_what_did_not_occur(values):
    counts = jax.jit(lambda x: jnp.bincount(x, length=8))(jnp.array(values))
    assert counts.tolist() == [values.count(value) for value in range(8)]
