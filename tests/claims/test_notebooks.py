"""What a notebook does to jitted functions."""

import jax
import pytest


def _replaced():
    def scale(x):
        return x * 2

    def edited(x):
        return x * 3

    jitted = jax.jit(scale)
    assert jitted(1.0) == 2.0
    scale.__code__ = edited.__code__  # as %autoreload does
    return jitted, scale


@pytest.mark.claim(
    "replaced-code-is-not-noticed",
    "A jitted function does not notice that the code of its function was replaced in place, as `%autoreload` does it: a known "
    "signature gives the old result, also through a new `jax.jit`, until `clear_cache()`.",
)
def test_replaced_code_is_not_noticed():
    jitted, scale = _replaced()
    assert scale(1.0) == 3.0
    assert jitted(1.0) == 2.0
    assert jax.jit(scale)(1.0) == 2.0
    jitted.clear_cache()
    assert jitted(1.0) == 3.0


@pytest.mark.wrong_twin("replaced-code-is-not-noticed")
def test_wrong_twin_replaced_code_is_noticed():
    jitted, _ = _replaced()
    assert jitted(1.0) == 3.0
