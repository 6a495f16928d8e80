"""What goes wrong without an exception."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

X = jnp.array([1.0, 2.0, 3.0])


@pytest.mark.claim(
    "integers-wrap-around",
    "Integer arithmetic that overflows wraps around, in jit as outside, without a warning.",
)
def test_integers_wrap_around():
    assert jax.jit(lambda x: x + 1)(jnp.int32(2**31 - 1)) == -(2**31)
    assert (jnp.arange(2, dtype=jnp.uint8) - 1).tolist() == [255, 0]


@pytest.mark.claim(
    "cumsum-of-small-integers-wraps-around",
    "`jnp.cumsum` and `jnp.cumprod` of 8- and 16-bit integers keep the type and wrap around; `jnp.sum`, NumPy's `cumsum` and "
    "`dtype=int` don't.",
)
def test_cumsum_of_small_integers_wraps_around():
    for dtype in ("int8", "uint8", "int16", "uint16"):
        top = jnp.iinfo(dtype).max
        x = jnp.full(2, top, dtype)
        for run in (lambda f, x=x: f(x), lambda f, x=x: jax.jit(f)(x)):
            assert run(jnp.cumsum)[1] == np.asarray(2 * top).astype(dtype)
            assert run(jnp.cumprod)[1] == np.asarray(top * top).astype(dtype)
            assert (run(jnp.cumsum).dtype, run(jnp.cumprod).dtype) == (dtype, dtype)
            assert run(lambda x: jnp.cumsum(x, dtype=int))[1] == run(jnp.sum) == 2 * top
        assert np.cumsum(np.asarray(x))[1] == 2 * top


@pytest.mark.claim(
    "division-by-zero-is-silent",
    "Dividing a float by zero, the square root of −1 and the like give `inf` or `nan`, and dividing an integer by zero "
    "with `//` gives an ordinary number, without a warning.",
)
def test_division_by_zero_is_silent(recwarn):
    quotient, root = jax.jit(lambda x: (x / 0, jnp.sqrt(-x)))(1.0)
    assert jnp.isinf(quotient)
    assert jnp.isnan(root)
    for divide in (lambda a, b: a // b, jax.jit(lambda a, b: a // b)):
        assert divide(jnp.int32(7), jnp.int32(0)).dtype == jnp.int32
    assert not recwarn.list


@pytest.mark.claim(
    "float64-request-warns-and-gives-float32",
    "Asking for `float64` while 64-bit types are off warns and gives `float32`.",
)
def test_float64_request_warns_and_gives_float32():
    with pytest.warns(UserWarning, match="float64"):
        assert X.astype("float64").dtype == jnp.float32


@pytest.mark.claim(
    "out-of-range-read-is-clamped",
    "Reading beyond the end of an array gives the last element, with a traced index and with a plain one, "
    "where NumPy raises.",
)
def test_out_of_range_read_is_clamped():
    assert X[10] == jax.jit(lambda x: x[10])(X) == jax.jit(lambda x, i: x[i])(X, 10) == 3
    with pytest.raises(IndexError):
        np.asarray(X)[10]


@pytest.mark.wrong_twin("out-of-range-read-is-clamped", raises=pytest.fail.Exception)
def test_wrong_twin_out_of_range_read_raises():
    with pytest.raises(IndexError):
        jax.jit(lambda x, i: x[i])(X, 10)


@pytest.mark.claim("out-of-range-write-is-dropped", "Writing beyond the end with `.at[i].set` does nothing.")
def test_out_of_range_write_is_dropped():
    assert X.at[10].set(9).tolist() == jax.jit(lambda x, i: x.at[i].set(9))(X, 10).tolist() == [1, 2, 3]


@pytest.mark.claim(
    "fill-mode-shows-bad-indices",
    "`x.at[i].get(mode='fill')` gives `nan`, or `fill_value`, for an index out of range.",
)
def test_fill_mode_shows_bad_indices():
    assert jnp.isnan(X.at[10].get(mode="fill"))
    assert X.at[10].get(mode="fill", fill_value=-1) == -1


@pytest.mark.claim(
    "take-fills-with-nan",
    "`jnp.take` gives `nan` for an index out of range, where `x[i]` gives the last element.",
)
def test_take_fills_with_nan():
    assert jnp.isnan(jnp.take(X, 10))


@pytest.mark.claim(
    "dynamic-slice-start-is-clamped",
    "`lax.dynamic_slice` moves a window that would leave the array back inside.",
)
def test_dynamic_slice_start_is_clamped():
    assert lax.dynamic_slice(X, (10,), (2,)).tolist() == [2, 3]


@pytest.mark.claim(
    "switch-index-is-clamped",
    "`lax.switch` takes the last branch for an index that is too large, and the first for a negative one.",
)
def test_switch_index_is_clamped():
    branches = [lambda: 0, lambda: 1, lambda: 2]
    assert [int(lax.switch(i, branches)) for i in (7, -7)] == [2, 0]


@pytest.mark.claim(
    "cond-takes-any-number",
    "`lax.cond` takes a Python integer or float as its condition, or NumPy's: what is not zero counts as true, `nan` too; a "
    "complex number or a `bfloat16` is refused.",
)
@pytest.mark.parametrize(
    ("number", "taken"),
    [
        (1.5, 1),
        (-1, 1),
        (0.0, 0),
        (-0.0, 0),
        (np.nan, 1),
        (np.int8(-1), 1),
        (np.uint32(7), 1),
        (np.float16(0), 0),
    ],
)
def test_cond_takes_any_number(number, taken):
    assert lax.cond(number, lambda: 1, lambda: 0) == taken
    assert jax.jit(lambda p: lax.cond(p, lambda: 1, lambda: 0))(number) == taken
    for refused in (1j, jnp.bfloat16(1)):
        with pytest.raises(TypeError):
            lax.cond(refused, lambda: 1, lambda: 0)


@pytest.mark.claim(
    "unlike-branch-numbers-are-unified",
    "A Python float in one branch of `cond` and a `float32` in the other are unified without an error, and so are a "
    "Python integer and an `int32`; a Python float and a `bfloat16` are not.",
)
def test_unlike_branch_numbers_are_unified():
    assert lax.cond(True, lambda: 1.0, lambda: jnp.float32(2)).dtype == jnp.float32
    assert lax.cond(True, lambda: 1, lambda: jnp.int32(2)).dtype == jnp.int32
    for number, other in ((1.0, jnp.bfloat16(2)), (1, jnp.float32(2)), (1, jnp.int8(2))):
        with pytest.raises(TypeError):
            lax.cond(True, lambda number=number: number, lambda other=other: other)


@pytest.mark.claim(
    "switch-called-alone-does-nothing",
    "A switch such as `jax.debug_nans(True)` is a context manager: called on a line of its own it does nothing, "
    "silently.",
)
def test_switch_called_alone_does_nothing(recwarn):
    before = dict(jax.config.values)
    jax.debug_nans(True), jax.debug_infs(True), jax.checking_leaks(), jax.transfer_guard("disallow")
    jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict")
    for name in ("debug_key_reuse", "no_tracing"):
        if hasattr(jax, name):
            getattr(jax, name)(True)
    assert jax.config.values == before
    assert jnp.isnan(jax.jit(jnp.log)(-1.0))
    assert not recwarn.list


@pytest.mark.wrong_twin("switch-called-alone-does-nothing", raises=pytest.fail.Exception)
def test_wrong_twin_a_switch_called_alone_counts():
    jax.debug_nans(True)
    with pytest.raises(FloatingPointError):
        jax.jit(jnp.log)(-1.0)


@pytest.mark.claim(
    "strict-switches-stop-harmless-lines",
    "Under `no_tracing`, or under `transfer_guard('disallow')`, even a first `jnp.ones(3)` raises.",
)
def test_strict_switches_stop_harmless_lines():
    if not hasattr(jax, "no_tracing"):
        pytest.skip("not applicable: jax.no_tracing is not in this JAX")
    for switch in (jax.no_tracing(), jax.transfer_guard("disallow")):
        jax.clear_caches()
        with switch, pytest.raises(Exception, match=r"no_tracing|Disallowed host-to-device transfer"):
            jnp.ones(3)


@pytest.mark.claim(
    "make-jaxpr-can-be-stale",
    "`make_jaxpr` uses the trace cache too: after a global has changed it may still show the jaxpr of the "
    "old value.",
    seeds="S002-78",
)
def test_make_jaxpr_can_be_stale():
    config = {"relu": False}

    def layer(x):
        return jnp.maximum(x, 0) if config["relu"] else x * 2

    before = str(jax.make_jaxpr(layer)(X))
    config["relu"] = True
    assert str(jax.make_jaxpr(layer)(X)) == before


@pytest.mark.claim(
    "float32-numbers-lose-small-steps",
    "Adding 1 to `2**24` in `float32` changes nothing; a Python float argument is `float32` inside.",
)
def test_float32_numbers_lose_small_steps():
    assert jax.jit(lambda x: x + 1)(2.0**24) == 2**24


@pytest.mark.claim(
    "large-python-integer-fails",
    "A Python integer that does not fit in 32 bits raises `OverflowError`; in a NumPy array it is wrapped "
    "silently.",
)
def test_large_python_integer_fails():
    identity = jax.jit(lambda x: x)
    with pytest.raises(OverflowError):
        identity(2**31)
    assert identity(np.array([2**31 + 5])).tolist() == [-(2**31) + 5]


@pytest.mark.claim(
    "casts-to-integers-saturate",
    "Casting a traced float that is too large gives the largest integer, and on a CPU casting `nan` gives 0, "
    "without a warning.",
)
def test_casts_to_integers_saturate():
    f = jax.jit(lambda x: x.astype(jnp.int32))
    assert f(jnp.array([3e10, -3e10])).tolist() == [2**31 - 1, -(2**31)]
    if jax.default_backend() == "cpu":
        assert f(jnp.float32(jnp.nan)) == 0


@pytest.mark.claim(
    "in-place-numpy-change-is-seen",
    "A NumPy argument changed between calls is read again by the next call: its type is cached, and not its "
    "values.",
)
def test_in_place_numpy_change_is_seen():
    f = jax.jit(lambda x: x * 2)
    x = np.ones(3, np.float32)
    assert f(x)[0] == 2
    x[0] = 5
    assert f(x)[0] == 10


@pytest.mark.claim(
    "deleted-global-goes-unnoticed",
    "A global that was set to `None` after the first call still works for signatures already compiled.",
    seeds="S002-82",
)
def test_deleted_global_goes_unnoticed():
    model = {"apply": lambda x: x * 2}
    f = jax.jit(lambda x: model["apply"](x))
    assert f(X).tolist() == [2, 4, 6]
    model["apply"] = None
    assert f(X).tolist() == [2, 4, 6]
    with pytest.raises(TypeError):
        f(X[:2])
