"""The forms of .at[]: methods, indices, modes, promises."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = jnp.array([1.0, 2.0, 4.0, 8.0])


@pytest.mark.claim(
    "at-methods-repeat-for-repeated-indices",
    "`multiply`, `divide`, `power` and `apply` of `.at[]` act once for each time that an index is named.",
)
@pytest.mark.parametrize(
    ("method", "value", "expected"),
    [("multiply", 3.0, 18), ("divide", 2.0, 0.5), ("power", 3.0, 512), ("apply", lambda v: v * 3, 18)],
)
def test_at_methods_repeat_for_repeated_indices(method, value, expected):
    twice = jnp.array([1, 1])
    assert np.allclose(getattr(X.at[twice], method)(value), [1, expected, 4, 8])


@pytest.mark.claim(
    "at-apply-has-no-derivative",
    "`grad` of `x.at[i].apply(f)` raises `NotImplementedError`; `x.at[i].set(f(x[i]))` has a derivative.",
)
def test_at_apply_has_no_derivative():
    with pytest.raises(NotImplementedError, match="scatter_apply"):
        jax.grad(lambda x: x.at[1].apply(jnp.square).sum())(X)
    assert jax.grad(lambda x: x.at[1].set(jnp.square(x[1])).sum())(X).tolist() == [1, 4, 1, 1]


@pytest.mark.claim(
    "at-apply-needs-the-same-dtype",
    "`x.at[i].apply(f)` with a function that returns another dtype raises `ValueError`.",
)
def test_at_apply_needs_the_same_dtype():
    with pytest.raises(ValueError, match="verifier errors"):
        jnp.arange(4).at[1].apply(jnp.sqrt)
    assert jnp.arange(4).at[1].apply(lambda v: jnp.sqrt(v).astype(v.dtype)).tolist() == [0, 1, 2, 3]


@pytest.mark.claim(
    "update-copies-if-the-old-array-is-used",
    "XLA decides whether an update of a donated array copies it: on a CPU one write does not, one whose old array is "
    "returned or summed does, and so does reading two elements and then writing both.",
)
@pytest.mark.platform("cpu")
def test_update_copies_if_the_old_array_is_used():
    def copies(update):
        return jax.jit(update, donate_argnums=0).lower(jnp.zeros(1000)).compile().as_text().count(" copy(")

    def swap(x):
        first, second = x[0], x[1]
        return x.at[0].set(second).at[1].set(first)

    for update in (lambda x: x.at[0].set(9.0), lambda x: x.at[3:7].add(1.0), lambda x: x.at[1].set(2 * x[0])):
        assert copies(update) == 0
    for update in (lambda x: (x.at[0].set(9.0), x), lambda x: (x.at[0].set(9.0), x.sum()), swap):
        assert copies(update) > 0


@pytest.mark.claim(
    "at-multiply-needs-unique-indices-for-grad",
    "The gradients of `.at[i].multiply(v)`, `divide` and `power` with respect to `v` need `unique_indices=True`.",
)
@pytest.mark.parametrize("method", ["multiply", "divide", "power"])
def test_at_multiply_needs_unique_indices_for_grad(method):
    def total(v, unique):
        return getattr(X.at[jnp.array([0, 2])], method)(v, unique_indices=unique).sum()

    v = jnp.array([3.0, 3.0])
    with pytest.raises(NotImplementedError, match="unique_indices"):
        jax.grad(total)(v, False)
    assert jax.grad(total)(v, True).shape == (2,)
    assert jax.grad(lambda x: getattr(x.at[jnp.array([0, 2])], method)(v).sum())(X).shape == (4,)


@pytest.mark.claim(
    "at-refuses-lists-and-floats",
    "`.at[]` refuses a Python list and a float as index with a `TypeError`; an index array is taken.",
)
@pytest.mark.parametrize("index", [[0, 2], 1.0], ids=["list", "float"])
def test_at_refuses_lists_and_floats(index):
    with pytest.raises(TypeError):
        X.at[index].set(0.0)
    assert X.at[jnp.array([0, 2])].set(0.0).tolist() == [0, 2, 0, 8]


@pytest.mark.claim(
    "clip-mode-writes-the-nearest-element",
    "With `mode='clip'` a write out of range changes the nearest element.",
)
def test_clip_mode_writes_the_nearest_element():
    assert X.at[9].set(0.0, mode="clip").tolist() == [1, 2, 4, 0]
    assert X.at[-9].set(0.0, mode="clip").tolist() == [0, 2, 4, 8]


@pytest.mark.wrong_twin("clip-mode-writes-the-nearest-element")
def test_wrong_twin_writes_are_clipped_by_default():
    assert X.at[9].set(0.0).tolist() == [1, 2, 4, 0]


@pytest.mark.claim(
    "at-slice-is-cut-to-the-array",
    "A slice that reaches beyond the end is cut to the array, as in Python: the part that fits is written.",
)
def test_at_slice_is_cut_to_the_array():
    assert X.at[2:9].set(0.0).tolist() == [1, 2, 0, 0]


@pytest.mark.claim(
    "fill-value-depends-on-the-dtype",
    "`mode='fill'` gives `nan` for floats, the smallest value for integers, the largest for unsigned ones and "
    "`True` for booleans.",
)
@pytest.mark.parametrize(
    ("dtype", "filled"), [("int32", -(2**31)), ("int8", -128), ("uint8", 255), ("bool", True)]
)
def test_fill_value_depends_on_the_dtype(dtype, filled):
    assert jnp.zeros(4, dtype).at[9].get(mode="fill") == filled
    assert jnp.isnan(X.at[9].get(mode="fill"))


@pytest.mark.claim(
    "fill-value-needs-the-fill-mode",
    "`fill_value` without `mode='fill'` is ignored silently: the nearest element comes back.",
)
def test_fill_value_needs_the_fill_mode(recwarn):
    assert X.at[9].get(fill_value=-1.0) == 8
    assert X.at[9].get(mode="fill", fill_value=-1.0) == -1
    assert not recwarn.list


@pytest.mark.claim(
    "negative-indices-can-be-out-of-range",
    "With `wrap_negative_indices=False` a negative index does not count from the end: it is out of range.",
)
def test_negative_indices_can_be_out_of_range():
    try:
        seen = X.at[-1].get(mode="fill", wrap_negative_indices=False)
    except TypeError:
        pytest.skip("not applicable: this JAX has no wrap_negative_indices")
    assert jnp.isnan(seen)
    assert X.at[-1].set(0.0, wrap_negative_indices=False).tolist() == X.tolist()


@pytest.mark.claim(
    "window-that-sticks-out-is-not-written",
    "`x.at[jax.ds(start, size)].set` does not write where the window sticks out, not even the part that "
    "fits, although reading moves the window back.",
)
def test_window_that_sticks_out_is_not_written():
    if not hasattr(jax, "ds"):
        pytest.skip("not applicable: jax.ds is not in this JAX")
    write = jax.jit(lambda x, start: x.at[jax.ds(start, 2)].set(0.0))
    read = jax.jit(lambda x, start: x[jax.ds(start, 2)])
    assert write(X, 2).tolist() == [1, 2, 0, 0]
    assert write(X, 3).tolist() == X.tolist()
    assert read(X, 3).tolist() == [4, 8]


@pytest.mark.wrong_twin("window-that-sticks-out-is-not-written")
def test_wrong_twin_the_part_that_fits_is_written():
    assert jax.jit(lambda x, start: x.at[jax.ds(start, 2)].set(0.0))(X, 3).tolist() == [1, 2, 4, 0]


@pytest.mark.claim(
    "dynamic-update-slice-moves-the-window",
    "`lax.dynamic_update_slice` moves a window that sticks out back until it fits, and writes the whole of "
    "it.",
)
def test_dynamic_update_slice_moves_the_window():
    assert jax.lax.dynamic_update_slice(X, jnp.zeros(2), (3,)).tolist() == [1, 2, 0, 0]


@pytest.mark.claim(
    "at-set-casts-with-a-warning",
    "`.at[].set` of a float into an integer array cuts the fraction off and warns that this will be an error.",
)
def test_at_set_casts_with_a_warning():
    with pytest.warns(FutureWarning, match="incompatible types"):
        assert jnp.arange(4).at[0].set(1.7).tolist() == [1, 1, 2, 3]


@pytest.mark.claim(
    "at-divide-casts-the-divisor-first",
    "On an integer array, `.at[].divide(0.5)` divides by 0 and `.at[].power(0.5)` takes the power 0: the number gets the "
    "dtype of the array first.",
)
def test_at_divide_casts_the_divisor_first():
    x = jnp.full(3, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        for run in (lambda f: f(x), lambda f: jax.jit(f)(x)):
            assert run(lambda x: x.at[1].divide(0.5)).tolist() == [6, jnp.inf, 6]
            assert run(lambda x: x.at[1].divide(1.5)).tolist() == [6, 6, 6]
            assert run(lambda x: x.at[1].power(0.5)).tolist() == [6, 1, 6]
            assert run(lambda x: x.at[1].power(2.5)).tolist() == [6, 36, 6]
    assert x.astype(float).at[1].divide(0.5).tolist() == [6, 12, 6]


@pytest.mark.claim(
    "at-divide-turns-integers-into-floats",
    "`.at[].divide` on an integer array returns a float array, so the next jitted call compiles again.",
)
def test_at_divide_turns_integers_into_floats():
    runs = []
    f = jax.jit(lambda x: runs.append(1) or x.at[1].divide(2))
    x = jnp.arange(4)
    y = f(x)
    assert (x.dtype, y.dtype) == (jnp.int32, jnp.float32)
    f(y)
    assert len(runs) == 2
