"""Arrays: what is like NumPy, and what is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

VALUES = [1, 2, 3, 4]


@pytest.mark.claim(
    "jax-numpy-computes-what-numpy-computes",
    "Arithmetic, dot and outer products give in `jax.numpy` what they give in NumPy.",
    seeds="S002-25 S002-26 S002-27",
)
def test_jax_numpy_computes_what_numpy_computes():
    results = []
    for xp in (np, jnp):
        x = xp.array(VALUES, dtype="int32")
        double, more = x * 2, x + 1
        results.append([double, more, double + more, xp.dot(double, more), xp.outer(double, more)])
    for ours, theirs in zip(*results, strict=True):
        assert np.array_equal(ours, theirs)


@pytest.mark.claim(
    "most-numpy-names-are-in-jax-numpy",
    "Most of NumPy's public functions are in `jax.numpy` under the same name; what writes in place is not.",
    seeds="S002-24 S002-28",
)
def test_most_numpy_names_are_in_jax_numpy():
    names = [n for n in np.__all__ if callable(getattr(np, n, None)) and not isinstance(getattr(np, n), type)]
    there = [n for n in names if hasattr(jnp, n)]
    assert len(there) > 0.8 * len(names)
    assert not {"copyto", "putmask"} & set(there)


@pytest.mark.claim(
    "default-types-have-32-bits",
    "By default floats and integers have 32 bits: a NumPy `float64` array becomes `float32`.",
)
def test_default_types_have_32_bits():
    assert jnp.array([1.0]).dtype == jnp.asarray(np.ones(2)).dtype == jnp.zeros(2, float).dtype == jnp.float32
    assert jnp.array([1]).dtype == jnp.arange(3).dtype == jnp.int32


@pytest.mark.claim(
    "jax-numpy-refuses-lists",
    "`jax.numpy` functions refuse Python lists and tuples, where NumPy converts them.",
    seeds="S002-15 S002-38",
)
def test_jax_numpy_refuses_lists():
    assert np.sum(VALUES) == 10
    for call in (
        lambda: jnp.sum(VALUES),
        lambda: jnp.sin((1.0, 2.0)),
        lambda: jnp.add(VALUES, 1),
        lambda: jnp.arange(4) + VALUES,
    ):
        with pytest.raises(TypeError):
            call()


@pytest.mark.wrong_twin("jax-numpy-refuses-lists", raises=TypeError)
def test_wrong_twin_lists_are_converted():
    assert jnp.sum(VALUES) == 10


@pytest.mark.claim(
    "jax-numpy-takes-python-and-numpy-numbers",
    "`jax.numpy` functions take more than JAX arrays: Python numbers and NumPy arrays work as well.",
    seeds="S002-15 S002-38",
)
def test_jax_numpy_takes_python_and_numpy_numbers():
    for x in (2, 2.0, True, np.float32(2), np.ones(3)):
        assert isinstance(jnp.exp(x), jax.Array)


@pytest.mark.claim(
    "array-constructors-take-lists",
    "Functions that make an array, such as `jnp.array` and `jnp.stack`, do take lists.",
    seeds="S002-15 S002-38",
)
def test_array_constructors_take_lists():
    assert jnp.asarray(VALUES).shape == (4,)
    assert jnp.stack([jnp.ones(2), jnp.zeros(2)]).shape == (2, 2)


@pytest.mark.claim(
    "list-is-no-index", "A list is refused as an index; an array of the same numbers is taken."
)
def test_list_is_no_index():
    x = jnp.arange(4)
    with pytest.raises(TypeError, match="non-tuple sequence"):
        x[[0, 1]]
    assert x[jnp.array([0, 1])].tolist() == [0, 1]


@pytest.mark.claim(
    "jax-and-numpy-mix-to-jax",
    "An operation on a JAX array and a NumPy array gives a JAX array, on either side of the operator.",
)
def test_jax_and_numpy_mix_to_jax():
    assert isinstance(jnp.ones(2) + np.ones(2), jax.Array)
    assert isinstance(np.ones(2) + jnp.ones(2), jax.Array)


@pytest.mark.claim(
    "numpy-functions-leave-jax",
    "NumPy's elementwise functions, such as `np.sin`, and `np.sort` turn a JAX array into a NumPy array; `np.sum`, "
    "`np.mean` and others that call the array's own method return a JAX array.",
    seeds="S002-103",
)
def test_numpy_functions_leave_jax():
    x = jnp.ones(2)
    assert {type(f(x)) for f in (np.sin, np.exp, np.sqrt, np.sort)} == {np.ndarray}
    assert all(isinstance(f(x), jax.Array) for f in (np.sum, np.mean, np.max, np.cumsum, np.transpose))


@pytest.mark.claim(
    "numpy-view-of-a-jax-array-is-read-only",
    "`np.asarray` of a JAX array cannot be written to; `np.array` makes a copy that can.",
)
def test_numpy_view_of_a_jax_array_is_read_only():
    x = jnp.ones(3)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0] = 5
    copy = np.array(x)
    copy[0] = 5
    assert x[0] == 1


@pytest.mark.claim(
    "jnp-array-copies",
    "`jnp.array` copies a NumPy array: writing to the original afterwards changes nothing.",
)
def test_jnp_array_copies():
    original = np.ones(3, np.float32)
    x = jnp.array(original)
    original[:] = 7
    assert x.tolist() == [1, 1, 1]


@pytest.mark.claim(
    "python-numbers-do-not-promote",
    "A Python number does not change the dtype of an array of its kind: `bfloat16` × 2.0 stays `bfloat16`.",
)
def test_python_numbers_do_not_promote():
    assert (jnp.ones(2, jnp.bfloat16) * 2.0).dtype == jnp.bfloat16
    assert (jnp.ones(2, jnp.int8) * 2).dtype == jnp.int8
    assert (jnp.ones(2, jnp.int32) * 2.0).dtype == jnp.float32


@pytest.mark.claim(
    "numpy-scalars-promote",
    "A NumPy scalar does change the dtype, unlike a Python number: `bfloat16` × `np.float32(2)` is "
    "`float32`.",
)
def test_numpy_scalars_promote():
    assert (jnp.ones(2, jnp.bfloat16) * np.float32(2)).dtype == jnp.float32


@pytest.mark.claim(
    "promotion-prefers-the-floating-type",
    "An integer array and a floating array give the floating dtype, however narrow: `int32` + `bfloat16` is "
    "`bfloat16`; NumPy widens `int32` + `float32` to `float64`.",
)
def test_promotion_prefers_the_floating_type():
    assert (jnp.ones(2, jnp.int32) + jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16
    assert (jnp.ones(2, jnp.int32) + jnp.ones(2, jnp.float32)).dtype == jnp.float32
    assert (np.ones(2, np.int32) + np.ones(2, np.float32)).dtype == np.float64


@pytest.mark.claim(
    "out-is-not-supported",
    "`jax.numpy` functions refuse an `out=` array, since JAX arrays cannot be written to.",
    seeds="S002-28",
)
def test_out_is_not_supported():
    x = jnp.ones(2)
    with pytest.raises((NotImplementedError, TypeError), match="out"):
        jnp.add(x, 1, out=x)


@pytest.mark.claim(
    "jit-returns-jax-arrays",
    "A jitted function returns JAX arrays, also for Python numbers and for arguments passed through "
    "unchanged.",
)
def test_jit_returns_jax_arrays():
    results = jax.jit(lambda x, y: (x, y, 1, np.ones(2)))(3.0, np.zeros(2))
    assert all(isinstance(r, jax.Array) for r in results)
