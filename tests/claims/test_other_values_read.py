"""Functions that silently get another value."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export


def scaled(a, n=1.0):
    return a * n


@pytest.mark.claim(
    "vectorize-drops-keyword-arguments",
    "`jnp.vectorize(f)(x, n=10)` leaves `n` at its default, without an error, also for a misspelt name and with "
    "`signature=`, with and without jit; `np.vectorize` passes it on. By position, or bound with a lambda, it counts.",
)
def test_vectorize_drops_keyword_arguments():
    x = np.arange(3.0, dtype=np.float32)
    assert np.vectorize(scaled)(x, n=10.0).tolist() == [0, 10, 20]
    for wrap in (lambda f: f, jax.jit):
        f = jnp.vectorize(scaled)
        assert wrap(lambda x, f=f: f(x, n=10.0))(x).tolist() == [0, 1, 2]
        assert wrap(lambda x, f=f: f(x, m=10.0))(x).tolist() == [0, 1, 2]
        assert wrap(lambda x, f=f: f(x, 10.0))(x).tolist() == [0, 10, 20]
        assert wrap(jnp.vectorize(lambda x: scaled(x, n=10.0)))(x).tolist() == [0, 10, 20]

    @functools.partial(jnp.vectorize, signature="(n),(n)->()")
    def total(x, w, power=1.0):
        return jnp.sum(x**power * w)

    assert total(jnp.array([1.0, 2.0]), jnp.ones(2), power=2.0) == 3


@pytest.mark.wrong_twin("vectorize-drops-keyword-arguments")
def test_wrong_twin_vectorize_passes_keyword_arguments_on():
    assert jnp.vectorize(scaled)(jnp.ones(1), n=10.0).tolist() == [10]


@pytest.mark.claim(
    "checkpoint-of-a-written-ref-gives-another-gradient",
    "If a function under `jax.checkpoint` writes to a ref and uses what it wrote, its gradient is that of the "
    "recomputation, which finds the ref as the forward pass left it.",
)
@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f])
def test_checkpoint_of_a_written_ref_gives_another_gradient(wrap):
    for change, factor in ((lambda f: f, 1), (jax.checkpoint, 2)):
        calls = jax.new_ref(jnp.float32(0))

        @change
        def layer(x, calls=calls):
            calls[...] += 1
            return jnp.sin(x * calls[...])

        assert np.allclose(wrap(jax.grad(layer))(1.0), factor * np.cos(factor), atol=1e-4)


@pytest.mark.claim(
    "vjp-keeps-a-numpy-argument",
    "`jax.vjp` keeps a NumPy argument itself: if you write into it before you call the pullback, the derivative is that "
    "of the new numbers, also around a jitted function. Of a copy, `jnp.array(x)`, it is right.",
)
def test_vjp_keeps_a_numpy_argument():
    for f in (lambda x: (x * x).sum(), jax.jit(lambda x: (x * x).sum())):
        for convert, slope in ((lambda x: x, 10), (jnp.array, 2)):
            x = np.ones(5000, np.float32)
            _, pullback = jax.vjp(f, jax.block_until_ready(convert(x)))
            x[:] = 5
            assert pullback(jnp.float32(1.0))[0][0] == slope


@pytest.mark.claim(
    "changed-closure-array-counts-under-grad-and-vmap",
    "After a change in place of a NumPy array that a jitted function closes over, a call still uses the old numbers, but "
    "`jax.grad`, `jax.vmap` and an outer jit of it, used for the first time, use the new ones.",
)
def test_changed_closure_array_counts_under_grad_and_vmap():
    weights = np.ones(4, np.float32)
    f = jax.jit(lambda x: (x * weights).sum())
    x = jnp.ones(4)
    assert f(x) == 4
    weights[:] = 5
    assert f(x) == 4
    assert jax.grad(f)(x).tolist() == [5] * 4
    assert jax.vmap(f)(x[None]).tolist() == [20]
    assert jax.jit(lambda x: f(x))(x) == 20


@pytest.mark.claim(
    "symbolic-size-equals-no-number",
    "While an export with a symbolic size is traced, `x.shape[0] == 1` is False and `!=` is True, without an error, so "
    "the exported function takes that branch for size 1 too. With the constraint `b >= 2`, it refuses size 1.",
)
def test_symbolic_size_equals_no_number():
    shapes = {
        "equal": jax.jit(lambda x: x * 10 if x.shape[0] == 1 else x),
        "unequal": jax.jit(lambda x: x if x.shape[0] != 1 else x * 10),
        "in": jax.jit(lambda x: x * 10 if x.shape[0] in (1, 2) else x),
        "shape": jax.jit(lambda x: x * 10 if x.shape == (1,) else x),
    }
    for f in shapes.values():
        open_size = export.export(f)(jax.ShapeDtypeStruct(export.symbolic_shape("b"), jnp.float32))
        assert f(jnp.ones(1)).tolist() == [10]
        assert open_size.call(jnp.ones(1)).tolist() == [1]
    at_least_two = export.symbolic_shape("b", constraints=["b >= 2"])
    refused = export.export(shapes["equal"])(jax.ShapeDtypeStruct(at_least_two, jnp.float32))
    with pytest.raises(ValueError, match=r"[Cc]onstraint|>= 2|greater"):
        refused.call(jnp.ones(1))


@pytest.mark.claim(
    "reverse-associative-scan-swaps-its-arguments",
    "`jax.lax.associative_scan(f, xs, reverse=True)` calls `f` with the later element first, so with `jnp.matmul`, "
    "result `i` is the product from the last matrix down to matrix `i`. `lambda a, b: b @ a` gives the other order.",
)
def test_reverse_associative_scan_swaps_its_arguments():
    matrices = np.random.default_rng(0).normal(size=(5, 3, 3)).astype(np.float32)
    down = functools.reduce(np.matmul, matrices[::-1])
    up = functools.reduce(np.matmul, matrices)
    assert not np.allclose(down, up, rtol=1e-2, atol=1e-2)
    for f, whole in ((jnp.matmul, down), (lambda a, b: b @ a, up)):
        run = functools.partial(jax.lax.associative_scan, f, reverse=True)
        for g in (run, jax.jit(run)):
            assert np.allclose(g(matrices)[0], whole, rtol=1e-4, atol=1e-4)


@pytest.mark.claim(
    "uint32-and-signed-arrays-compare-as-int32",
    "With 64-bit types off, a comparison, `maximum` or `%` of a `uint32` array and an `int32`, `int16` or `int8` array "
    "is done in `int32`, so 4294967294 counts as −2; `.astype('uint32')` of the other array avoids it.",
)
def test_uint32_and_signed_arrays_compare_as_int32():
    large = jnp.array([4294967294], jnp.uint32)
    for dtype in ("int32", "int16", "int8"):
        zero = jnp.zeros(1, dtype)
        assert (large < zero).tolist() == [True]
        assert jnp.maximum(large, zero).tolist() == [0]
        assert (large % (zero + 10)).tolist() == [8]
        assert (large < zero.astype("uint32")).tolist() == [False]
        assert jnp.maximum(large, zero.astype("uint32")).tolist() == [4294967294]
    assert (np.array(large) < np.zeros(1, "int32")).tolist() == [False]
