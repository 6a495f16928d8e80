"""A call that raised says what became of its program, and counts where XLA compiled it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import assert_compiles, watch


def raising_when_run():
    @watch
    @jax.jit
    def logarithm(x):
        return jnp.log(x)

    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        logarithm(jnp.asarray(-np.ones(3, np.float32)))
    return logarithm


def test_a_program_that_raised_when_it_ran_is_kept_and_counted():
    f = raising_when_run()
    assert (f.last.outcome, f.last.compiled, f.compiles) == ("raised", True, 1)
    assert str(f.last.reason) == (
        "`logarithm` raised FloatingPointError: the program is kept. The error came when it ran."
    )
    f.assert_compiles(1)
    with pytest.raises(AssertionError, match="compiled in 1 of 1 calls; expected: 0"):
        f.assert_compiles(0)
    assert f.to_dict()["calls"][0]["compiled"] is True


def test_a_watched_function_and_a_block_count_the_same_compiles():
    with assert_compiles(1, of="logarithm"):
        f = raising_when_run()
    assert f.compiles == 1


def test_a_trace_that_raised_made_no_program():
    f = watch(jax.jit(lambda x: 1 if x else 2))
    with pytest.raises(jax.errors.TracerBoolConversionError):
        f(True)
    assert str(f.last.reason).endswith("raised TracerBoolConversionError: nothing was compiled.")
    assert (f.last.compiled, f.compiles) == (False, 0)
