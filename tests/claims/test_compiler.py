"""From jaxpr to StableHLO to optimized HLO."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

X = np.arange(4, dtype=np.float32)


def stages(fn, *args):
    """The three texts of fn: jaxpr, StableHLO, optimized HLO."""
    lowered = jax.jit(fn).lower(*args)
    return str(jax.make_jaxpr(fn)(*args)), lowered.as_text(), lowered.compile().as_text()


def operations(hlo, name):
    return len(re.findall(rf" {name}\(", hlo))


def wasteful(x):
    """Square the input fifty times, and return the input."""
    kept = x
    for _ in range(50):
        x = x * x
    return kept


@pytest.mark.claim(
    "dead-code-is-not-compiled",
    "Work whose result is not used is an equation of the jaxpr and not an operation of the compiled function.",
    seeds="S002-01 S002-50 S002-51 S002-52 S002-53",
)
def test_dead_code_is_not_compiled():
    jaxpr, _, hlo = stages(wasteful, X)
    assert jaxpr.count("= mul") + jaxpr.count("_:f32[4] = mul") >= 50
    assert operations(hlo, "multiply") == 0


@pytest.mark.claim(
    "dead-code-is-gone-before-xla",
    "Unused work outside `while_loop` bodies is dropped by JAX while lowering, in inner jitted functions, `scan` and "
    "`cond` too: it is missing from the StableHLO already, before XLA sees the program.",
    seeds="S002-01 S002-50 S002-52",
)
def test_dead_code_is_gone_before_xla():
    assert "stablehlo.multiply" not in stages(wasteful, X)[1]
    inner = jax.jit(lambda x: (x + 1, jnp.sin(x)))
    for unused_sine in (
        lambda x: inner(x)[0],
        lambda x: lax.scan(lambda c, _: ((c[0] + 1, jnp.sin(c[1])), None), (x, x), None, length=3)[0][0],
        lambda x: lax.cond(x[0] > 0, lambda x: (x, jnp.sin(x)), lambda x: (x + 1, jnp.sin(x)), x)[0],
    ):
        assert "stablehlo.sine" not in jax.jit(unused_sine).lower(X).as_text()


@pytest.mark.wrong_twin("dead-code-is-not-compiled")
def test_wrong_twin_dead_code_is_compiled():
    assert operations(stages(wasteful, X)[2], "multiply") > 0


@pytest.mark.claim(
    "dead-loop-is-dropped",
    "A `scan`, `fori_loop` or `while_loop` whose result is not used is dropped as a whole, as the unrolled one is.",
    seeds="S002-95 S002-98",
)
def test_dead_loop_is_dropped():
    def with_fori(x):
        lax.fori_loop(0, 50, lambda i, c: c * c, x)
        return x

    def with_while(x):
        lax.while_loop(lambda s: s[0] < 50, lambda s: (s[0] + 1, s[1] * s[1]), (0, x))
        return x

    def with_scan(x):
        lax.scan(lambda c, _: (c * c, None), x, None, length=50)
        return x

    for fn in (with_fori, with_while, with_scan):
        _, stablehlo, hlo = stages(fn, X)
        assert "stablehlo.while" not in stablehlo
        assert operations(hlo, "while") == 0


@pytest.mark.claim(
    "separate-jits-keep-their-work",
    "The compiler cannot drop work across separate jitted calls: a multiplication jitted alone stays a "
    "multiplication, although the caller throws its result away.",
    seeds="S002-02 S002-08 S002-55 S004-28",
)
def test_separate_jits_keep_their_work():
    square = jax.jit(lambda x: x * x)
    assert operations(square.lower(X).compile().as_text(), "multiply") == 1
    assert operations(jax.jit(wasteful).lower(X).compile().as_text(), "multiply") == 0


@pytest.mark.claim(
    "training-step-is-one-program",
    "Forward pass, derivative and update, jitted together, are one trace and one executable, which later steps "
    "reuse.",
    seeds="S002-02 S002-08 S002-22 S004-28",
)
def test_training_step_is_one_program(counted):
    runs = []

    @jax.jit
    def step(w, x, y):
        runs.append(1)
        loss, slope = jax.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())(w)
        return w - 0.1 * slope, loss

    w, x, y = jnp.zeros(2), jnp.eye(2), jnp.ones(2)
    counted()
    losses = []
    for _ in range(3):
        w, loss = step(w, x, y)
        losses.append(loss)
    assert len(runs) == counted()["compiles"] == 1
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.claim(
    "closed-over-array-is-written-into-the-program",
    "An array that a jitted function takes from outside is not an argument of the compiled function: its values "
    "are written into it.",
    seeds="S002-74 S002-75 S002-77",
)
def test_closed_over_array_is_written_into_the_program():
    shift = jnp.array([5.0, 6.0, 7.0, 8.0])
    text = jax.jit(lambda x: x + shift).lower(X).as_text()
    assert "%arg1" not in text
    assert "5.000000e+00, 6.000000e+00" in text


@pytest.mark.claim(
    "equal-work-is-merged",
    "The same operation on the same input, written twice, is two equations of the jaxpr and one operation of the "
    "compiled function.",
    seeds="S002-01",
)
def test_equal_work_is_merged():
    jaxpr, stablehlo, hlo = stages(lambda x: jnp.sin(x) * jnp.cos(jnp.sin(x)), X)
    assert jaxpr.count("= sin") == stablehlo.count("stablehlo.sine") == 2
    assert operations(hlo, "sine") == 1


@pytest.mark.claim(
    "constants-are-folded-by-the-compiler",
    "An operation on constants is in the jaxpr and in the StableHLO, and is replaced by its value in the "
    "compiled function.",
    seeds="S004-02",
)
def test_constants_are_folded_by_the_compiler():
    jaxpr, stablehlo, hlo = stages(lambda x: jnp.log(x) / jnp.log(2.0), X)
    assert jaxpr.count("= log") == stablehlo.count("stablehlo.log") == 2
    assert operations(hlo, "log") == 1


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "elementwise-operations-are-fused",
    "A chain of a few elementwise operations becomes one fusion of the compiled function.",
    seeds="S002-06 S002-41 S004-11 S004-12",
)
def test_elementwise_operations_are_fused():
    hlo = stages(lambda x: jnp.tanh(x * 2 + 1) - x, X)[2]
    entry = hlo[hlo.index("ENTRY") :]
    assert operations(entry, "fusion") == 1
    assert not any(operations(entry, op) for op in ("multiply", "add", "tanh", "subtract"))


@pytest.mark.claim(
    "affine-map-compiles-to-dot-and-add",
    "A product with a matrix plus a bias is `dot_general` and `add` in the jaxpr; its compiled function holds "
    "one dot and one add.",
    seeds="S002-48 S002-49",
)
def test_affine_map_compiles_to_dot_and_add():
    args = (np.ones((4, 2), np.float32), np.ones(2, np.float32)), X
    jaxpr, _, hlo = stages(lambda params, x: x @ params[0] + params[1], *args)
    assert jaxpr.index("dot_general") < jaxpr.index("= add")
    if jax.default_backend() != "cpu":
        pytest.skip("not applicable: accelerators may call a library for the product")
    assert operations(hlo, "dot") == operations(hlo, "add") == 1


@pytest.mark.claim(
    "inner-functions-are-inlined",
    "Jitted functions called inside another are functions of their own in the StableHLO and are inlined by "
    "the compiler.",
    seeds="S002-02",
)
def test_inner_functions_are_inlined():
    inner = jax.jit(lambda x: jnp.sin(x) * 2)
    _, stablehlo, hlo = stages(lambda x: inner(inner(x)), X)
    assert len(re.findall(r"call @", stablehlo)) == 2
    assert operations(hlo, "call") == 0


@pytest.mark.claim(
    "unused-arguments-are-dropped",
    "An argument that the function does not use is not a parameter of the program, unless "
    "`keep_unused=True`.",
)
def test_unused_arguments_are_dropped():
    def first(x, y):
        return x + 1

    assert "%arg1" not in jax.jit(first).lower(X, X).as_text()
    assert "%arg1" in jax.jit(first, keep_unused=True).lower(X, X).as_text()


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "loop-invariant-work-leaves-the-loop",
    "On a CPU, elementwise work in the body of a loop primitive that is the same in each iteration, such as "
    "`jnp.sin(w)`, is moved out of the loop by the compiler.",
    seeds="S002-98",
)
def test_loop_invariant_work_leaves_the_loop():
    def loop(x, w):
        return lax.fori_loop(0, 100, lambda i, c: c * 0.5 + jnp.sin(w) * jnp.exp(w), x)

    _, stablehlo, hlo = stages(loop, X, X)
    assert stablehlo.count("stablehlo.sine") == 1
    bodies = re.findall(r"body=(%[\w.]+)", hlo)
    (body,) = [block for block in hlo.split("\n\n") if block.lstrip().startswith(bodies[0] + " ")]
    called = re.findall(r"calls=(%[\w.]+)", body)
    blocks = [block for block in hlo.split("\n\n") if block.lstrip().split(" ", 1)[0] in called]
    assert "sine(" in hlo
    assert not any("sine(" in block for block in [body, *blocks])


@pytest.mark.claim(
    "work-across-iterations-is-not-merged",
    "Work that cancels between one iteration and the next stays in a loop primitive: pairs of transposes "
    "vanish from unrolled code, and a loop of one transpose keeps it.",
    seeds="S002-98 S002-99",
)
def test_work_across_iterations_is_not_merged():
    m = np.ones((8, 8), np.float32)

    def unrolled(m):
        for _ in range(4):
            m = m.T
        return m

    assert operations(stages(unrolled, m)[2], "transpose") == 0
    hlo = stages(lambda m: lax.fori_loop(0, 4000, lambda i, c: c.T, m), m)[2]
    assert operations(hlo, "while") == 1
    assert operations(hlo, "transpose") >= 1


@pytest.mark.claim(
    "unrolled-program-grows",
    "The lowered text of a Python loop grows with the number of iterations; that of a `fori_loop` does not.",
    seeds="S002-06 S002-13 S002-53 S002-88 S002-99",
)
def test_unrolled_program_grows():
    def unrolled(n):
        def run(x):
            for _ in range(n):
                x = jnp.sin(x)
            return x

        return run

    def looped(n):
        return lambda x: lax.fori_loop(0, n, lambda i, c: jnp.sin(c), x)

    lines = [
        [len(jax.jit(make(n)).lower(X).as_text().splitlines()) for n in (10, 90)]
        for make in (unrolled, looped)
    ]
    assert lines[0][1] - lines[0][0] == 80
    assert lines[1][1] == lines[1][0]


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "trip-count-is-known-to-the-compiler",
    "On a CPU, the compiled text of a loop with known bounds names its trip count.",
)
def test_trip_count_is_known_to_the_compiler():
    hlo = stages(lambda x: lax.fori_loop(0, 137, lambda i, c: jnp.sin(c), x), X)[2]
    assert re.search(r"known_trip_count\W+n\W+137", hlo)


@pytest.mark.claim(
    "multiplying-a-float-by-zero-is-kept",
    "`x * 0.0` is not simplified to zero, because `inf` and `nan` times zero are `nan`; `x * 1.0` is "
    "removed.",
)
def test_multiplying_a_float_by_zero_is_kept():
    assert operations(stages(lambda x: x * 0.0, X)[2], "multiply") == 1
    assert operations(stages(lambda x: x * 1.0, X)[2], "multiply") == 0


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "boolean-products-become-selections",
    "The compiler turns the product of a boolean and a number into a selection: `False` × `inf` is 0, where "
    "NumPy gives `nan`.",
    seeds="S002-66",
)
def test_boolean_products_become_selections():
    x, keep = np.array([np.inf, 1.0], np.float32), np.array([False, True])
    with np.errstate(invalid="ignore"):
        assert np.isnan(keep * x)[0]
    assert jax.jit(lambda x, keep: keep * x)(x, keep).tolist() == [0, 1]
    assert operations(stages(lambda x, keep: keep * x, x, keep)[2], "select") == 1


@pytest.mark.claim(
    "debug-print-keeps-work-alive",
    "`jax.debug.print` of a value keeps the work behind it in the program, also if the results do not need "
    "it.",
)
def test_debug_print_keeps_work_alive():
    def noisy(x):
        jax.debug.print("{}", jnp.sin(x))
        return x

    assert operations(stages(noisy, X)[2], "sine") == 1
