"""Functions of six speeds, each as often as wanted, and the ways in which others time them."""

import statistics
import timeit
from time import perf_counter

import jax
import jax.numpy as jnp

from jitguide.demos.elementwise import polynomial, selu


def oscillate(state):
    def slope(y):
        return jnp.stack([y[1], -y[0]])

    h = 0.01
    a = slope(state)
    b = slope(state + h / 2 * a)
    c = slope(state + h / 2 * b)
    d = slope(state + h * c)
    return state + h / 6 * (a + 2 * b + 2 * c + d)


# The times are those of two shared cores. The Runge–Kutta steps have two modes of speed.
FUNCTIONS = {
    "selu, 8 numbers (5 µs)": (selu, lambda: jnp.linspace(-1, 1, 8)),
    "Runge–Kutta step, 2 × 2000 (30 µs)": (oscillate, lambda: jnp.ones((2, 2_000))),
    "Runge–Kutta step, 2 × 10^4 (40 µs)": (oscillate, lambda: jnp.ones((2, 10_000))),
    "polynomial, 2 × 10^5 numbers (0.1 ms)": (polynomial, lambda: jnp.linspace(-1, 1, 200_000)),
    "selu, 10^6 numbers (0.3 ms)": (selu, lambda: jnp.linspace(-1, 1, 1_000_000)),
    "matrix product, 768 (3 ms)": (jnp.matmul, lambda: (jnp.ones((768, 768)),) * 2),
}


def copies(name, count):
    """Return `count` separately compiled copies of a function, and its arguments."""
    fn, make = FUNCTIONS[name]
    made = make()
    args = made if isinstance(made, tuple) else (made,)
    jitted = [jax.jit(lambda *a: fn(*a)) for _ in range(count)]
    for copy in jitted:
        jax.block_until_ready(copy(*args))
    return jitted, args


def as_timeit(fn, args):
    """As `%timeit`: seven blocks of at least 0.2 s one after the other, and their mean."""
    timer = timeit.Timer(lambda: jax.block_until_ready(fn(*args)))
    number, _ = timer.autorange()
    return statistics.mean(timer.repeat(repeat=7, number=number)) / number


def as_hyperfine(fn, args, seconds=0.5):
    """As hyperfine: every call timed, warm, one function after the other, and the mean."""
    taken, end = [], perf_counter() + seconds
    while len(taken) < 10 or perf_counter() < end:
        start = perf_counter()
        jax.block_until_ready(fn(*args))
        taken.append(perf_counter() - start)
    return statistics.mean(taken)
