"""jit with grad, jvp, vmap, pmap and the loop primitives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

BOOL = jax.errors.TracerBoolConversionError
VALUE = jax.errors.ConcretizationTypeError


def _is_tracer(x):
    return isinstance(x, jax.core.Tracer)


def _divide(x, y):
    return x / y if y >= 1 else 0.0


@pytest.mark.claim(
    "grad-lets-python-branch",
    "Under `grad` without jit a Python `if` on the differentiated argument works: its value is known.",
    seeds="S003-17 S003-20 S003-24 S003-29",
)
def test_grad_lets_python_branch():
    f = jax.grad(lambda x: x**2 if x > 0 else 3 * x)
    assert (f(3.0), f(-3.0)) == (6.0, 3.0)
    value, slope = jax.value_and_grad(lambda x: x**2 if x > 0 else 3 * x)(3.0)
    assert (value, slope) == (9.0, 6.0)


@pytest.mark.claim(
    "grad-leaves-other-arguments-alone",
    "`grad` makes a tracer of the differentiated argument only: the others reach the body as passed.",
    seeds="S003-24 S003-29",
)
@pytest.mark.parametrize("other", [2.0, 2, True, None, "text", np.ones(2), np.int8(1)], ids=str)
def test_grad_leaves_other_arguments_alone(other):
    seen = []

    def f(x, y):
        seen.append((_is_tracer(x), y is other))
        return x / 2

    assert jax.grad(f)(3.0, other) == 0.5
    assert seen == [(True, True)]


@pytest.mark.wrong_twin("grad-leaves-other-arguments-alone")
def test_wrong_twin_grad_traces_all_arguments():
    seen = []
    jax.grad(lambda x, y: (seen.append(_is_tracer(y)), x / y)[1])(3.0, 2.0)
    assert seen == [True]


@pytest.mark.claim(
    "jvp-traces-all-its-primals",
    "`jvp` makes tracers of both primal arguments, and their values are known to Python.",
    seeds="S003-18 S003-24",
)
def test_jvp_traces_all_its_primals():
    seen = []

    def f(x, y):
        seen.extend(map(_is_tracer, (x, y)))
        return _divide(x, y)

    assert jax.jvp(f, (3.0, 2.0), (1.0, 0.0)) == (1.5, 0.5)
    assert seen == [True, True]


@pytest.mark.claim(
    "grad-inside-jit-has-no-values",
    "With jit outside, the value is unknown under `grad` too: the branch that works under `grad` raises.",
    seeds="S003-25",
)
def test_grad_inside_jit_has_no_values():
    assert jax.grad(_divide)(3.0, 2.0) == 0.5
    with pytest.raises(BOOL):
        jax.jit(jax.grad(_divide))(3.0, 2.0)
    assert jax.jit(jax.grad(_divide), static_argnums=1)(3.0, 2.0) == 0.5


@pytest.mark.claim(
    "jit-inside-grad-has-no-values",
    "With jit inside, the body does not see values either, although `grad` outside does.",
    seeds="S003-25",
)
def test_jit_inside_grad_has_no_values():
    with pytest.raises(BOOL):
        jax.grad(jax.jit(_divide))(3.0, 2.0)


@pytest.mark.claim(
    "comparison-under-grad-is-a-plain-array",
    "Under `grad` a comparison or a cast to integers gives a plain array: not a tracer, and not a Python "
    "value.",
    seeds="S003-18 S003-19 S003-20",
)
def test_comparison_under_grad_is_a_plain_array():
    seen = []
    jax.grad(lambda x: (seen.extend((x >= 1, x.astype(int))), x)[1])(3.0)
    assert [isinstance(value, jax.Array) for value in seen] == [True, True]
    assert [_is_tracer(value) for value in seen] == [False, False]


@pytest.mark.claim(
    "astype-float-under-grad-stays-traced",
    "Under `grad`, `x.astype(float)` gives a tracer: it keeps the derivative, and is not a Python value.",
    seeds="S003-19",
)
def test_astype_float_under_grad_stays_traced():
    seen = []
    assert jax.grad(lambda x: (seen.append(x.astype(float)), seen[-1] * 2)[1])(3.0) == 2
    assert _is_tracer(seen[0])


@pytest.mark.claim(
    "int-and-bool-under-grad-work-float-does-not",
    "Under `grad`, `int(x)` and `bool(x)` give Python values; `float(x)` raises `ConcretizationTypeError`.",
    seeds="S003-19 S003-20",
)
def test_int_and_bool_under_grad_work_float_does_not():
    seen = []
    jax.grad(lambda x: (seen.extend((int(x), bool(x))), x)[1])(3.0)
    assert seen == [3, True]
    assert [type(value) for value in seen] == [int, bool]
    with pytest.raises(VALUE, match="float"):
        jax.grad(lambda x: x * float(x))(3.0)


@pytest.mark.claim(
    "numpy-function-under-grad-raises",
    "A NumPy function of the differentiated argument raises `TracerArrayConversionError`, even without jit.",
)
def test_numpy_function_under_grad_raises():
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.grad(lambda x: np.sin(x) * 1.0)(3.0)


@pytest.mark.claim(
    "vmap-has-no-single-value",
    "Under `vmap` a Python `if` on a mapped argument raises `TracerBoolConversionError`, also without jit.",
    seeds="S003-23",
)
def test_vmap_has_no_single_value():
    with pytest.raises(BOOL):
        jax.vmap(lambda x: x if x > 0 else -x)(np.ones(3))


@pytest.mark.claim(
    "vmap-traces-mapped-arguments-only",
    "`vmap` makes tracers of mapped arguments, keyword ones too; one with `in_axes=None` stays as passed.",
    seeds="S003-23",
)
@pytest.mark.parametrize("other", [2.0, 2, True, None, np.ones(2), np.int8(1)], ids=str)
def test_vmap_traces_mapped_arguments_only(other):
    seen = []

    def f(x, y, *, z):
        seen.append((_is_tracer(x), _is_tracer(z), y is other, x.shape))
        return x + z

    jax.vmap(f, in_axes=(0, None))(np.ones(3), other, z=np.ones(3))
    assert seen == [(True, True, True, ())]


@pytest.mark.claim(
    "make-jaxpr-traces-all-arguments",
    "`make_jaxpr` makes abstract tracers of all its arguments: a branch on any of them raises.",
    seeds="S003-23",
)
@pytest.mark.parametrize("other", [2.0, True, 3, 1j, np.int8(1), np.float64(2)], ids=str)
def test_make_jaxpr_traces_all_arguments(other):
    seen = []
    jax.make_jaxpr(lambda x, y: (seen.extend(map(_is_tracer, (x, y))), x)[1])(1.0, other)
    assert seen == [True, True]
    with pytest.raises(BOOL):
        jax.make_jaxpr(lambda x, y: x if y else -x)(3.0, other)


@pytest.mark.claim(
    "pmap-traces-all-but-static",
    "`pmap` makes tracers of its arguments, except those in `static_broadcasted_argnums`.",
    seeds="S000-34 S003-22",
)
def test_pmap_traces_all_but_static():
    seen = []

    def f(x, n):
        seen.append((_is_tracer(x), n))
        return x * n

    result = jax.pmap(f, static_broadcasted_argnums=1)(np.ones(1), 3)
    assert result.tolist() == [3.0]
    assert seen == [(True, 3)]


@pytest.mark.claim(
    "pmap-branch-on-value-raises",
    "A Python `if` on a mapped value raises under `pmap` as it does under jit.",
    seeds="S003-22",
)
def test_pmap_branch_on_value_raises():
    with pytest.raises(BOOL):
        jax.pmap(lambda x: x if x > 0 else -x)(np.ones(1))


@pytest.mark.claim(
    "pmap-is-built-on-jit-now",
    "`pmap` is built on jit now: its jaxpr is a `jit` equation around a `shard_map`.",
    seeds="S003-22",
)
def test_pmap_is_built_on_jit_now():
    jaxpr = jax.make_jaxpr(jax.pmap(lambda x: x * 2))(np.ones(1))
    text = str(jaxpr)
    assert "xla_pmap" not in text
    assert "jit[" in text
    assert "shard_map[" in text


@pytest.mark.claim(
    "each-transformation-has-its-own-tracer",
    "The kind of tracer in the body depends on the transformation: jit, `grad`, `jvp` and `vmap` differ.",
    seeds="S001-31 S003-17",
)
def test_each_transformation_has_its_own_tracer():
    kinds = []
    f = lambda x: (kinds.append(type(x)), x * 2)[1]  # noqa: E731 - one line per experiment
    jax.jit(f)(2.0), jax.grad(f)(2.0), jax.jvp(f, (2.0,), (1.0,)), jax.vmap(f)(np.ones(2))
    assert len(set(kinds)) == 4
    assert all(issubclass(kind, jax.core.Tracer) for kind in kinds)


@pytest.mark.claim(
    "grad-tracer-shows-its-value",
    "Printing the differentiated argument under `grad` shows its number; under jit around it, it does not.",
    seeds="S003-17 S003-25",
)
def test_grad_tracer_shows_its_value():
    forms = []
    f = jax.grad(lambda x: (forms.append(repr(x)), x * 2)[1])
    f(2.5), jax.jit(f)(2.5)
    assert "2.5" in forms[0]
    assert "2.5" not in forms[1]


@pytest.mark.claim(
    "loop-primitives-trace-abstractly",
    "`cond`, `switch` over several branches, `while_loop`, `fori_loop` and `scan` trace their functions without values, "
    "with jit or without; `switch` over one branch calls it.",
    seeds="S000-21 S003-26",
)
def test_loop_primitives_trace_abstractly():
    seen = []

    def step(x, *_):
        seen.append(_is_tracer(x))
        return x * 2.0

    lax.cond(True, step, step, 2.0), lax.switch(0, [step, step], 2.0)
    lax.while_loop(lambda x: x < 9.0, step, 2.0)
    lax.fori_loop(0, 3, lambda i, x: step(x, i), 2.0)
    lax.scan(lambda c, x: (step(c), x), 2.0, np.ones(3))
    assert len(seen) >= 5
    assert all(seen)
    lax.switch(0, [step], 2.0)
    assert not seen[-1]
    with pytest.raises(BOOL):
        lax.fori_loop(0, 3, lambda i, x: x * 2 if x > 0 else x, 2.0)


@pytest.mark.claim(
    "fori-loop-outside-jit-runs-its-body-once",
    "`fori_loop` is not a jitted function; but outside jit too its body is traced, not run in each "
    "iteration.",
    seeds="S000-21",
)
def test_fori_loop_outside_jit_runs_its_body_once():
    runs = []

    def body(i, x):
        runs.append(1)
        return x + 1.0

    assert lax.fori_loop(0, 50, body, 0.0) == 50
    assert len(runs) <= 2
    assert not hasattr(lax.fori_loop, "lower")
    assert hasattr(jax.jit(body), "lower")


@pytest.mark.claim(
    "disable-jit-opens-loop-primitives",
    "Under `jax.disable_jit()` loop primitives such as `fori_loop` do not trace: they run as Python loops on values.",
    seeds="S003-26",
)
def test_disable_jit_opens_loop_primitives():
    seen = []
    with jax.disable_jit():
        lax.fori_loop(0, 3, lambda i, x: (seen.append(_is_tracer(x)), x + 1.0)[1], 0.0)
    assert seen == [False] * 3


@pytest.mark.claim(
    "grad-alone-runs-the-body-each-time",
    "`grad` of a plain function runs its Python body at each call; `jit(grad(f))` runs it once.",
    seeds="S001-11 S001-14",
)
def test_grad_alone_runs_the_body_each_time():
    runs = []

    def f(x):
        runs.append(1)
        return x**2

    slope, fast = jax.grad(f), jax.jit(jax.grad(f))
    slope(1.0), slope(2.0), slope(3.0)
    assert len(runs) == 3
    fast(1.0), fast(2.0), fast(3.0)
    assert len(runs) == 4


@pytest.mark.claim(
    "vmap-alone-runs-the-body-each-time",
    "`vmap` of a plain function runs its Python body at each call: it does not keep a jaxpr.",
    seeds="S001-11 S001-14",
)
def test_vmap_alone_runs_the_body_each_time():
    runs = []
    f = jax.vmap(lambda x: (runs.append(1), x * 2)[1])
    for _ in range(3):
        f(np.ones(4))
    assert len(runs) == 3


@pytest.mark.claim(
    "grad-of-jitted-reuses-the-trace",
    "`grad` of a jitted function differentiates its recorded trace: the body is not run again for it.",
)
def test_grad_of_jitted_reuses_the_trace():
    runs = []
    f = jax.jit(lambda x: (runs.append(1), x**2)[1])
    f(3.0)
    assert (jax.grad(f)(3.0), jax.grad(f)(5.0)) == (6.0, 10.0)
    assert len(runs) == 1


@pytest.mark.claim(
    "order-of-jit-does-not-change-results",
    "`jit(grad(f))` and `grad(jit(f))`, or `jit(vmap(f))` and `vmap(jit(f))`, give equal results.",
)
def test_order_of_jit_does_not_change_results():
    def f(x):
        return jnp.sin(x) ** 2

    xs = np.linspace(0, 1, 5, dtype=np.float32)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(0.5), jax.grad(jax.jit(f))(0.5), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(f))(xs), jax.vmap(jax.jit(f))(xs), rtol=1e-6)


@pytest.mark.claim(
    "jitted-body-sees-one-example-under-vmap",
    "A jitted function under `vmap` is traced for one example: the body sees the shape without the batch.",
)
def test_jitted_body_sees_one_example_under_vmap():
    shapes = []
    f = jax.jit(lambda x: (shapes.append(x.shape), x.sum())[1])
    assert jax.vmap(f)(np.ones((5, 3))).shape == (5,)
    assert shapes == [(3,)]


@pytest.mark.claim(
    "inner-jit-is-no-executable-of-its-own",
    "A jitted function called inside another one is compiled as a part of it: one compilation for both.",
)
def test_inner_jit_is_no_executable_of_its_own(counted):
    inner = jax.jit(lambda x: x * 2)
    outer = jax.jit(lambda x: inner(x) + 1)
    x = np.float32(1)
    counted()
    outer(x)
    assert counted()["compiles"] == 1


@pytest.mark.claim(
    "checkpoint-has-no-values",
    "`jax.checkpoint` traces its function without values, so a branch that works under `grad` raises in it.",
    seeds="S003-24",
)
def test_checkpoint_has_no_values():
    def f(x):
        return x**2 if x > 0 else x

    assert jax.grad(f)(3.0) == 6
    with pytest.raises(VALUE):
        jax.grad(jax.checkpoint(f))(3.0)
