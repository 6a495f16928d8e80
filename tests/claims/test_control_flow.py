"""cond, switch, while_loop, fori_loop, scan, and Python loops."""

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

X = np.arange(4, dtype=np.float32)


def primitives(fn, *args):
    """The names of the outermost equations of the jaxpr of fn."""
    return [eqn.primitive.name for eqn in jax.make_jaxpr(fn)(*args).eqns]


def square_twenty_times(x):
    for _ in range(20):
        x = x * x
    return x


@pytest.mark.claim(
    "python-loop-is-unrolled",
    "A Python loop in a jitted function is unrolled: its body is in the jaxpr once for each iteration.",
    seeds="S002-86 S002-87 S002-88",
)
def test_python_loop_is_unrolled():
    assert primitives(square_twenty_times, X) == ["mul"] * 20


@pytest.mark.claim(
    "loop-primitives-hold-one-body",
    "`scan`, `fori_loop` and `while_loop` hold their body once in the jaxpr, for 10 iterations as for 10,000.",
    seeds="S002-13 S002-88 S002-90 S002-96",
)
def test_loop_primitives_hold_one_body():
    def size(n):
        loops = [
            lambda x: lax.scan(lambda c, _: (c * c, None), x, None, length=n),
            lambda x: lax.fori_loop(0, n, lambda i, c: c * c, x),
            lambda x: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * s[1]), (0, x)),
        ]
        return [str(jax.make_jaxpr(loop)(X)).count("= mul") for loop in loops]

    assert size(10) == size(10_000) == [1, 1, 1]


@pytest.mark.wrong_twin("loop-primitives-hold-one-body")
def test_wrong_twin_longer_loops_have_longer_jaxprs():
    def size(n):
        return len(str(jax.make_jaxpr(lambda x: lax.fori_loop(0, n, lambda i, c: c * c, x))(X)))

    assert size(900) > size(100)


@pytest.mark.claim(
    "loop-body-is-traced-once",
    "The Python function given to a loop primitive runs while tracing, as often for a thousand iterations as for ten: "
    "once, or twice where a carry that starts as a Python number changes its dtype.",
    seeds="S002-93",
)
@pytest.mark.hostile("scalar", "empty", "bfloat16", "complex", "vmap", "grad")
def test_loop_body_is_traced_once(case):
    def traces(n, start, step):
        runs = []

        def body(c):
            runs.append(1)
            return c + step

        for loop in (
            lambda x: lax.fori_loop(0, n, lambda i, c: body(c), x),
            lambda x: lax.scan(lambda c, _: (body(c), None), x, None, length=n)[0],
        ):
            case.place(loop)(start)
        return len(runs)

    step = jnp.ones((), case.array.dtype)
    assert traces(10, case.array, step) == traces(1000, case.array, step) == 2  # two loops, once each
    if case.name == "friendly":
        assert traces(10, 0, 1.5) == traces(1000, 0, 1.5) == 4


@pytest.mark.claim(
    "fori-with-known-bounds-is-a-scan",
    "`fori_loop` becomes a `scan` if both bounds are known while tracing.",
    seeds="S002-90 S002-94",
)
def test_fori_with_known_bounds_is_a_scan():
    assert primitives(lambda x: lax.fori_loop(0, 1000, lambda i, c: c * c, x), X) == ["scan"]


@pytest.mark.claim(
    "fori-with-traced-bound-is-a-while", "`fori_loop` with a traced bound becomes a `while`.", seeds="S002-94"
)
def test_fori_with_traced_bound_is_a_while():
    assert "while" in primitives(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * c, x), X, 1000)


@pytest.mark.claim(
    "traced-trip-count-shares-one-program",
    "A `fori_loop` whose trip count is a traced argument serves different counts with one compile, zero "
    "included.",
    seeds="S002-94",
)
def test_traced_trip_count_shares_one_program():
    runs = []
    total = jax.jit(lambda n: runs.append(1) or lax.fori_loop(0, n, lambda i, c: c + i, 0))
    assert [int(total(n)) for n in (0, 5, 100)] == [0, 10, 4950]
    assert len(runs) == 1


@pytest.mark.claim(
    "fori-bounds-are-called-lower-and-upper",
    "`fori_loop` calls its bounds `lower` and `upper`; `start=` and `stop=` are not accepted.",
    seeds="S002-89",
)
def test_fori_bounds_are_called_lower_and_upper():
    assert lax.fori_loop(lower=0, upper=3, body_fun=lambda i, c: c + 1, init_val=0) == 3
    with pytest.raises(TypeError, match="start"):
        lax.fori_loop(start=0, stop=3, body_fun=lambda i, c: c + 1, init_val=0)


@pytest.mark.claim(
    "fori-body-gets-the-index",
    "The body of `fori_loop` receives the index, traced, and the carry.",
    seeds="S002-92",
)
def test_fori_body_gets_the_index():
    assert lax.fori_loop(2, 5, lambda i, seen: seen.at[i].set(i), jnp.zeros(6, int)).tolist() == [
        0,
        0,
        2,
        3,
        4,
        0,
    ]


@pytest.mark.claim(
    "carry-must-keep-its-type",
    "The body of a loop primitive must return the carry with the shape and dtype it came in.",
    seeds="S002-91 S002-93",
)
@pytest.mark.parametrize("change", [lambda c: c[None], lambda c: c.astype(int)], ids=["shape", "dtype"])
def test_carry_must_keep_its_type(change):
    for loop in (
        lambda c: lax.fori_loop(0, 3, lambda i, c: change(c), c),
        lambda c: lax.scan(lambda c, _: (change(c), None), c, None, length=3),
        lambda c: lax.while_loop(lambda c: True, change, c),
    ):
        with pytest.raises(TypeError, match=r"must have (equal|identical) types"):
            loop(jnp.ones(3))


@pytest.mark.claim(
    "python-carry-is-promoted",
    "A carry that starts as a Python integer takes the float dtype that the body returns, without an error.",
    seeds="S002-91",
)
def test_python_carry_is_promoted():
    for dtype in (jnp.float32, jnp.bfloat16, jnp.float16):
        total, _ = lax.scan(lambda c, x: (c + x, None), 0, jnp.ones(3, dtype))
        assert total.dtype == dtype
    assert lax.while_loop(lambda c: c < 2, lambda c: c + 0.5, 0) == 2.0


@pytest.mark.claim(
    "while-runs-as-long-as-the-condition-holds",
    "`while_loop` repeats its body on the carried state as long as the condition function returns `True`.",
    seeds="S002-96 S002-97",
)
def test_while_runs_as_long_as_the_condition_holds():
    steps, value = jax.jit(
        lambda x: lax.while_loop(lambda s: s[1] < 100, lambda s: (s[0] + 1, s[1] * 2), (0, x))
    )(3.0)
    assert (int(steps), float(value)) == (6, 192)


@pytest.mark.claim(
    "while-jaxpr-has-two-bodies",
    "In the jaxpr a `while` holds two functions, the condition and the body; the state is flattened.",
    seeds="S002-96",
)
def test_while_jaxpr_has_two_bodies():
    jaxpr = jax.make_jaxpr(
        lambda x: lax.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 1, s[1] * 2), (0, x))
    )(X)
    (eqn,) = jaxpr.eqns
    assert eqn.primitive.name == "while"
    assert {"cond_jaxpr", "body_jaxpr"} <= set(eqn.params)
    assert len(eqn.outvars) == 2


@pytest.mark.claim(
    "loops-agree-with-python",
    "`scan`, `fori_loop` and `while_loop` with the same body compute what the Python loop computes.",
    seeds="S002-89 S002-96",
)
@pytest.mark.hostile("scalar", "empty", "int8", "complex", "uniform", "vmap", "scan", "disable_jit")
def test_loops_agree_with_python(case):
    x = case.array // 4 if case.name == "int8" else case.array / 4
    expected = square_twenty_times(x)
    loops = [
        lambda x: lax.scan(lambda c, _: (c * c, None), x, None, length=20)[0],
        lambda x: lax.fori_loop(0, 20, lambda i, c: c * c, x),
        lambda x: lax.while_loop(lambda s: s[0] < 20, lambda s: (s[0] + 1, s[1] * s[1]), (0, x))[1],
    ]
    for loop in loops:
        assert np.allclose(case.place(loop)(x), expected, equal_nan=True)


@pytest.mark.claim(
    "scan-stacks-what-each-step-returns",
    "`scan` returns the last carry and the second results of all steps, stacked.",
)
@pytest.mark.hostile("empty", "int8", "complex", "split", "vmap", "grad", "disable_jit")
def test_scan_stacks_what_each_step_returns(case):
    def running(xs):
        return lax.scan(lambda c, x: (c + x, c + x), jnp.zeros((), xs.dtype), xs)

    x = case.array
    last, sums = (running if case.name == "empty" else case.place(running))(x)
    assert np.allclose(sums, np.cumsum(np.asarray(x)))
    assert np.allclose(last, np.sum(np.asarray(x)))


@pytest.mark.claim(
    "traced-loop-bound-needs-a-primitive",
    "`range()` over a traced number fails, and `fori_loop` over it works.",
    seeds="S004-16",
)
def test_traced_loop_bound_needs_a_primitive():
    with pytest.raises(jax.errors.TracerIntegerConversionError):
        jax.jit(lambda n: sum(i for i in range(n)))(3)
    assert jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0))(3) == 3


@pytest.mark.claim(
    "reverse-mode-needs-a-known-trip-count",
    "Reverse-mode derivatives pass through `scan` and through `fori_loop` with known bounds, not through "
    "`while_loop` or a traced bound.",
    seeds="S002-13",
)
def test_reverse_mode_needs_a_known_trip_count():
    def power(x, n):
        return lax.fori_loop(0, n, lambda i, c: c * x, 1.0)

    assert jax.grad(power)(2.0, 3) == 12
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        jax.jit(jax.grad(power))(2.0, 3)
    assert jax.jit(lambda x, n: jax.jvp(lambda x: power(x, n), (x,), (1.0,)))(2.0, 3)[1] == 12


@pytest.mark.claim(
    "unroll-keeps-the-jaxpr",
    "`scan(unroll=n)` changes the lowered code, not the jaxpr's one equation.",
)
def test_unroll_keeps_the_jaxpr():
    def loop(unroll):
        return lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=40, unroll=unroll)[0]

    assert primitives(loop(1), X) == primitives(loop(10), X) == ["scan"]
    texts = [jax.jit(loop(n)).lower(X).as_text() for n in (1, 10)]
    assert len(texts[0]) < len(texts[1])


@pytest.mark.claim("lax-map-is-a-scan", "`lax.map` runs one element after the other: it becomes a `scan`.")
def test_lax_map_is_a_scan():
    assert primitives(lambda x: lax.map(jnp.sin, x), X) == ["scan"]


@pytest.mark.claim(
    "associative-scan-grows-with-the-logarithm",
    "The jaxpr of `associative_scan` grows with the logarithm of the length, by the same number of "
    "equations for each factor.",
)
def test_associative_scan_grows_with_the_logarithm():
    sizes = [len(primitives(lambda x: lax.associative_scan(jnp.add, x), np.ones(n))) for n in (8, 64, 512)]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] > 0


@pytest.mark.claim(
    "eager-loop-with-a-fresh-lambda-recompiles",
    "Outside jit, `scan` with a lambda written in place compiles at each call; with a kept function it "
    "compiles once.",
)
def test_eager_loop_with_a_fresh_lambda_recompiles(counted):
    def step(c, x):
        return c + x, c

    xs, start = jnp.arange(3.0), jnp.float32(0)
    counted()
    for _ in range(3):
        lax.scan(step, start, xs)
    assert counted()["compiles"] == 1
    for _ in range(3):
        lax.scan(lambda c, x: (c + x, c), start, xs)
    assert counted()["compiles"] == 3


@pytest.mark.claim(
    "eager-map-recompiles",
    "Outside jit, `lax.map` compiles at each call, also with a function that is kept.",
)
def test_eager_map_recompiles(counted):
    xs = jnp.arange(3.0)
    for _ in range(2):
        jax.lax.map(jnp.sin, xs)
    counted()
    for _ in range(3):
        jax.lax.map(jnp.sin, xs)
    assert counted()["compiles"] == 3


@pytest.mark.claim(
    "eager-fori-loop-compiles-for-each-bound",
    "Outside jit, `fori_loop` with plain Python bounds compiles again for each new number of iterations.",
)
def test_eager_fori_loop_compiles_for_each_bound(counted):
    def step(i, c):
        return c + i

    start = jnp.int32(0)
    counted()
    for n in (3, 4, 5, 3):
        lax.fori_loop(0, n, step, start)
    assert counted()["compiles"] == 3
    lax.fori_loop(1, 6, step, start)  # other bounds, five iterations again
    assert counted()["compiles"] == 0


@pytest.mark.claim(
    "cond-compiles-both-branches",
    "`lax.cond` traces both branches and keeps both in the program.",
    seeds="S002-11 S002-81",
)
def test_cond_compiles_both_branches():
    runs = []
    f = jax.jit(
        lambda p, x: lax.cond(
            p, lambda x: runs.append("true") or jnp.sin(x), lambda x: runs.append("false") or -x, x
        )
    )
    assert f(True, 0.0) == 0
    assert sorted(runs) == ["false", "true"]
    jaxpr = str(jax.make_jaxpr(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))(True, 1.0))
    assert "sin" in jaxpr
    assert "cos" in jaxpr


@pytest.mark.claim(
    "cond-runs-one-branch",
    "At run time `lax.cond` on one condition executes the chosen branch only.",
    seeds="S002-11 S002-81 S004-21",
)
@pytest.mark.hostile("scalar", "empty", "int8", "jit", "scan", "disable_jit", "second call")
def test_cond_runs_one_branch(case):
    ran = []

    def branch(name):
        def run(x):
            jax.debug.callback(lambda: ran.append(name))
            return x

        return run

    f = case.place(jax.jit(lambda p, x: lax.cond(p, branch("true"), branch("false"), x)))
    for p, name in ((True, "true"), (False, "false")):
        ran.clear()
        f(jnp.asarray(p), case.array)
        jax.effects_barrier()
        assert {*ran} == {name}


@pytest.mark.claim(
    "cond-keeps-a-constant-predicate",
    "`lax.cond(True, …)` is not resolved while tracing: both branches are traced, and the jaxpr has a "
    "`cond`.",
    seeds="S002-11",
)
def test_cond_keeps_a_constant_predicate():
    assert primitives(lambda x: lax.cond(True, jnp.sin, jnp.cos, x), 1.0) == ["cond"]


@pytest.mark.claim(
    "branches-must-agree",
    "The branches of `cond` must return the same structure, shapes and dtypes.",
    seeds="S002-11",
)
@pytest.mark.parametrize(
    "other", [lambda x: x[:1], lambda x: (x,), lambda x: x.astype(int)], ids=["shape", "tree", "dtype"]
)
def test_branches_must_agree(other):
    with pytest.raises(TypeError, match=r"branch|must have (identical types|same type)"):
        lax.cond(True, lambda x: x, other, jnp.ones(3))


@pytest.mark.claim(
    "switch-traces-every-branch",
    "`lax.switch` over several branches traces each of them and runs the one that the index picks.",
    seeds="S002-81",
)
def test_switch_traces_every_branch():
    runs = []
    branches = [lambda x, k=k: runs.append(k) or x * k for k in range(4)]
    f = jax.jit(lambda i, x: lax.switch(i, branches, x))
    assert [float(f(i, 1.0)) for i in range(4)] == [0, 1, 2, 3]
    assert sorted(runs) == [0, 1, 2, 3]


@pytest.mark.claim(
    "where-computes-both-sides",
    "`jnp.where` chooses between finished values: both sides are computed for all entries.",
    seeds="S002-11 S002-81 S004-21",
)
@pytest.mark.hostile("scalar", "bfloat16", "vmap", "scan", "grad")
def test_where_computes_both_sides(case):
    def choose(x):
        return jnp.where(x > 0, jnp.sin(x), jnp.cos(x))

    jaxpr = str(jax.make_jaxpr(case.place(choose))(case.array))
    assert "cond" not in jaxpr
    assert all(op in jaxpr for op in ("sin", "cos", "select_n"))


@pytest.mark.claim(
    "vmap-of-cond-computes-both-branches",
    "`vmap` of `cond` over a batch of predicates becomes a `select_n`: both branches are computed for every "
    "element.",
)
@pytest.mark.hostile("empty", "bfloat16", "int8", "uniform", "split")
def test_vmap_of_cond_computes_both_branches(case):
    f = jax.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))
    names = primitives(f, case.array > 1, case.array)
    assert "cond" not in names
    assert {"sin", "cos", "select_n"} <= set(names)


@pytest.mark.claim(
    "vmap-of-cond-with-a-shared-predicate-stays-a-cond",
    "`vmap` of `cond` keeps the `cond` if the predicate is shared by the whole batch.",
)
def test_vmap_of_cond_with_a_shared_predicate_stays_a_cond():
    f = jax.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), in_axes=(None, 0))
    assert "cond" in primitives(f, True, X)


@pytest.mark.claim(
    "vmap-of-while-runs-until-the-last-element",
    "`vmap` of `while_loop` stays one loop, which runs until the condition is false for the last element.",
)
def test_vmap_of_while_runs_until_the_last_element():
    steps = []

    def halve(x):
        def body(c):
            jax.debug.callback(lambda: steps.append(1))
            return c / 2

        return lax.while_loop(lambda c: c > 1, body, x)

    assert "while" in primitives(jax.vmap(halve), jnp.ones(2))
    assert jax.jit(jax.vmap(halve))(jnp.array([1.0, 1.0, 8.0])).tolist() == [1, 1, 1]
    jax.effects_barrier()
    assert len(steps) == 3


@pytest.mark.claim(
    "python-loop-around-a-jitted-step-works",
    "A plain Python `while` loop on concrete values may call a jitted step: the step is traced once.",
    seeds="S004-21 S004-22",
)
def test_python_loop_around_a_jitted_step_works():
    runs = []
    step = jax.jit(lambda i: runs.append(1) or i + 1)
    x, i = 10, 0
    while i < 20:
        x, i = step(x), i + 1
    assert isinstance(x, jax.Array)
    assert x == 30
    # One trace for the Python number 10, which is weakly typed like every result that follows from it.
    assert len(runs) == 1


@pytest.mark.claim(
    "sampling-loop-is-one-small-program",
    "A denoising loop, as in diffusion sampling, compiles once for 5 steps and for 50 if it is a `fori_loop` "
    "over a traced number of steps.",
    seeds="S002-12 S002-13 S002-99",
)
def test_sampling_loop_is_one_small_program():
    def sample(weights, key, steps):
        def denoise(i, carry):
            x, key = carry
            key, noise_key = jax.random.split(key)
            noise = jax.random.normal(noise_key, x.shape)
            return x - 0.1 * jnp.tanh(x @ weights) + 0.01 * noise, key

        return lax.fori_loop(0, steps, denoise, (jnp.ones(4), key))[0]

    runs = []
    sampler = jax.jit(lambda w, key, steps: runs.append(1) or sample(w, key, steps))
    few, many = (sampler(jnp.eye(4), jax.random.key(0), n) for n in (5, 50))
    assert few.shape == many.shape == (4,)
    assert not np.allclose(few, many)
    assert len(runs) == 1


@pytest.mark.claim(
    "residual-below-float32-is-never-reached",
    "Newton's iteration for x³ − 2x − 5 from 2, in `float32`, does not reach a residual of 1e-6 in 1000 steps; it "
    "reaches a relative change of 1e-6, and in `float64` that residual, in fewer than 10.",
)
def test_residual_below_float32_is_never_reached():
    def steps(unfinished, dtype):
        def body(state):
            x, _, count = state
            new = x - (x**3 - 2 * x - 5) / (3 * x**2 - 2)
            return new, abs(new - x), count + 1

        start = (jnp.asarray(2, dtype), jnp.asarray(jnp.inf, dtype), 0)
        return lax.while_loop(lambda state: unfinished(state) & (state[2] < 1000), body, start)[2]

    def residual(state):
        return abs(state[0] ** 3 - 2 * state[0] - 5) > 1e-6

    assert steps(residual, jnp.float32) == 1000
    assert steps(lambda state: state[1] > 1e-6 * abs(state[0]), jnp.float32) < 10
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        assert steps(residual, jnp.float64) < 10
