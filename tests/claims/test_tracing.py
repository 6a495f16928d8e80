"""Tracing: which values the body sees, and how often it runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def _is_tracer(x):
    return isinstance(x, jax.core.Tracer)


@pytest.mark.claim(
    "first-call-traces-and-returns-the-result",
    "The first call of a jitted function runs its body once on tracers and returns the real result.",
    seeds="S000-01 S000-05 S000-07 S003-01",
)
def test_first_call_traces_and_returns_the_result():
    seen = []

    @jax.jit
    def dot(a, b):
        seen.append((_is_tracer(a), _is_tracer(b)))
        return jnp.dot(a, b)

    result = dot(np.arange(3.0), np.ones(3))
    assert seen == [(True, True)]
    assert not _is_tracer(result)
    assert result == 3.0


@pytest.mark.wrong_twin("first-call-traces-and-returns-the-result")
def test_wrong_twin_first_call_runs_on_values():
    seen = []
    jax.jit(lambda a: (seen.append(_is_tracer(a)), a)[1])(np.arange(3.0))
    assert seen == [False]


@pytest.mark.claim(
    "first-call-lowers-and-compiles-too",
    "A first call traces, lowers and compiles; a second does not: warm-up is more than tracing.",
    seeds="S000-05 S001-02 S001-03 S001-07 S001-08 S001-09 S001-10 S001-36",
)
def test_first_call_lowers_and_compiles_too(counted):
    f = jax.jit(lambda x: x * 2 + 1)
    x = np.float32(3)
    counted()
    f(x)
    done = counted()
    assert done["traces"] >= 1
    assert (done["lowerings"], done["compiles"]) == (1, 1)
    f(x)
    assert sum(counted().values()) == 0


@pytest.mark.claim(
    "tracer-knows-shape-and-dtype",
    "Inside a jitted function an argument knows its shape, its number of dimensions and its dtype.",
    seeds="S000-02 S001-30 S003-03",
)
def test_tracer_knows_shape_and_dtype():
    facts = []

    @jax.jit
    def f(x):
        facts.append((x.shape, x.ndim, x.size, len(x), x.dtype))
        return x

    f(np.ones((3, 4), np.float32))
    assert facts == [((3, 4), 2, 12, 3, np.dtype("float32"))]


@pytest.mark.claim(
    "tracer-prints-dtype-and-shape",
    "Printing an argument inside a jitted function shows a dtype and a shape, such as `float32[3,4]`, and not values.",
    seeds="S000-07 S003-01 S003-02",
)
def test_tracer_prints_dtype_and_shape(capsys):
    jax.jit(lambda x: (print(x), x)[1])(np.ones((3, 4), np.float32))
    assert "float32[3,4]" in capsys.readouterr().out


@pytest.mark.claim(
    "old-traced-form-is-no-longer-printed",
    "Tracers under jit, `grad` and `vmap` no longer print as `Traced<ShapedArray(...)>`, the form that "
    "older tutorials show.",
    seeds="S003-02",
)
def test_old_traced_form_is_no_longer_printed():
    forms = []

    def f(x):
        forms.append(repr(x))
        return x * 2

    jax.jit(f)(2.0), jax.grad(f)(2.0), jax.vmap(f)(np.ones(2))
    assert len(forms) == 3
    assert not any("Traced<" in form or "ShapedArray" in form for form in forms)


@pytest.mark.claim(
    "weak-type-shows-as-a-tilde",
    "A Python number becomes a weakly typed tracer, which prints with a `~` before its dtype.",
)
def test_weak_type_shows_as_a_tilde():
    forms = []
    f = jax.jit(lambda x: (forms.append(repr(x)), x)[1])
    f(2), f(2.0), f(np.float32(2)), f(True)
    assert ["~" in form for form in forms] == [True, True, False, False]
    assert "~int32[]" in forms[0]


@pytest.mark.claim(
    "typeof-shows-what-a-tracer-stands-for",
    "`jax.typeof` gives the abstract type of a value, inside and outside jit.",
)
def test_typeof_shows_what_a_tracer_stands_for():
    if not hasattr(jax, "typeof"):
        pytest.skip("not applicable: jax.typeof is not in this JAX")
    types = []
    x = np.ones(3, np.float32)
    jax.jit(lambda a: (types.append(jax.typeof(a)), a)[1])(x)
    assert types == [jax.typeof(x)]
    assert (types[0].shape, types[0].dtype, types[0].weak_type) == ((3,), np.dtype("float32"), False)
    assert jax.typeof(2.0).weak_type


@pytest.mark.claim(
    "only-a-new-length-speaks-again",
    "A `print` in the body speaks again for a new length, and stays silent when the first length returns.",
    seeds="S000-03 S000-06 S000-10 S000-11 S001-36",
)
def test_only_a_new_length_speaks_again(capsys):
    f = jax.jit(lambda x: (print("traced for", x.shape), x.sum())[1])
    f(np.ones(100)), f(np.ones(50)), f(np.zeros(100))
    assert capsys.readouterr().out == "traced for (100,)\ntraced for (50,)\n"


@pytest.mark.claim(
    "one-trace-serves-all-values",
    "One trace serves every value of an array of its shape, dtype, weak type and sharding.",
    seeds="S001-29 S001-30 S001-32 S003-04",
)
@pytest.mark.hostile("scalar", "empty", "uniform", "bfloat16", "int8", "complex", "split", "committed")
def test_one_trace_serves_all_values(case):
    runs = []
    f = jax.jit(lambda x: (runs.append(1), x + x)[1])
    x = case.array
    for other in (x, -x, x + x, x - x):
        assert np.array_equal(f(other), np.asarray(other) + np.asarray(other))
    assert runs == [1]


@pytest.mark.claim(
    "kept-lambda-is-cached",
    "A jitted lambda that you keep in a name is traced once and reused like a named function.",
    seeds="S000-04",
)
def test_kept_lambda_is_cached():
    runs = []
    f = jax.jit(lambda x: (runs.append(1), x + 1)[1])
    f(1.0), f(2.0), f(3.0)
    assert runs == [1]


@pytest.mark.claim(
    "tracer-is-a-jax-array",
    "Inside jit `isinstance(x, jax.Array)` is true, and tests for `float` or `np.ndarray` are false.",
)
def test_tracer_is_a_jax_array():
    seen = []

    @jax.jit
    def f(x):
        seen.extend(isinstance(x, kind) for kind in (jax.Array, float, np.ndarray))
        return x

    f(2.0)
    assert seen == [True, False, False]


@pytest.mark.claim(
    "computing-with-a-tracer-gives-a-tracer",
    "What is computed from a traced argument is traced too, comparisons and `astype` included.",
    seeds="S003-18 S003-19",
)
def test_computing_with_a_tracer_gives_a_tracer():
    kinds = []

    @jax.jit
    def f(x):
        kinds.extend(map(_is_tracer, (x + 1, x > 0, jnp.sin(x), x.astype(int), x[0], x.T)))
        return x

    f(np.ones(3))
    assert kinds == [True] * 6


@pytest.mark.claim(
    "jnp-turns-static-into-traced",
    "`x.shape` is a plain tuple under jit; fed through `jnp` it becomes a tracer, through `np` a value.",
    seeds="S003-13 S003-14 S003-16 S003-19",
)
def test_jnp_turns_static_into_traced():
    seen = []

    @jax.jit
    def f(x):
        assert type(x.shape) is tuple
        seen.extend((jnp.array(x.shape).prod(), np.prod(x.shape)))
        return x

    f(np.ones((2, 3)))
    assert _is_tracer(seen[0])
    assert isinstance(seen[1], np.integer)
    assert seen[1] == 6


@pytest.mark.claim(
    "np-runs-while-tracing-jnp-is-recorded",
    "On constants, `np` computes while tracing and leaves nothing in the program; `jnp` becomes part of it.",
    seeds="S003-11 S003-16",
)
def test_np_runs_while_tracing_jnp_is_recorded():
    def names(f):
        return [eqn.primitive.name for eqn in jax.make_jaxpr(f)(np.float32(1)).eqns]

    assert names(lambda x: x + np.sin(np.float32(2))) == ["add"]
    assert names(lambda x: x + jnp.sin(np.float32(2))) == ["sin", "add"]


@pytest.mark.wrong_twin("np-runs-while-tracing-jnp-is-recorded")
def test_wrong_twin_np_is_recorded():
    jaxpr = jax.make_jaxpr(lambda x: x + np.sin(np.float32(2)))(np.float32(1))
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["sin", "add"]


@pytest.mark.claim(
    "compile-time-eval-computes-while-tracing",
    "`jax.ensure_compile_time_eval()` lets `jnp` compute constants while tracing: the value is recorded, "
    "and not the operation.",
)
def test_compile_time_eval_computes_while_tracing():
    seen = []

    def f(x):
        with jax.ensure_compile_time_eval():
            seen.append(jnp.sin(np.float32(2)))
        return x + seen[-1]

    jaxpr = jax.make_jaxpr(f)(np.float32(1))
    assert not _is_tracer(seen[0])
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["add"]


@pytest.mark.claim(
    "compile-time-eval-cannot-evaluate-arguments",
    "`jax.ensure_compile_time_eval()` does not give a traced argument a value.",
)
def test_compile_time_eval_cannot_evaluate_arguments():
    @jax.jit
    def f(x):
        with jax.ensure_compile_time_eval():
            return bool(x > 0)

    with pytest.raises(jax.errors.TracerBoolConversionError, match="boolean conversion"):
        f(1.0)


@pytest.mark.claim(
    "keyword-arguments-are-traced",
    "Keyword arguments are traced just as positional ones are.",
    seeds="S003-21",
)
def test_keyword_arguments_are_traced():
    seen = []
    jax.jit(lambda x, *, y: (seen.extend(map(_is_tracer, (x, y))), x + y)[1])(1.0, y=2.0)
    assert seen == [True, True]


@pytest.mark.claim(
    "python-numbers-are-traced",
    "Python ints, floats and bools that you pass are traced like arrays, unless you mark them static.",
    seeds="S003-21",
)
def test_python_numbers_are_traced():
    seen = []
    jax.jit(lambda *xs: (seen.extend(map(_is_tracer, xs)), xs)[1])(1, 2.0, True)
    assert seen == [True] * 3


@pytest.mark.claim(
    "omitted-default-is-not-traced",
    "A default value that the caller leaves out stays a Python value; the same value passed is traced.",
    seeds="S003-21",
)
def test_omitted_default_is_not_traced():
    seen = []

    @jax.jit
    def f(x, n=3):
        seen.append(_is_tracer(n))
        return x * n

    assert (f(2.0), f(2.0, 3)) == (6.0, 6.0)
    assert seen == [False, True]


@pytest.mark.claim(
    "none-argument-is-visible-to-python",
    "`None` is not traced: `if x is None` works, and passing an array instead traces again.",
    seeds="S000-27 S003-21",
)
def test_none_argument_is_visible_to_python():
    runs = []

    @jax.jit
    def f(x, bias=None):
        runs.append(bias is None)
        return x if bias is None else x + bias

    assert (f(1.0, None), f(1.0, 2.0), f(5.0, None)) == (1.0, 3.0, 5.0)
    assert runs == [True, False]


@pytest.mark.claim(
    "remainder-is-an-integer-its-comparison-a-bool",
    "For a traced integer, `x % 2` is an abstract integer; the abstract boolean is `x % 2 == 0`.",
    seeds="S001-33",
)
def test_remainder_is_an_integer_its_comparison_a_bool():
    seen = []
    jax.jit(lambda x: (seen.extend(((x % 2).dtype, (x % 2 == 0).dtype)), x)[1])(2)
    assert seen == [np.dtype("int32"), np.dtype("bool")]


@pytest.mark.claim(
    "float64-argument-is-traced-as-float32",
    "By default a NumPy float64 argument is traced as float32 and the result is float32, without a warning.",
    seeds="S000-03 S000-08 S003-01",
)
def test_float64_argument_is_traced_as_float32():
    x = np.random.default_rng(0).normal(size=100)
    result = jax.jit(jnp.dot)(x, x.T)
    assert (x.dtype, result.dtype) == (np.dtype("float64"), np.dtype("float32"))
    np.testing.assert_allclose(result, np.dot(x, x), rtol=1e-5)


@pytest.mark.claim(
    "transposing-a-vector-changes-nothing",
    "The transpose of a one-dimensional array is the array itself, under jit as in NumPy.",
    seeds="S000-08",
)
def test_transposing_a_vector_changes_nothing():
    x = np.arange(3.0)
    assert jax.jit(lambda a: a.T)(x).shape == x.T.shape == (3,)
    assert len(jax.make_jaxpr(lambda a: a.T)(x).eqns) == 0


@pytest.mark.claim(
    "disable-jit-runs-the-body-on-values",
    "Under `jax.disable_jit()`, without `vmap` or `grad` around it, the body runs at each call, on values "
    "instead of tracers.",
)
def test_disable_jit_runs_the_body_on_values():
    seen = []
    f = jax.jit(lambda x: (seen.append(_is_tracer(x)), x * 2)[1])
    with jax.disable_jit():
        assert [float(f(v)) for v in (1.0, 2.0)] == [2.0, 4.0]
    assert seen == [False, False]


@pytest.mark.claim(
    "shape-check-costs-nothing-when-warm",
    "An `assert` on a shape runs while tracing: it refuses a wrong shape, and does not run on a hit.",
)
def test_shape_check_costs_nothing_when_warm():
    checks = []

    @jax.jit
    def f(x):
        checks.append(x.shape)
        assert x.ndim == 1, f"a vector, please, not {x.shape}"
        return x.sum()

    f(np.ones(3)), f(np.ones(3))
    assert checks == [(3,)]
    with pytest.raises(AssertionError, match="a vector"):
        f(np.ones((3, 3)))


@pytest.mark.claim(
    "function-keeps-its-name-and-original",
    "A jitted function keeps its name and docstring, and holds the original as `__wrapped__`.",
)
def test_function_keeps_its_name_and_original():
    def scale(x):
        """Double it."""
        return x * 2

    jitted = jax.jit(scale)
    assert (jitted.__name__, jitted.__doc__) == ("scale", "Double it.")
    assert jitted.__wrapped__ is scale
