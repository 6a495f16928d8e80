"""Windows with a traced start."""

import jax
import jax.numpy as jnp
import pytest

needs_ds = pytest.mark.skipif(not hasattr(jax, "ds"), reason="not applicable: jax.ds is not in this JAX")


@jax.jit
def window(x, start):
    return x[jax.ds(start, 2)]


@pytest.mark.claim(
    "window-is-moved-back-to-fit",
    "A window of `jax.ds` with a traced start, or of `dynamic_slice`, that would stick out is moved back to fit, "
    "without an error.",
)
def test_window_is_moved_back_to_fit():
    x = jnp.arange(6)
    assert window(x, 4).tolist() == [4, 5]
    assert window(x, 5).tolist() == [4, 5]
    assert jax.lax.dynamic_slice(x, (5,), (2,)).tolist() == [4, 5]


@pytest.mark.wrong_twin("window-is-moved-back-to-fit")
def test_wrong_twin_window_is_cut_off():
    assert window(jnp.arange(6), 5).tolist() == [5]


@pytest.mark.claim(
    "window-with-a-negative-start-is-not-written",
    "`x[jax.ds(i, size)]` with a negative traced `i` reads from the end; `x.at[jax.ds(i, size)].set` writes "
    "nothing there, even if the window fits.",
)
@needs_ds
def test_window_with_a_negative_start_is_not_written():
    x = jnp.arange(6)
    assert window(x, -2).tolist() == [4, 5]
    write = jax.jit(lambda x, start: x.at[jax.ds(start, 2)].set(9))
    assert write(x, -2).tolist() == x.tolist()


@pytest.mark.claim(
    "window-with-a-plain-start-may-be-cut",
    "With a plain number as start, as under `disable_jit`, some versions of JAX cut a window of `jax.ds` "
    "short where others move it back; `lax.dynamic_slice` moves it back.",
)
@needs_ds
def test_window_with_a_plain_start_may_be_cut():
    x = jnp.arange(6)
    with jax.disable_jit():
        without_jit = window(x, 5).tolist()
        assert jax.lax.dynamic_slice(x, (5,), (2,)).tolist() == [4, 5]
    plain = jax.jit(lambda x: x[jax.ds(5, 2)])(x).tolist()
    assert plain == without_jit
    assert plain in ([4, 5], [5])


@pytest.mark.claim(
    "negative-index-out-of-range-reads-the-first",
    "A negative index counts from the end, and before the beginning it reads the first entry, without an error.",
)
def test_negative_index_out_of_range_reads_the_first():
    read = jax.jit(lambda x, i: x[i])
    assert [int(read(jnp.arange(3), i)) for i in (-1, -3, -4, -7)] == [2, 0, 0, 0]
