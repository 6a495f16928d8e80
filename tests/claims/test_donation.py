"""Donation: what happens to the array, and when nothing happens."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

UNUSABLE = "Some donated buffers were not usable"


def fresh():
    return jnp.arange(4.0) + 0.0


def double(x):
    return x * 2


@pytest.mark.claim(
    "donated-array-is-deleted",
    "An array that was donated is deleted: reading its values, computing with it or waiting for it raises an error, "
    "whose class and words depend on the use.",
)
@pytest.mark.hostile("scalar", "empty", "bfloat16", "int8", "complex", "uniform")
def test_donated_array_is_deleted(case):
    x, like = case.array, case.array
    jax.jit(double, donate_argnums=0)(x).block_until_ready()
    assert x.is_deleted()
    warm = jax.jit(double)
    warm(like)
    for use in (np.asarray, str, lambda x: x + x, warm, jax.block_until_ready):
        with pytest.raises((RuntimeError, ValueError), match=r"[Dd]eleted"):
            use(x)


@pytest.mark.wrong_twin("donated-array-is-deleted")
def test_wrong_twin_donated_array_stays_usable():
    x = fresh()
    jax.jit(double, donate_argnums=0)(x)
    assert not x.is_deleted()


@pytest.mark.claim(
    "donated-array-keeps-its-shape", "The shape and dtype of a deleted array can still be read."
)
def test_donated_array_keeps_its_shape():
    x = fresh()
    jax.jit(double, donate_argnums=0)(x)
    assert (x.shape, x.dtype) == ((4,), jnp.float32)


@pytest.mark.claim(
    "donated-buffer-is-reused",
    "The memory of a donated array becomes the memory of a result of the same shape and dtype.",
)
def test_donated_buffer_is_reused():
    x = fresh()
    address = x.unsafe_buffer_pointer()
    assert jax.jit(double, donate_argnums=0)(x).unsafe_buffer_pointer() == address


@pytest.mark.claim(
    "donation-needs-the-same-size-only",
    "A donated `float32` array can hold an `int32` result, or a reshaped one, but not twice as many `float16`: the "
    "number of elements and the bytes of each count.",
)
@pytest.mark.filterwarnings(f"ignore:{UNUSABLE}")
@pytest.mark.parametrize(
    ("change", "fits"),
    [
        (lambda x: x.astype(jnp.int32), True),
        (lambda x: x.reshape(2, 2).T, True),
        (lambda x: jnp.tile(x, 2).astype(jnp.float16), False),
        (lambda x: x.astype(jnp.float16), False),
    ],
    ids=["int32", "reshaped", "as many bytes", "as many elements"],
)
def test_donation_needs_the_same_size_only(change, fits):
    x = fresh()
    jax.jit(change, donate_argnums=0)(x)
    assert x.is_deleted() is fits


@pytest.mark.claim(
    "donated-keyword-is-donated",
    "`donate_argnums` also donates an argument that is passed by keyword, and `donate_argnames` one that is "
    "passed by position.",
)
def test_donated_keyword_is_donated():
    x, y = fresh(), fresh()
    jax.jit(double, donate_argnums=0)(x=x)
    jax.jit(double, donate_argnames="x")(y)
    assert x.is_deleted()
    assert y.is_deleted()


@pytest.mark.claim("donating-a-tree-donates-every-leaf", "Donating a container donates every array in it.")
@pytest.mark.hostile("scalar", "empty", "bfloat16", "int8", "complex", "split")
def test_donating_a_tree_donates_every_leaf(case):
    tree = {"w": case.array, "b": [case.array]}
    jax.jit(lambda t: jax.tree_util.tree_map(double, t), donate_argnums=0)(tree)
    assert all(x.is_deleted() for x in jax.tree_util.tree_leaves(tree))


@pytest.mark.claim(
    "unusable-donation-warns",
    "A donated array on one device that has as many elements as no result is not deleted, and a `UserWarning` names it; "
    "of an array split over several devices along automatic axes JAX does not warn.",
)
@pytest.mark.hostile("empty", "bfloat16", "int8", "bool", "complex", "matrix", "split")
def test_unusable_donation_warns(case):
    x = case.array
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jax.jit(jnp.sum, donate_argnums=0)(x)
    assert not x.is_deleted()
    assert any(UNUSABLE in str(w.message) for w in caught) is (case.name != "split")


@pytest.mark.claim(
    "second-donation-finds-no-place",
    "Two donated arrays and one result: the first is deleted, the second is not, with a warning.",
)
def test_second_donation_finds_no_place():
    x, y = fresh(), fresh()
    with pytest.warns(UserWarning, match=UNUSABLE):
        jax.jit(jnp.add, donate_argnums=(0, 1))(x, y)
    assert x.is_deleted()
    assert not y.is_deleted()


@pytest.mark.claim(
    "donation-to-a-smaller-type-is-ignored-silently",
    "Donating an array does nothing, without a warning, if the result has as many elements of another size: `float32` "
    "to `bfloat16`, or `bfloat16` to `float32`.",
)
@pytest.mark.parametrize(
    ("given", "wanted"),
    [("float32", "bfloat16"), ("bfloat16", "float32"), ("float32", "complex64"), ("int8", "int32")],
)
def test_donation_to_a_smaller_type_is_ignored_silently(given, wanted):
    x = fresh().astype(given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(lambda x: x.astype(wanted), donate_argnums=0)(x)
    assert not x.is_deleted()


@pytest.mark.claim(
    "unused-donation-is-ignored-silently",
    "Donating an argument that the function does not use does nothing, without a warning.",
)
def test_unused_donation_is_ignored_silently():
    x = fresh()
    jax.jit(lambda x, y: y, donate_argnums=0)(x, 1.0)
    assert not x.is_deleted()


@pytest.mark.claim(
    "numpy-donation-is-ignored-silently",
    "Donating a NumPy array does nothing, without a warning: it stays as it was.",
)
def test_numpy_donation_is_ignored_silently():
    x = np.arange(4, dtype=np.float32)
    jax.jit(double, donate_argnums=0)(x)
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "numpy-view-blocks-donation",
    "On a CPU, an array that a NumPy view still points to is not deleted when donated: they share the "
    "memory, so the donation is ignored.",
)
def test_numpy_view_blocks_donation():
    x = fresh()
    if x.devices() != {jax.devices("cpu")[0]}:
        pytest.skip("not applicable: the array is not in the memory that NumPy reads")
    view = np.asarray(x)
    jax.jit(double, donate_argnums=0)(x)
    assert not x.is_deleted()
    assert view.tolist() == [0, 1, 2, 3]


@pytest.mark.claim(
    "donating-one-array-twice-fails", "Passing the same array to two donated parameters raises an error."
)
def test_donating_one_array_twice_fails():
    x = fresh()
    with pytest.raises(Exception, match="donate the same buffer twice"):
        jax.jit(lambda a, b: (a + b, a - b), donate_argnums=(0, 1))(x, x)


@pytest.mark.claim(
    "donating-an-array-used-elsewhere-fails",
    "Passing the same array to a donated and to another parameter raises an error.",
)
def test_donating_an_array_used_elsewhere_fails():
    x = fresh()
    with pytest.raises(Exception, match="previously donated"):
        jax.jit(lambda a, b: a + b, donate_argnums=0)(x, x)


@pytest.mark.claim(
    "static-and-donated-exclude-each-other",
    "A parameter cannot be both static and donated: jit refuses it at once.",
)
def test_static_and_donated_exclude_each_other():
    with pytest.raises(ValueError, match="cannot intersect"):
        jax.jit(lambda x, n: x * n, static_argnums=1, donate_argnums=1)


@pytest.mark.claim(
    "inner-donation-is-ignored",
    "A jitted function that donates leaves its argument alone when it is called inside another jitted function; under "
    "`vmap` and `grad` alone it deletes it.",
)
def test_inner_donation_is_ignored():
    inner = jax.jit(double, donate_argnums=0)
    x = fresh()
    assert jax.jit(lambda x: inner(x) + x)(x).tolist() == [0, 3, 6, 9]
    assert not x.is_deleted()
    for transformed in (jax.vmap(inner), jax.grad(lambda x: inner(x).sum())):
        y = fresh()
        transformed(y)
        assert y.is_deleted()


@pytest.mark.claim(
    "donation-is-visible-in-the-text",
    "Donation shows in the lowered text as an aliased argument, and in the compiled text as an input-output "
    "alias.",
)
def test_donation_is_visible_in_the_text():
    for donate, seen in ((0, True), ((), False)):
        lowered = jax.jit(double, donate_argnums=donate).lower(fresh())
        assert ("tf.aliasing_output" in lowered.as_text()) is seen
        assert ("input_output_alias" in lowered.compile().as_text()) is seen


@pytest.mark.claim(
    "disable-jit-disables-donation",
    "Under `disable_jit` nothing is donated: a program that wrongly reuses a donated array works there.",
)
def test_disable_jit_disables_donation():
    x = fresh()
    with jax.disable_jit():
        jax.jit(double, donate_argnums=0)(x)
    assert not x.is_deleted()


@pytest.mark.claim(
    "debug-nans-switches-donation-off-for-good",
    "A function first compiled under `debug_nans` does not donate, and still does not after `debug_nans` is "
    "off again.",
)
def test_debug_nans_switches_donation_off_for_good():
    f = jax.jit(lambda x: x * 2, donate_argnums=0)
    x, y = fresh(), fresh()
    with jax.debug_nans(True):
        f(x)
    f(y)
    assert not x.is_deleted()
    assert not y.is_deleted()


@pytest.mark.claim(
    "donated-carry-is-reused-by-a-loop",
    "If the initial carry of `scan`, `fori_loop` or `while_loop` is donated in the call from Python, it is deleted, "
    "and the final carry reuses its memory.",
)
def test_donated_carry_is_reused_by_a_loop():
    for loop in (
        lambda carry: lax.scan(lambda c, _: (c * 2 + 1, None), carry, length=5)[0],
        lambda carry: lax.fori_loop(0, 5, lambda _, c: c * 2 + 1, carry),
        lambda carry: lax.while_loop(lambda c: c[0] < 9, lambda c: c * 2 + 1, carry),
    ):
        carry = jnp.arange(1000.0)
        jitted = jax.jit(loop, donate_argnums=0)
        aliased = jitted.lower(carry).compile().memory_analysis().alias_size_in_bytes
        assert aliased == carry.nbytes
        jitted(carry).block_until_ready()
        assert carry.is_deleted()
