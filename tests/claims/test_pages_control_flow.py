"""What the compiler makes of loops, and traces of their bodies."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax


def add_unrolled(x):
    for _ in range(8):
        x = x + 3
    return x


def add_loop(x):
    return lax.fori_loop(0, 8, lambda i, x: x + 3, x)


def compiled_text(fn):
    return jax.jit(fn).lower(jnp.arange(4)).compile().as_text()


@pytest.mark.claim(
    "unrolled-steps-can-be-merged",
    "The compiler may merge the steps of an unrolled loop; the steps of a loop primitive stay a loop.",
    seeds="S002-88 S002-98",
)
def test_unrolled_steps_can_be_merged():
    assert "constant(24)" in compiled_text(add_unrolled)
    assert "constant(24)" not in compiled_text(add_loop)
    assert " while(" in compiled_text(add_loop)


@pytest.mark.wrong_twin("unrolled-steps-can-be-merged")
def test_wrong_twin_loop_steps_are_merged():
    assert "constant(24)" in compiled_text(add_loop)


@pytest.mark.claim(
    "promoted-carry-traces-the-body-again",
    "The body of a `fori_loop` is traced twice if the carry starts as an `int` and becomes a float.",
    seeds="S000-22",
)
def test_promoted_carry_traces_the_body_again():
    def traces(start):
        runs = []
        lax.fori_loop(0, 3, lambda i, total: (runs.append(1), total + jnp.arange(3.0)[i])[1], start)
        return len(runs)

    assert (traces(0), traces(0.0)) == (2, 1)


@pytest.mark.claim(
    "array-iterator-in-a-loop-body-may-be-silent",
    "An array's iterator in a loop body raises if the body is traced twice, else it repeats one element.",
    seeds="S000-23",
)
def test_array_iterator_in_a_loop_body_may_be_silent():
    def total_of(numbers, start):
        elements = iter(numbers)
        return lax.fori_loop(0, 3, lambda i, total: total + next(elements), start)

    numbers = jnp.array([1.0, 10.0, 100.0])
    assert total_of(numbers, 0.0) == 3
    with pytest.raises(jax.errors.UnexpectedTracerError):
        total_of(numbers, 0)
