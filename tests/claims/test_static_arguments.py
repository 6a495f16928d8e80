"""Static arguments: values that the cache is keyed on."""

import functools
import math
from dataclasses import dataclass

import jax
import numpy as np
import pytest


def _poly(x, y):
    return x**2 + y if y > 0 else x - y


@pytest.mark.claim(
    "static-value-is-not-traced",
    "A static argument reaches the body as a plain Python value and not as a tracer: the value of the call that was "
    "traced, which is equal to yours.",
    seeds="S000-32 S001-37 S003-21",
)
def test_static_value_is_not_traced(capsys):
    @functools.partial(jax.jit, static_argnames="n")
    def f(x, n):
        print(type(n).__name__, n, isinstance(x, jax.core.Tracer), isinstance(n, jax.core.Tracer))
        return x * n

    f(2.0, n=5.0)
    assert capsys.readouterr().out == "float 5.0 True False\n"
    assert math.copysign(1, f(1.0, n=0.0)) == 1
    assert math.copysign(1, f(1.0, n=-0.0)) == 1  # the program of 0.0, which is equal


@pytest.mark.wrong_twin("static-value-is-not-traced")
def test_wrong_twin_static_value_is_a_tracer():
    seen = []
    f = jax.jit(lambda x, n: (seen.append(isinstance(n, jax.core.Tracer)), x * n)[1], static_argnums=1)
    f(2.0, 5.0)
    assert seen == [True]


@pytest.mark.claim(
    "static-value-lets-python-branch",
    "Making the deciding argument static lets a Python `if` work under jit.",
    seeds="S000-28 S000-32 S003-27",
)
def test_static_value_lets_python_branch():
    f = jax.jit(_poly, static_argnames="y")
    assert (f(2, y=5), f(2, y=-5)) == (9, 7)
    divide = jax.jit(lambda x, y: x / y if y >= 1 else 0.0, static_argnums=1)
    assert (divide(3.0, 2.0), divide(3.0, 0.5)) == (1.5, 0.0)


@pytest.mark.claim(
    "static-flag-keeps-weak-type",
    "Negate-or-not with a static flag gives −1 and 1 for a Python 1, both weakly typed int32.",
    seeds="S003-09 S003-10",
)
def test_static_flag_keeps_weak_type():
    @functools.partial(jax.jit, static_argnums=(1,))
    def f(x, neg):
        return -x if neg else x

    for neg, expected in ((True, -1), (False, 1)):
        result = f(1, neg)
        assert (int(result), str(result.dtype), result.weak_type) == (expected, "int32", True)


@pytest.mark.claim(
    "each-static-value-compiles",
    "Each new value of a static argument traces and compiles once more, shapes and dtypes being equal.",
    seeds="S000-31 S000-32 S001-37 S003-31",
)
def test_each_static_value_compiles(counted):
    runs = []
    f = jax.jit(lambda x, n: (runs.append(n), x * n)[1], static_argnums=1)
    counted()
    f(2.0, 1), f(2.0, 2), f(2.0, 3), f(4.0, 2)
    assert runs == [1, 2, 3]
    assert counted()["compiles"] == 3


@pytest.mark.claim(
    "static-value-seen-before-is-reused",
    "A static value seen before runs from the cache, with other values of the traced arguments too.",
    seeds="S000-32 S000-33 S003-31",
)
def test_static_value_seen_before_is_reused():
    runs = []

    @functools.partial(jax.jit, static_argnames="y")
    def f(x, y):
        runs.append(y)
        return _poly(x, y)

    f(2, y=5), f(3, y=5), f(2, y=4), f(7, y=5)
    assert runs == [5, 4]


@pytest.mark.claim(
    "static-key-adds-to-shapes",
    "Static values and shapes multiply: two values and two lengths make four traces.",
    seeds="S000-31",
)
def test_static_key_adds_to_shapes():
    runs = []
    f = jax.jit(lambda x, n: (runs.append(1), x * n)[1], static_argnums=1)
    for _ in range(2):
        f(np.ones(2), 1), f(np.ones(2), 2), f(np.ones(3), 1), f(np.ones(3), 2)
    assert len(runs) == 4


@pytest.mark.claim(
    "partial-jit-decorates",
    "`functools.partial(jax.jit, static_argnames=...)` works as a decorator.",
    seeds="S000-33 S003-09",
)
def test_partial_jit_decorates():
    @functools.partial(jax.jit, static_argnames=["n"])
    def f(x, n):
        return x + sum(range(n))

    assert (f(2, n=5), f(3, n=4)) == (12, 9)


@pytest.mark.claim(
    "jit-with-options-decorates",
    "`@jax.jit(static_argnames=...)` without a function works as a decorator.",
    seeds="S000-33",
)
def test_jit_with_options_decorates():
    @jax.jit(static_argnames="n")
    def f(x, n):
        return x + sum(range(n))

    assert f(2, n=5) == 12


@pytest.mark.claim(
    "jit-the-branch-keep-the-decision",
    "Jit the expensive branch and decide in plain Python: that works for values of one dtype with one "
    "trace, `inf` and negative ones included.",
    seeds="S000-28 S000-30",
)
def test_jit_the_branch_keep_the_decision():
    runs = []

    @jax.jit
    def branch(x, y):
        runs.append(1)
        return x**2 + y

    def f(x, y):
        return branch(x, y) if y > 0 else x - y

    assert (f(2, 5), f(3, 4), f(2, -1)) == (9, 13, 3)
    assert len(runs) == 1
    assert (f(2.0, 5.0), f(-3.0, 0.5), f(2.0, -0.0), f(1.0, math.inf)) == (9.0, 9.5, 2.0, math.inf)
    assert len(runs) == 2


@pytest.mark.claim(
    "static-factor-in-a-python-loop",
    "A Python loop around a jitted step traces the step once per value of a static argument, not per iteration.",
    seeds="S001-35",
)
def test_static_factor_in_a_python_loop():
    runs = []
    multiply = jax.jit(lambda total, x: (runs.append(1), total * x)[1], static_argnums=1)

    def power(x, n):
        total, count = np.int32(1), 0
        while count < n:
            total, count = multiply(total, x), count + 1
        return total

    assert power(2, 5) == 32
    assert len(runs) == 1
    assert power(3, 5) == 243
    assert len(runs) == 2


@pytest.mark.claim(
    "static-key-has-the-type-in-it",
    "Static values differ by type as well: 2, 2.0 and `np.int64(2)` make three traces, 1 and True two.",
)
def test_static_key_has_the_type_in_it():
    runs = []
    f = jax.jit(lambda x, n: (runs.append(1), x * n)[1], static_argnums=1)
    f(1.0, 2), f(1.0, 2.0), f(1.0, np.int64(2))
    assert len(runs) == 3
    f(1.0, 1), f(1.0, True)
    assert len(runs) == 5


@pytest.mark.claim(
    "static-list-is-refused",
    "A list as static argument is refused with a `ValueError`, since it cannot be hashed; a tuple works.",
)
def test_static_list_is_refused():
    f = jax.jit(lambda x, sizes: x * len(sizes), static_argnums=1)
    with pytest.raises(ValueError, match=r"[Nn]on-hashable static arg"):
        f(2.0, [1, 2])
    assert f(2.0, (1, 2)) == 4


@pytest.mark.claim(
    "inner-static-cannot-take-a-tracer",
    "The static argument of an inner jitted function must be static in the outer one too, or it raises.",
)
def test_inner_static_cannot_take_a_tracer():
    inner = jax.jit(lambda x, n: x * n, static_argnums=1)

    def outer(x, n):
        return inner(x, n)

    with pytest.raises(ValueError, match=r"[Nn]on-hashable static arg"):
        jax.jit(outer)(2.0, 3)
    assert jax.jit(outer, static_argnums=1)(2.0, 3) == 6


@pytest.mark.claim(
    "mutated-static-object-goes-stale",
    "A static object that you mutate keeps its key, so the old result comes back without a warning.",
)
def test_mutated_static_object_goes_stale():
    class Config:
        factor = 2

    config = Config()
    f = jax.jit(lambda x, c: x * c.factor, static_argnums=1)
    assert f(1.0, config) == 2
    config.factor = 10
    assert f(1.0, config) == 2


@pytest.mark.wrong_twin("mutated-static-object-goes-stale")
def test_wrong_twin_mutated_static_object_is_noticed():
    class Config:
        factor = 2

    config = Config()
    f = jax.jit(lambda x, c: x * c.factor, static_argnums=1)
    f(1.0, config)
    config.factor = 10
    assert f(1.0, config) == 10


@pytest.mark.claim(
    "equal-frozen-dataclasses-share-a-trace",
    "A frozen dataclass is a good static argument: equal instances share a trace, others do not.",
)
def test_equal_frozen_dataclasses_share_a_trace():
    @dataclass(frozen=True)
    class Config:
        factor: int

    runs = []
    f = jax.jit(lambda x, c: (runs.append(1), x * c.factor)[1], static_argnums=1)
    assert (f(1.0, Config(2)), f(1.0, Config(2)), f(1.0, Config(3))) == (2, 2, 3)
    assert len(runs) == 2


@pytest.mark.claim(
    "plain-object-is-static-by-identity",
    "A static object without `__eq__` is compared by identity, so an equal-looking new one traces again.",
)
def test_plain_object_is_static_by_identity():
    class Config:
        factor = 2

    runs = []
    f = jax.jit(lambda x, c: (runs.append(1), x * c.factor)[1], static_argnums=1)
    first, second = Config(), Config()
    f(1.0, first), f(1.0, first), f(1.0, second)
    assert len(runs) == 2


@pytest.mark.claim(
    "static-number-covers-the-keyword",
    "`static_argnums` also covers a parameter passed by keyword, `static_argnames` one passed by position.",
)
def test_static_number_covers_the_keyword():
    def f(x, n):
        return x + sum(range(n))

    assert jax.jit(f, static_argnums=1)(2, n=5) == 12
    assert jax.jit(f, static_argnames="n")(2, 5) == 12


@pytest.mark.claim(
    "negative-static-number-counts-from-the-end",
    "`static_argnums=-1` marks the last positional parameter.",
)
def test_negative_static_number_counts_from_the_end():
    f = jax.jit(lambda x, n: x + sum(range(n)), static_argnums=-1)
    assert f(2, 5) == 12


@pytest.mark.claim(
    "unknown-static-name-is-refused-early",
    "A `static_argnames` unknown to the function raises `ValueError` when you wrap, not when you call.",
)
def test_unknown_static_name_is_refused_early():
    with pytest.raises(ValueError, match="static_argnames"):
        jax.jit(lambda x: x, static_argnames="q")


@pytest.mark.claim(
    "static-number-out-of-range-is-refused-early",
    "A `static_argnums` beyond the parameters raises `ValueError` when you wrap, not when you call.",
)
def test_static_number_out_of_range_is_refused_early():
    for number in (1, 3, -2, (0, 5)):
        with pytest.raises(ValueError, match="static_argnums"):
            jax.jit(lambda x: x, static_argnums=number)


@pytest.mark.claim(
    "strings-and-functions-can-be-static",
    "Strings and plain functions are refused as traced arguments, and can be passed as static ones.",
)
def test_strings_and_functions_can_be_static():
    def f(x, op, name):
        return op(x) if name == "apply" else x

    with pytest.raises(TypeError, match="str"):
        jax.jit(f, static_argnums=1)(-2.0, abs, "apply")
    assert jax.jit(f, static_argnums=(1, 2))(-2.0, abs, "apply") == 2
