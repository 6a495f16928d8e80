"""Jaxprs: what they record, how to read them, what is not in them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def _relu(x):
    return jnp.maximum(0.0, x)


def _names(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


@pytest.mark.claim(
    "relu-jaxpr-is-one-max",
    "The jaxpr of `jnp.maximum(0.0, x)` is one `max` of the literal zero and the argument.",
    seeds="S000-26",
)
def test_relu_jaxpr_is_one_max():
    jaxpr = jax.make_jaxpr(_relu)(2.0)
    assert _names(jaxpr) == ["max"]
    assert "max 0.0" in str(jaxpr)


@pytest.mark.wrong_twin("relu-jaxpr-is-one-max")
def test_wrong_twin_relu_jaxpr_is_a_select():
    assert "select_n" in _names(jax.make_jaxpr(_relu)(2.0))


@pytest.mark.claim(
    "jaxpr-of-jitted-is-one-jit-equation",
    "`make_jaxpr` of a jitted function shows one outer equation named `jit`, with the body inside it.",
    seeds="S001-15 S001-16",
)
def test_jaxpr_of_jitted_is_one_jit_equation():
    (eqn,) = jax.make_jaxpr(jax.jit(_relu))(np.ones((2, 3), np.float32)).eqns
    assert (eqn.primitive.name, eqn.params["name"]) == ("jit", "_relu")
    assert _names(eqn.params["jaxpr"]) == ["max"]


@pytest.mark.claim(
    "xla-call-is-gone-from-jaxprs",
    "The old call equation `xla_call` and its successor `pjit` no longer appear in a jaxpr.",
    seeds="S001-15",
)
def test_xla_call_is_gone_from_jaxprs():
    text = str(jax.make_jaxpr(jax.jit(_relu))(2.0))
    assert "xla_call" not in text
    assert "pjit" not in text


@pytest.mark.claim(
    "traced-jaxpr-shows-the-body",
    "`f.trace(x).jaxpr` of a jitted function shows its body without the outer `jit` equation.",
    seeds="S001-09",
)
def test_traced_jaxpr_shows_the_body():
    f = jax.jit(_relu)
    if not hasattr(f, "trace"):
        pytest.skip("not applicable: jitted functions have no trace method in this JAX")
    assert _names(f.trace(2.0).jaxpr) == ["max"]


@pytest.mark.claim(
    "matmul-is-a-dot-general",
    "A matrix product is recorded as `dot_general`, whose parameters name the contracted dimensions.",
    seeds="S001-17",
)
def test_matmul_is_a_dot_general():
    (eqn,) = jax.make_jaxpr(jnp.dot)(np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)).eqns
    while eqn.primitive.name != "dot_general":
        (eqn,) = eqn.params["jaxpr"].eqns
    assert eqn.params["dimension_numbers"] == (((1,), (0,)), ((), ()))
    assert {"precision", "preferred_element_type"} <= set(eqn.params)


@pytest.mark.claim(
    "jaxpr-of-a-dot-of-sums",
    "The jaxpr of `jnp.dot(x + 1, y + 1)` is two additions of 1.0 and a `dot_general`.",
    seeds="S003-06",
)
def test_jaxpr_of_a_dot_of_sums():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 4)), rng.normal(size=4)
    jaxpr = jax.make_jaxpr(lambda a, b: jnp.dot(a + 1, b + 1))(x, y)
    assert _names(jaxpr) == ["add", "add", "dot_general"]
    assert str(jaxpr).count("1.0") == 2


@pytest.mark.claim(
    "every-jaxpr-variable-has-a-type",
    "The variables of a jaxpr are printed with dtype and shape, as in `a:f32[2,3]`.",
    seeds="S001-11 S001-12 S001-16",
)
def test_every_jaxpr_variable_has_a_type():
    jaxpr = jax.make_jaxpr(lambda x: x.sum())(np.ones((2, 3), np.float32))
    assert str(jaxpr).startswith("{ lambda ; a:f32[2,3]. let")
    assert "b:f32[] = reduce_sum" in str(jaxpr)
    assert str(jaxpr).rstrip().endswith("in (b,) }")


@pytest.mark.claim(
    "jaxpr-may-have-no-inputs-and-no-outputs",
    "A jaxpr can be without inputs, and without outputs.",
    seeds="S001-12",
)
def test_jaxpr_may_have_no_inputs_and_no_outputs():
    jaxpr = jax.make_jaxpr(lambda: None)()
    assert (jaxpr.in_avals, jaxpr.out_avals, list(jaxpr.eqns)) == ([], [], [])


@pytest.mark.claim(
    "jaxpr-has-one-path-only",
    "A jaxpr holds the branch that Python took while tracing; the other branch is not in it.",
    seeds="S001-13",
)
def test_jaxpr_has_one_path_only():
    def f(x):
        return jnp.sin(x) if x.ndim == 0 else jnp.cos(x)

    assert _names(jax.make_jaxpr(f)(1.0)) == ["sin"]
    assert _names(jax.make_jaxpr(f)(np.ones(2))) == ["cos"]


@pytest.mark.claim(
    "print-is-not-in-the-jaxpr",
    "A `print` in the body runs while the jaxpr is made and leaves nothing in it.",
    seeds="S001-18 S001-22",
)
def test_print_is_not_in_the_jaxpr(capsys):
    @jax.jit
    def square(x):
        print(x)
        return x**2

    jaxpr = jax.make_jaxpr(square)(2)
    assert "int32[]" in capsys.readouterr().out
    (inner,) = jaxpr.eqns[0].params["jaxpr"].eqns
    assert (inner.primitive.name, inner.params["y"]) == ("integer_pow", 2)
    assert "print" not in str(jaxpr)


@pytest.mark.claim(
    "append-is-not-in-the-jaxpr",
    "Appending to an outer list is not in the jaxpr; the computation of the value is.",
    seeds="S001-21 S001-22",
)
def test_append_is_not_in_the_jaxpr():
    kept = []

    def square(x):
        y = x**2
        kept.append(y)
        return y

    assert _names(jax.make_jaxpr(square)(2)) == ["integer_pow"]
    assert len(kept) == 1


@pytest.mark.claim(
    "debug-print-is-in-the-jaxpr",
    "`jax.debug.print` is recorded as an equation with an effect, so it survives compilation.",
    seeds="S001-22",
)
def test_debug_print_is_in_the_jaxpr():
    def f(x):
        jax.debug.print("{}", x)
        return x

    jaxpr = jax.make_jaxpr(f)(1.0)
    assert len(jaxpr.eqns) == 1
    assert len(jaxpr.effects) == 1


@pytest.mark.claim(
    "make-jaxpr-and-call-share-a-trace",
    "`make_jaxpr` of a jitted function and a later call with the same types share one trace.",
    seeds="S001-20 S001-21 S001-24",
)
def test_make_jaxpr_and_call_share_a_trace():
    runs = []
    square = jax.jit(lambda x: (runs.append(1), x**2)[1])
    jax.make_jaxpr(square)(2)
    assert len(runs) == 1
    assert [int(square(v)) for v in (2, 4, 8)] == [4, 16, 64]
    assert len(runs) == 1


@pytest.mark.wrong_twin("make-jaxpr-and-call-share-a-trace")
def test_wrong_twin_make_jaxpr_and_call_trace_twice():
    runs = []
    square = jax.jit(lambda x: (runs.append(1), x**2)[1])
    jax.make_jaxpr(square)(2), square(2)
    assert len(runs) == 2


@pytest.mark.claim(
    "jaxpr-names-no-device",
    "The jaxpr of a jitted function does not name the device that it will run on; `device_put` in the body names its own.",
    seeds="S001-15 S001-23",
)
def test_jaxpr_names_no_device():
    device = jax.devices()[-1]
    for x in (2.0, jax.device_put(2.0, device)):
        (eqn,) = jax.make_jaxpr(jax.jit(_relu))(x).eqns
        assert not {"device", "backend"} & set(eqn.params)
        assert "Device" not in str(jax.make_jaxpr(_relu)(x))
    assert "Device" in str(jax.make_jaxpr(lambda x: jax.device_put(x, device))(2.0))


@pytest.mark.claim(
    "jit-equation-lists-donation-inlining-and-name",
    "The `jit` equation carries, among others, the name, the donated inputs, inlining and shardings.",
    seeds="S001-15",
)
def test_jit_equation_lists_donation_inlining_and_name():
    (eqn,) = jax.make_jaxpr(jax.jit(_relu))(2.0).eqns
    assert {"name", "jaxpr", "donated_invars", "inline", "in_shardings", "out_shardings"} <= set(eqn.params)


@pytest.mark.claim(
    "closed-over-array-is-a-constant-of-the-jaxpr",
    "An array that the body takes from outside is a constant of the jaxpr, listed before the `;`.",
)
def test_closed_over_array_is_a_constant_of_the_jaxpr():
    for outer in (jnp.ones(3), np.ones(3, np.float32)):
        jaxpr = jax.make_jaxpr(lambda x, outer=outer: x + outer)(np.ones(3, np.float32))
        assert len(jaxpr.consts) == 1
        assert str(jaxpr).startswith("{ lambda a:f32[3]; b:f32[3].")


@pytest.mark.claim(
    "closed-over-number-is-a-literal",
    "A Python number that the body takes from outside is written into the jaxpr as a literal.",
    seeds="S000-14",
)
def test_closed_over_number_is_a_literal():
    factor = 2.5
    jaxpr = jax.make_jaxpr(lambda x: x * factor)(1.0)
    assert len(jaxpr.consts) == 0
    assert "2.5" in str(jaxpr)


@pytest.mark.claim(
    "static-argument-is-no-input-of-the-jaxpr",
    "A static argument is not an input of the jaxpr: its value is written into the equations.",
    seeds="S003-21",
)
def test_static_argument_is_no_input_of_the_jaxpr():
    jaxpr = jax.make_jaxpr(lambda x, n: x * n, static_argnums=1)(2.0, 3)
    assert len(jaxpr.in_avals) == 1
    assert "3.0" in str(jaxpr)


@pytest.mark.claim(
    "make-jaxpr-needs-types-only",
    "`make_jaxpr` accepts `jax.ShapeDtypeStruct` in place of arrays: types are enough.",
    seeds="S003-23",
)
def test_make_jaxpr_needs_types_only():
    x = np.ones(3, np.float32)
    abstract = jax.make_jaxpr(_relu)(jax.ShapeDtypeStruct(x.shape, x.dtype))
    assert str(abstract) == str(jax.make_jaxpr(_relu)(x))


@pytest.mark.claim(
    "jaxpr-keeps-unused-work",
    "A jaxpr keeps work whose result is not used; removing it is left to later stages.",
)
def test_jaxpr_keeps_unused_work():
    assert _names(jax.make_jaxpr(lambda x: (jnp.sin(x), x)[1])(1.0)) == ["sin"]


@pytest.mark.claim(
    "transformations-have-jaxprs-of-their-own",
    "`make_jaxpr` of `grad(f)` or `vmap(f)` shows what the transformation made of f.",
    seeds="S001-11 S001-14",
)
def test_transformations_have_jaxprs_of_their_own():
    def cube(x):
        return x**3

    assert _names(jax.make_jaxpr(cube)(2.0)) == ["integer_pow"]
    assert "mul" in _names(jax.make_jaxpr(jax.grad(cube))(2.0))
    (eqn,) = jax.make_jaxpr(jax.vmap(cube))(np.ones(4, np.float32)).eqns
    assert eqn.outvars[0].aval.shape == (4,)


@pytest.mark.claim(
    "jaxpr-can-be-run",
    "A jaxpr is a program: `jax.core.eval_jaxpr` runs it on values.",
)
def test_jaxpr_can_be_run():
    closed = jax.make_jaxpr(lambda x: x * 3 + 1)(2.0)
    assert jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 5.0) == [16.0]


@pytest.mark.claim(
    "repeated-inner-jit-prints-once",
    "An inner jitted function that is called twice has one shared jaxpr in the outer one.",
)
def test_repeated_inner_jit_prints_once():
    inner = jax.jit(_relu)
    first, second = jax.make_jaxpr(lambda x: inner(inner(x)))(np.float32(2)).eqns
    assert first.params["jaxpr"] is second.params["jaxpr"]
