"""Gradients of jitted functions, and of where."""

import jax
import jax.numpy as jnp
import pytest


def cube(x):
    return x**3


@pytest.mark.claim(
    "grad-of-jitted-makes-two-programs",
    "`grad(jit(f))` runs a compiled forward and a compiled backward pass; `jit(grad(f))` runs both as one.",
)
def test_grad_of_jitted_makes_two_programs(counted):
    def jits_in(f):
        return sum(eqn.primitive.name in ("jit", "pjit") for eqn in jax.make_jaxpr(f)(2.0).eqns)

    assert jits_in(jax.grad(jax.jit(cube))) == 2
    assert jits_in(jax.jit(jax.grad(cube))) == 1
    x = jnp.float32(2.0)
    counted()
    jax.jit(jax.grad(lambda x: x**3))(x)
    assert counted()["compiles"] == 1


@pytest.mark.claim(
    "grad-of-jitted-works-in-python-each-time",
    "A warm `grad(jit(f))` differentiates in Python at each call, so `jax.no_tracing` refuses it; a warm "
    "`jit(grad(f))` does not.",
)
def test_grad_of_jitted_works_in_python_each_time():
    x = jnp.float32(2.0)
    inside, outside = jax.grad(jax.jit(cube)), jax.jit(jax.grad(cube))
    assert inside(x) == outside(x) == 12.0
    with jax.no_tracing():
        assert outside(x) == 12.0
        with pytest.raises(RuntimeError, match="no_tracing"):
            inside(x)


@pytest.mark.wrong_twin("grad-of-jitted-works-in-python-each-time", raises=RuntimeError)
def test_wrong_twin_warm_grad_of_jitted_needs_no_python():
    x = jnp.float32(2.0)
    inside = jax.grad(jax.jit(cube))
    inside(x)
    with jax.no_tracing():
        inside(x)


@pytest.mark.claim(
    "gradient-of-where-takes-both-sides",
    "The derivative of `where` passes through both sides: an infinite one on the side not chosen gives `nan`.",
)
def test_gradient_of_where_takes_both_sides():
    assert jnp.isnan(jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))(0.0))
    assert jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0))(0.0) == 0.0
