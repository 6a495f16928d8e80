"""Printing in order from a jitted function."""

import jax
import pytest


def _ordered(x):
    jax.debug.print("first {x}", x=x, ordered=True)
    jax.debug.print("second {y}", y=x * 2, ordered=True)
    return x


@pytest.mark.claim(
    "ordered-debug-prints-keep-their-order",
    "Prints with `ordered=True` are recorded as ordered effects and appear in the order of the program, also "
    "from one call to the next.",
)
def test_ordered_debug_prints_keep_their_order(capsys):
    f = jax.jit(_ordered)
    assert "Ordered" in str(jax.make_jaxpr(_ordered)(1.0).effects)
    for value in (1, 2, 3):
        f(value)
    jax.effects_barrier()
    expected = "".join(f"first {value}\nsecond {2 * value}\n" for value in (1, 2, 3))
    assert capsys.readouterr().out == expected


@pytest.mark.wrong_twin("ordered-debug-prints-keep-their-order")
def test_wrong_twin_plain_debug_prints_are_ordered_effects():
    assert "Ordered" in str(jax.make_jaxpr(lambda x: (jax.debug.print("{x}", x=x), x)[1])(1.0).effects)
