"""Errors of code that needs a value where there is a tracer."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

BOOL = jax.errors.TracerBoolConversionError
VALUE = jax.errors.ConcretizationTypeError
INDEX = jax.errors.TracerIntegerConversionError
ARRAY = jax.errors.TracerArrayConversionError


def _poly(x, y):
    return x**2 + y if y > 0 else x - y


@pytest.mark.claim(
    "if-on-a-traced-value-raises",
    "A Python `if` on a traced value raises `TracerBoolConversionError`.",
    seeds="S000-27 S000-29 S001-13 S001-27 S001-28 S003-07 S003-08",
)
def test_if_on_a_traced_value_raises():
    with pytest.raises(BOOL, match="boolean conversion"):
        jax.jit(_poly)(2.0, 5.0)
    with pytest.raises(BOOL, match="boolean conversion"):
        jax.jit(lambda x: x**2 if x % 2 == 0 else x**3)(2)
    with pytest.raises(BOOL, match="boolean conversion"):
        jax.jit(lambda x, neg: -x if neg else x)(1, True)


@pytest.mark.wrong_twin("if-on-a-traced-value-raises", raises=jax.errors.TracerBoolConversionError)
def test_wrong_twin_if_on_a_traced_value_works():
    assert jax.jit(_poly)(2.0, 5.0) == 9.0


@pytest.mark.claim(
    "bool-error-is-a-concretization-error",
    "`TracerBoolConversionError` is a `ConcretizationTypeError` and a `TypeError`: old handlers catch it.",
    seeds="S000-29 S001-28 S001-34",
)
def test_bool_error_is_a_concretization_error():
    assert issubclass(BOOL, VALUE)
    assert issubclass(VALUE, TypeError)
    with pytest.raises(VALUE):
        jax.jit(_poly)(2.0, 5.0)


@pytest.mark.claim(
    "concretization-error-names-the-argument",
    "Under jit the error names the function, and the argument that the needed value depends on.",
    seeds="S000-29",
)
def test_concretization_error_names_the_argument():
    with pytest.raises(BOOL, match="_poly") as caught:
        jax.jit(_poly)(2.0, 5.0)
    assert "depends on the value of the argument y" in str(caught.value)


@pytest.mark.claim(
    "while-on-a-traced-value-raises",
    "A Python `while` on a traced value raises `TracerBoolConversionError`.",
    seeds="S001-27 S001-34 S003-07",
)
def test_while_on_a_traced_value_raises():
    def power(x, n):
        total, count = 1, 0
        while count < n:
            total, count = total * x, count + 1
        return total

    assert power(2, 5) == 32
    with pytest.raises(BOOL, match="boolean conversion"):
        jax.jit(power)(2, 5)


@pytest.mark.claim(
    "conditional-expression-raises-too",
    "A conditional expression is an `if`: dividing by `y` where `y >= 1`, and else not, raises under jit.",
    seeds="S003-27",
)
def test_conditional_expression_raises_too():
    with pytest.raises(BOOL, match="boolean conversion"):
        jax.jit(lambda x, y: x / y if y >= 1 else 0.0)(3.0, 2.0)


@pytest.mark.claim(
    "and-or-not-raise-too",
    "`and`, `or`, `not` and a chained `0 < x < 2` need a truth value and raise; `&`, `|` and `~` "
    "of booleans work, and so do `jnp.logical_and`, `logical_or` and `logical_not`.",
)
def test_and_or_not_raise_too():
    for f in (lambda x: x > 0 and x < 2, lambda x: x > 0 or x < 2, lambda x: not x > 0, lambda x: 0 < x < 2):
        with pytest.raises(BOOL):
            jax.jit(f)(1.0)
    assert jax.jit(lambda x: (x > 0) & ~(x > 2))(1.0)
    assert jax.jit(lambda x: jnp.logical_and(x, jnp.logical_or(x > 3, jnp.logical_not(x > 2))))(1.0)


@pytest.mark.claim(
    "bitwise-operators-work-on-bits",
    "Of numbers `&`, `|` and `~` take the bits, so `~1` is -2 and counts as true, and under `disable_jit` so is "
    "`~True`; `jnp.logical_not` and `logical_and` go by the truth.",
)
@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")
def test_bitwise_operators_work_on_bits():
    bits = jax.jit(lambda flag: jnp.where(~flag, 1.0, 2.0))
    truth = jax.jit(lambda flag: jnp.where(jnp.logical_not(flag), 1.0, 2.0))
    assert (bits(True), bits(1), truth(True), truth(1)) == (2.0, 1.0, 2.0, 2.0)
    with jax.disable_jit():
        assert (bits(True), truth(True), truth(1)) == (1.0, 2.0, 2.0)
    assert jax.jit(lambda a, b: (a & b, jnp.logical_and(a, b)))(1, 2) == (0, True)


@pytest.mark.claim(
    "assert-max-and-in-raise",
    "`assert` on a value, the builtin `max` and the operator `in` need a truth value, and raise.",
)
def test_assert_max_and_in_raise():
    def checked(x):
        assert x > 0
        return x

    for f in (checked, lambda x: max(x, 0.0), lambda x: 1 if x in (1, 2) else 0):
        with pytest.raises(BOOL):
            jax.jit(f)(1.0)
    assert jax.jit(lambda x: jnp.maximum(x, 0.0))(1.0) == 1


@pytest.mark.claim(
    "bool-of-a-tracer-raises",
    "An explicit `bool(y >= 1)` raises under jit like the `if` that hides it.",
    seeds="S003-20 S003-28",
)
def test_bool_of_a_tracer_raises():
    with pytest.raises(BOOL, match="boolean conversion"):
        jax.jit(lambda y: bool(y >= 1))(2.0)


@pytest.mark.claim(
    "int-and-float-of-a-tracer-raise",
    "`int(y)` and `float(y)` of a traced value raise `ConcretizationTypeError`: a tracer does not hold a "
    "value.",
    seeds="S000-02 S003-03 S003-28",
)
def test_int_and_float_of_a_tracer_raise():
    for cast in (int, float):
        with pytest.raises(VALUE, match="concrete value") as caught:
            jax.jit(lambda y, cast=cast: cast(y))(2.0)
        assert not isinstance(caught.value, BOOL)


@pytest.mark.claim(
    "astype-works-where-int-raises",
    "`x.astype(int)` converts under jit where `int(x)` raises; it gives a traced array.",
    seeds="S003-19 S003-28",
)
def test_astype_works_where_int_raises():
    seen = []
    f = jax.jit(lambda x: (seen.append(x.astype(int)), seen[-1])[1])
    assert f(2.7) == 2
    assert isinstance(seen[0], jax.core.Tracer)


@pytest.mark.claim(
    "item-and-tolist-raise",
    "`x.item()` and `x.tolist()` need values and raise `ConcretizationTypeError` under jit.",
)
def test_item_and_tolist_raise():
    for f in (lambda x: x[0].item(), lambda x: x.tolist()):
        with pytest.raises(VALUE, match="concrete value"):
            jax.jit(f)(np.ones(2))


@pytest.mark.claim(
    "range-and-list-index-raise",
    "`range(n)` and a Python list indexed by a traced integer raise `TracerIntegerConversionError`.",
)
def test_range_and_list_index_raise():
    with pytest.raises(INDEX, match="__index__"):
        jax.jit(lambda n: sum(range(n)))(3)
    with pytest.raises(INDEX, match="__index__"):
        jax.jit(lambda i: [1, 2, 3][i])(0)


@pytest.mark.claim(
    "integer-error-is-not-a-concretization-error",
    "`TracerIntegerConversionError` is a `TypeError`, and not a `ConcretizationTypeError`.",
)
def test_integer_error_is_not_a_concretization_error():
    assert issubclass(INDEX, TypeError)
    assert not issubclass(INDEX, VALUE)


@pytest.mark.claim(
    "numpy-function-of-a-tracer-raises",
    "NumPy's elementwise functions, such as `np.sin`, and `np.asarray` raise `TracerArrayConversionError` for a traced "
    "value; `jnp` works.",
    seeds="S003-16",
)
def test_numpy_function_of_a_tracer_raises():
    for f in (np.sin, np.exp, np.abs, lambda x: np.add(x, 1), np.asarray, np.sort):
        for x in (1.0, np.ones(3), np.ones(0, np.complex64)):
            with pytest.raises(ARRAY, match="__array__"):
                jax.jit(lambda x, f=f: f(x))(x)
    assert jax.jit(jnp.sin)(0.0) == 0


@pytest.mark.claim(
    "numpy-array-indexed-by-a-tracer-raises",
    "A NumPy array indexed by a traced integer raises `TracerArrayConversionError`; `jnp.asarray` it first.",
)
def test_numpy_array_indexed_by_a_tracer_raises():
    table = np.arange(3.0)
    with pytest.raises(ARRAY, match="__array__"):
        jax.jit(lambda i: table[i])(1)
    assert jax.jit(lambda i: jnp.asarray(table)[i])(1) == 1


@pytest.mark.claim(
    "math-function-of-a-tracer-raises",
    "Functions of the `math` module that need a float, such as `math.sin`, raise `ConcretizationTypeError` on a tracer, "
    "and those that need an integer `TracerIntegerConversionError`; `math.prod` works.",
)
def test_math_function_of_a_tracer_raises():
    for f in (math.sin, math.sqrt, math.exp, math.floor, lambda x: math.fsum([x])):
        with pytest.raises(VALUE, match="concrete value"):
            jax.jit(lambda x, f=f: f(x))(1.0)
    for f in (math.factorial, math.isqrt, lambda x: math.gcd(x, 2)):
        with pytest.raises(INDEX):
            jax.jit(lambda x, f=f: f(x))(3)
    assert jax.jit(lambda x: math.prod([x, x]))(3.0) == 9


@pytest.mark.claim(
    "truth-of-a-traced-vector-is-ambiguous",
    "`if` on a traced vector raises NumPy's plain `ValueError` about ambiguous truth, not a JAX error.",
)
def test_truth_of_a_traced_vector_is_ambiguous():
    with pytest.raises(ValueError, match="ambiguous"):
        jax.jit(lambda x: 1 if x > 0 else 0)(np.ones(3))


@pytest.mark.claim(
    "reshape-by-a-traced-product-raises",
    "`x.reshape(jnp.array(x.shape).prod())` raises `TypeError` under jit and names `reduce_prod`.",
    seeds="S003-12",
)
def test_reshape_by_a_traced_product_raises():
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values") as caught:
        jax.jit(lambda x: x.reshape(jnp.array(x.shape).prod()))(np.ones((2, 3)))
    assert "reduce_prod" in str(caught.value)


@pytest.mark.claim(
    "reshape-by-a-numpy-product-works",
    "The same reshape with `math.prod` works under jit, also for a scalar; with NumPy's `prod` it works for arrays and "
    "fails for a scalar, whose product is the float 1.0.",
    seeds="S003-15",
)
def test_reshape_by_a_numpy_product_works():
    x = np.ones((2, 3))
    assert jax.jit(lambda a: a.reshape(np.prod(a.shape)))(x).shape == (6,)
    for a, size in ((x, 6), (np.ones((0, 3)), 0), (1.0, 1)):
        assert jax.jit(lambda a: a.reshape(math.prod(a.shape)))(a).shape == (size,)
    with pytest.raises(TypeError):
        jax.jit(lambda a: a.reshape(np.prod(a.shape)))(1.0)


@pytest.mark.claim(
    "f-string-shows-the-tracer",
    "An f-string of a traced value shows the tracer; a number format such as `{x:.2f}` raises `TypeError`.",
)
def test_f_string_shows_the_tracer():
    texts = []
    jax.jit(lambda x: (texts.append(f"{x}"), x)[1])(1.0)
    assert "float32[]" in texts[0]
    with pytest.raises(TypeError, match="format"):
        jax.jit(lambda x: (f"{x:.2f}", x)[1])(1.0)


@pytest.mark.claim(
    "iterating-a-traced-array-unrolls",
    "`for row in x` works on a traced array, one iteration per row; a traced scalar raises `TypeError`.",
)
def test_iterating_a_traced_array_unrolls():
    turns = []
    jax.jit(lambda x: [(turns.append(1), row)[1] for row in x])(np.ones((3, 2)))
    assert len(turns) == 3
    with pytest.raises(TypeError, match="0-d"):
        jax.jit(lambda x: list(x))(1.0)
