"""What counts as the same result, and what is said when it is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import compare
from jitguide._timing.equality import require_agreement, require_arrays, validate_check
from jitguide._timing.rounding import Rounding


def agree(a, b, check=1e-3):
    return require_agreement(check, ("plain", a), ("jit", b))


def message(kind, a, b, check=1e-3):
    with pytest.raises(kind) as caught:
        agree(a, b, check)
    return str(caught.value)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.ones(3, np.float32), jnp.ones(3)),
        (jnp.ones(3), jnp.ones(3) * 1.0005),
        (jnp.array([1.0, 0.0]), jnp.array([1.0, 1e-4])),
        (3, jnp.int32(3)),
        (3.0, jnp.float32(3)),
        (jnp.bfloat16(1), jnp.bfloat16(1.0078125)),
        (jnp.inf * jnp.ones(2), jnp.inf * jnp.ones(2)),
        ({"a": (jnp.ones(2), None)}, {"a": (jnp.ones(2), None)}),
        (jax.random.key(0), jax.random.key(0)),
        (jnp.complex64(1 + 1j), jnp.complex64(1 + 1j)),
        (jnp.zeros((0, 3)), jnp.zeros((0, 3))),
        (jnp.arange(3) > 1, jnp.arange(3) > 1),
    ],
)
def test_results_that_differ_by_rounding_only_agree(a, b):
    assert agree(a, b) == ()


def test_nan_agrees_with_nan_and_leaves_a_note():
    notes = agree({"loss": jnp.array([1.0, jnp.nan])}, {"loss": jnp.array([1.0, jnp.nan])})
    assert notes == (
        "The variants 'plain' and 'jit' both have NaN at result['loss']; this counts as agreement.",
    )


def test_a_wrong_value_is_named_with_its_path_and_both_values():
    text = message(
        ValueError, {"w": [jnp.zeros(2), jnp.ones((2, 2))]}, {"w": [jnp.zeros(2), jnp.eye(2) + 0.5]}
    )
    assert text == (
        "The variants 'plain' and 'jit' disagree at result['w'][1][0, 0]: 1.0 against 1.5, beyond the "
        "relative difference of 0.001 that is allowed (4 of 4 values differ). Fix the wrong one; pass `setup` if "
        "one of them changes its arguments, a larger `check` if both are right, or `check=None` to time them "
        "all the same."
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (jnp.array([1.0, jnp.nan]), jnp.array([1.0, 2.0])),
        (jnp.array([1.0, jnp.inf]), jnp.array([1.0, -jnp.inf])),
        (jnp.array([1.0, jnp.inf]), jnp.array([1.0, 1e30])),
        (jnp.array([1.0, -1.0]), jnp.array([1.0, 1.0])),
        (jnp.arange(2) + 100_000, jnp.arange(2) + 100_001),
        (jnp.complex64(1 + 1j), jnp.complex64(1 - 1j)),
        (jax.random.key(0), jax.random.key(1)),
    ],
)
def test_values_that_differ_are_found(a, b):
    assert "disagree at result" in message(ValueError, a, b)


def test_a_leaf_that_is_zero_but_for_rounding_agrees_and_one_that_is_small_does_not():
    weights = jnp.ones(3)
    agree({"w": weights, "b": jnp.float32(2.5e-8)}, {"w": weights, "b": jnp.float32(1.1e-8)})
    assert "['b']" in message(
        ValueError, {"w": weights, "b": jnp.float32(1e-2)}, {"w": weights, "b": jnp.float32(2e-2)}
    )


def test_functions_in_a_result_are_not_compared():
    assert agree({"y": jnp.ones(2), "f": lambda: 1}, {"y": jnp.ones(2), "f": lambda: 1}) == ()


def test_integers_must_be_equal_however_large_the_tolerance():
    assert "3 against 4, and they must be equal." in message(
        ValueError, jnp.int32(3), jnp.int32(4), check=1.0
    )


def test_a_tolerance_of_zero_still_allows_for_rounding():
    assert agree(jnp.float32(1), jnp.nextafter(jnp.float32(1), jnp.float32(2)), check=0) == ()


def test_a_different_shape_is_a_disagreement_even_where_it_broadcasts():
    text = message(ValueError, jnp.ones((2, 1)), jnp.ones((2, 2)))
    assert "disagree in shape at result: (2, 1) against (2, 2). Make both return the same shape" in text


def test_a_different_dtype_is_a_disagreement_and_says_why_it_matters():
    text = message(ValueError, np.ones(2), jnp.ones(2))
    assert "disagree in dtype at result: float64 against float32. Narrower numbers take less time" in text
    assert "jax_enable_x64" in text


def test_a_different_structure_is_a_disagreement():
    text = message(ValueError, (jnp.ones(2),), [jnp.ones(2)])
    assert "return different structures" in text
    assert text.endswith("or pass a function of both results as `check`.")


def test_a_function_decides_when_given():
    assert agree(jnp.ones(2), jnp.ones(3), check=lambda a, b: True) == ()
    assert agree(jnp.ones(2), jnp.ones(2), check=np.testing.assert_array_equal) == ()
    assert "according to `check`: it returned False." in message(ValueError, 1, 2, check=lambda a, b: False)
    assert "Arrays are not equal" in message(ValueError, 1, 2, check=np.testing.assert_array_equal)


@pytest.mark.parametrize(
    "check", [lambda a, b: a == b, lambda a, b: {"x": True}, lambda a, b: a[:0] == b[:0]]
)
def test_a_function_that_gives_several_answers_is_told_to_give_one(check):
    text = message(TypeError, jnp.ones(2), jnp.ones(2), check=check)
    assert text.startswith("`check` must return one truth value, and returned a ")
    assert text.endswith(" of several. Put `jnp.all` around an array, `jax.tree.all` around a tree.")


def test_an_array_of_one_truth_value_is_an_answer():
    assert agree(jnp.ones(2), jnp.ones(2), check=jnp.array_equal) == ()
    assert "disagree according to `check`" in message(ValueError, 1, 2, check=jnp.array_equal)


def test_none_checks_nothing():
    assert agree(object(), "x", check=None) == ()


def test_a_result_that_is_no_array_is_refused_with_its_place():
    with pytest.raises(TypeError, match="'jit' returns a str at result\\['name'\\], which isn't"):
        require_arrays("jit", {"name": "x", "value": jnp.ones(2)})


def test_a_missing_result_is_refused():
    with pytest.raises(
        TypeError, match=r"'jit' returns nothing to compare: None. Return its result, or pass"
    ):
        require_arrays("jit", None)


@pytest.mark.parametrize("check", [None, 0, 1e-3, np.float32(0.1), np.int64(1), len])
def test_a_check_of_the_right_kind_is_accepted(check):
    validate_check(check)


@pytest.mark.parametrize("check", [True, np.True_, 1j, np.complex64(1), "1e-3", (1, 2)])
def test_a_check_of_another_type_is_refused(check):
    with pytest.raises(TypeError, match="`check` must be a relative tolerance such as 1e-3, a function"):
        validate_check(check)


@pytest.mark.parametrize("check", [-1e-3, float("nan"), float("inf")])
def test_a_tolerance_that_cannot_be_met_is_refused(check):
    with pytest.raises(ValueError, match="`check` must be a relative tolerance of at least 0, got"):
        validate_check(check)


def test_an_array_of_objects_is_refused_without_its_address():
    with pytest.raises(TypeError, match=r"returns a ndarray of objects at result") as error:
        require_arrays("a", np.array([object()]))
    assert "0x" not in str(error.value)


def test_a_disagreement_mentions_changed_arguments():
    with pytest.raises(ValueError, match="pass `setup` if one of them changes its arguments"):
        require_agreement(1e-3, ("a", np.ones(2)), ("b", np.zeros(2)))


def sensitive(x):
    return jnp.sin(1e7 * x), x


def agree_with(b, fresh=lambda: ((jnp.linspace(1, 2, 50),), {}), function=sensitive):
    args, kwargs = fresh()
    result = function(*args, **kwargs)
    return require_agreement(1e-3, ("plain", result), ("jit", b), Rounding(function, fresh, result))


def test_a_part_that_is_all_rounding_agrees_and_is_named():
    x = jnp.linspace(1, 2, 50)
    (note,) = agree_with((jnp.sin(1e7 * x + 1), x))
    assert "differ at result[0] about as far as 'plain' does" in note


@pytest.mark.parametrize(
    "other",
    [
        lambda x: (jnp.sin(1e7 * x), x + 1),  # the other part
        lambda x: (jnp.sin(1e7 * x) + 100, x),  # too far
        lambda x: (jnp.sin(1e7 * x) * jnp.inf, x),
        lambda x: (jnp.sin(1e7 * x) * jnp.nan, x),
    ],
)
def test_a_part_that_differs_more_than_rounding_can_is_refused(other):
    with pytest.raises(ValueError, match="disagree at result"):
        agree_with(other(jnp.linspace(1, 2, 50)))


def refuses_other_arguments(x):
    if float(x[0]) != 1:
        raise RuntimeError("no")
    return sensitive(x)


@pytest.mark.parametrize(
    ("function", "fresh"),
    [
        (refuses_other_arguments, lambda: ((jnp.linspace(1, 2, 50),), {})),
        (sensitive, lambda rng=np.random.default_rng(0): ((rng.random(50, np.float32),), {})),  # noqa: B008
        (lambda: sensitive(jnp.linspace(1, 2, 50)), lambda: ((), {})),  # nothing to move
    ],
)
def test_without_comparable_calls_nothing_is_called_rounding(function, fresh):
    x = jnp.linspace(1, 2, 50)
    with pytest.raises(ValueError, match="disagree at result"):
        agree_with((jnp.sin(1e7 * x + 1), x), fresh, function)


def nan_after_any_change(x):
    return jnp.where(x == jnp.linspace(1, 2, 50), x, jnp.nan)


@pytest.mark.parametrize("other", [lambda x: x * jnp.nan, lambda x: x + jnp.inf])
def test_what_is_not_finite_is_not_called_rounding(other):
    x = jnp.linspace(1, 2, 50)
    with pytest.raises(ValueError, match="disagree at result"):
        agree_with(other(x), function=nan_after_any_change)


def test_a_variant_may_differ_where_the_baseline_is_all_rounding():
    x = jnp.linspace(1, 2, 50)
    found = compare(
        {"plain": sensitive, "other": lambda x: (jnp.sin(1e7 * x * (1 + 1e-6)), x)}, x, budget=0.01
    )
    assert any("about as far as 'plain' does" in note for note in found.notes)


async def waits(x):
    return x


def yields(x):
    yield x


@pytest.mark.parametrize(
    ("variant", "advice"), [(waits, "asyncio.run(f(*args))"), (yields, "list(f(*args))")]
)
@pytest.mark.parametrize("check", [None, 1e-3])
def test_a_variant_whose_body_does_not_run_is_refused(variant, advice, check):
    with pytest.raises(TypeError, match="its body did not run") as refused:
        compare({"a": variant, "b": variant}, 1.0, check=check)
    assert advice in str(refused.value)
