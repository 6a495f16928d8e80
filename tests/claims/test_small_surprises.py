"""Functions that do a little less, or else, than they seem to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


@pytest.mark.claim(
    "switch-casts-its-index-before-it-clamps",
    "`lax.switch` casts its index to `int32` before it clamps it, so an index of `uint32` from 2**31 on takes the first "
    "branch; a minimum before the call selects the last one.",
)
def test_switch_casts_its_index_before_it_clamps():
    branches = [lambda: 0, lambda: 1, lambda: 2]
    choose = jax.jit(lambda i: lax.switch(i, branches))
    assert [int(choose(jnp.uint32(i))) for i in (1, 5, 2**31, 2**32 - 1)] == [1, 2, 0, 0]
    assert choose(jnp.minimum(jnp.uint32(2**31), 2)) == 2


@pytest.mark.wrong_twin("switch-casts-its-index-before-it-clamps")
def test_wrong_twin_a_large_index_takes_the_last_branch():
    assert lax.switch(jnp.uint32(2**31), [lambda: 0, lambda: 1]) == 1


@pytest.mark.claim(
    "map-with-a-remainder-traces-twice",
    "`lax.map` with a `batch_size=` that doesn't divide the length traces its function twice, and with one that does once.",
)
def test_map_with_a_remainder_traces_twice():
    for length, expected in ((8, 1), (10, 2)):
        traces = []
        f = jax.jit(
            lambda x, traces=traces: lax.map(lambda y: traces.append(1) or jnp.sin(y), x, batch_size=4)
        )
        f(jnp.arange(float(length)))
        assert len(traces) == expected


@pytest.mark.claim(
    "keyword-arguments-arrive-sorted",
    "A jitted function gets the keywords of its `**options` in the order of their names, as does one under `vmap`.",
)
def test_keyword_arguments_arrive_sorted():
    def stacked(**options):
        return jnp.stack(list(options.values()))

    assert stacked(b=jnp.float32(1), a=jnp.float32(2)).tolist() == [1, 2]
    assert jax.jit(stacked)(b=1.0, a=2.0).tolist() == [2, 1]
    assert jax.vmap(stacked)(b=jnp.ones(1), a=2 * jnp.ones(1)).tolist() == [[2, 1]]


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "log2-of-a-power-of-two-may-not-be-exact",
    "On a CPU, `jnp.log2(8192.0)` is a little less than 13, so that its integer part is 12; `jnp.round` gives 13.",
)
def test_log2_of_a_power_of_two_may_not_be_exact():
    for function in (jnp.log2, jax.jit(jnp.log2)):
        assert int(function(8192.0)) == 12
        assert int(jnp.round(function(8192.0))) == 13


@pytest.mark.claim(
    "integer-convolution-is-computed-in-float32",
    "`jnp.convolve` and `jnp.polymul` of `int32` arrays give `float32`, so they lose the last digit of 2**24 + 1; "
    "`preferred_element_type=` of an integer type keeps it.",
)
def test_integer_convolution_is_computed_in_float32():
    large, two = np.array([2**24 + 1, 1], np.int32), np.ones(2, np.int32)
    for function in (jnp.convolve, jnp.polymul):
        assert function(large, two).dtype == jnp.float32
        assert function(large, two)[0] == 2**24
    exact = jnp.convolve(large, two, preferred_element_type=jnp.int32)
    assert exact.tolist() == np.convolve(large, two).tolist()


@pytest.mark.claim(
    "python-integer-wraps-to-the-dtype-of-the-array",
    "A Python integer beyond the range of a `uint8` array wraps around, with and without jit: for an entry 100, `x < 256` "
    "is false and `jnp.clip(x, 0, 300)` is 44; with an `int32` in its place, they are true and 100.",
)
def test_python_integer_wraps_to_the_dtype_of_the_array():
    x = jnp.full(3, 100, "uint8")
    for run in (lambda f: f, jax.jit):
        assert not run(lambda x: x < 256)(x).any()
        assert run(lambda x: jnp.clip(x, 0, 300))(x).tolist() == [44] * 3
        assert run(lambda x: x < jnp.int32(256))(x).all()
        assert run(lambda x: jnp.clip(x, 0, jnp.int32(300)))(x).tolist() == [100] * 3
