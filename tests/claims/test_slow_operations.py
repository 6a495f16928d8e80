"""Operations that XLA leaves as they are written."""

import re

import jax
import jax.numpy as jnp
import pytest

NCHW, NHWC = ("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")
FAST = "b01f_01io->b01f"  # how XLA's texts call NHWC and HWIO


def compiled(fn, *args):
    return jax.jit(fn).lower(*args).compile()


def labels(fn, *args):
    """The layouts of the convolutions in the compiled text."""
    return set(re.findall(r"dim_labels=(\S+?)[,\s]", compiled(fn, *args).as_text()))


def step(layout, kernel):
    def apply(x):
        return jnp.tanh(jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout))

    return apply


def times_three(f, unroll=1):
    return lambda x: jax.lax.scan(lambda x, _: (f(x), None), x, None, length=3, unroll=unroll)[0]


X, KERNEL = jnp.ones((1, 8, 16, 16)), jnp.ones((8, 8, 3, 3))
X_LAST, KERNEL_LAST = jnp.ones((1, 16, 16, 8)), jnp.ones((3, 3, 8, 8))


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "convolution-in-a-loop-keeps-its-layout",
    "On a CPU, XLA changes a convolution from NCHW to NHWC, but leaves it as it is in the body of a `scan` or `fori_loop` "
    "and in a branch of `cond`; in a fully unrolled `scan` it changes it.",
)
def test_convolution_in_a_loop_keeps_its_layout():
    f = step(NCHW, KERNEL)
    kept = {"bf01_oi01->bf01"}
    assert labels(f, X) == labels(times_three(f, unroll=3), X) == {FAST}
    assert labels(times_three(f), X) == kept
    assert labels(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: f(x), x), X) == kept
    assert labels(lambda p, x: jax.lax.cond(p, f, lambda x: x, x), True, X) == kept
    assert labels(times_three(step(NHWC, KERNEL_LAST)), X_LAST) == {FAST}


@pytest.mark.wrong_twin("convolution-in-a-loop-keeps-its-layout")
def test_wrong_twin_a_loop_makes_no_difference():
    f = step(NCHW, KERNEL)
    assert labels(times_three(f), X) == labels(f, X)


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "transposes-in-the-loop-give-the-fast-layout",
    "On a CPU, transposing the image to NHWC and back inside the body of a loop makes the convolution in it one in NHWC.",
)
def test_transposes_in_the_loop_give_the_fast_layout():
    f = step(NHWC, KERNEL.transpose(2, 3, 1, 0))
    assert labels(times_three(lambda x: f(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)), X) == {FAST}


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "gradient-of-a-convolution-in-a-loop-has-a-slow-layout",
    "On a CPU, the gradient with respect to the kernel of a convolution in NHWC is itself a convolution in another layout, which XLA "
    "leaves as it is in the body of a `scan`.",
)
def test_gradient_of_a_convolution_in_a_loop_has_a_slow_layout():
    def loss(kernel):
        return step(NHWC, kernel)(X_LAST).sum()

    def descend(kernel):
        return kernel - 0.1 * jax.grad(loss)(kernel)

    assert labels(descend, KERNEL_LAST) == labels(times_three(descend, unroll=3), KERNEL_LAST) == {FAST}
    assert labels(times_three(descend), KERNEL_LAST) - {FAST}


A, B, V = jnp.ones((20, 30)), jnp.ones((30, 40)), jnp.ones(40)
PRODUCT = "f32[20,40]"  # the shape of A @ B, which no argument has


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "matrix-products-keep-their-order",
    "On a CPU, XLA computes `(A @ B) @ v` as it is written, with the product of the two matrices; `A @ (B @ v)`, "
    "`multi_dot` and an `einsum` of the three do without that product.",
)
def test_matrix_products_keep_their_order():
    assert PRODUCT in compiled(lambda a, b, v: (a @ b) @ v, A, B, V).as_text()
    for cheap in (
        lambda a, b, v: a @ (b @ v),
        lambda a, b, v: jnp.linalg.multi_dot([a, b, v]),
        lambda a, b, v: jnp.einsum("ij,jk,k->i", a, b, v),
    ):
        assert PRODUCT not in compiled(cheap, A, B, V).as_text()


@pytest.mark.wrong_twin("matrix-products-keep-their-order")
def test_wrong_twin_products_are_reordered():
    assert PRODUCT not in compiled(lambda a, b, v: (a @ b) @ v, A, B, V).as_text()


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "part-of-a-product-computes-all-of-it",
    "On a CPU, XLA computes the whole product of two matrices for its trace, and for one row of it.",
)
def test_part_of_a_product_computes_all_of_it():
    square, other = jnp.ones((20, 30)), jnp.ones((30, 20))
    assert "f32[20,20]" in compiled(lambda a, b: jnp.trace(a @ b), square, other).as_text()
    assert "f32[20,20]" not in compiled(lambda a, b: jnp.sum(a * b.T), square, other).as_text()
    assert PRODUCT in compiled(lambda a, b: (a @ b)[0], A, B).as_text()
    assert PRODUCT not in compiled(lambda a, b: a[0] @ b, A, B).as_text()


@pytest.mark.claim(
    "equal-products-are-merged",
    "A product of two matrices that a jitted function computes twice is computed once.",
)
def test_equal_products_are_merged():
    text = compiled(lambda a, b: (a @ b) + jnp.tanh(a @ b), A, B).as_text()
    assert len(re.findall(r" (?:dot|custom-call)\(", text)) == 1


BUFFER = jnp.zeros(100_000)


def temporaries(body):
    stats = compiled(lambda b: jax.lax.scan(body, b, jnp.arange(50)), BUFFER).memory_analysis()
    if stats is None:
        pytest.skip("not applicable: this backend reports no memory use")
    return stats.temp_size_in_bytes


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "returning-an-old-element-copies-the-carry",
    "On a CPU, a `scan` that updates one element of its carry and returns an element from before the update needs a copy of the whole "
    "array; one that uses the old element for the update, or returns an element of the new array, does not.",
)
def test_returning_an_old_element_copies_the_carry():
    def returns_old(b, i):
        return b.at[i].set(1.0), b[i]

    def returns_another_old(b, i):
        return b.at[i].set(1.0), b[i + 1]

    def uses_old(b, i):
        return b.at[i].set(b[i] + 1.0), None

    def returns_new(b, i):
        b = b.at[i].add(1.0)
        return b, b[i]

    assert min(temporaries(returns_old), temporaries(returns_another_old)) >= BUFFER.nbytes
    assert max(temporaries(uses_old), temporaries(returns_new)) < BUFFER.nbytes


@pytest.mark.wrong_twin("returning-an-old-element-copies-the-carry")
def test_wrong_twin_returning_an_old_element_is_free():
    assert temporaries(lambda b, i: (b.at[i].set(1.0), b[i])) < BUFFER.nbytes
