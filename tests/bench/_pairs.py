"""Twelve functions, each compiled as often as wanted, and the ways in which others time them."""

import statistics
import timeit
from time import perf_counter

import jax
import jax.numpy as jnp

from jitguide._recording.experiments import polynomial, selu


def oscillate(state):
    def slope(y):
        return jnp.stack([y[1], -y[0]])

    h = 0.01
    a = slope(state)
    b = slope(state + h / 2 * a)
    c = slope(state + h / 2 * b)
    d = slope(state + h * c)
    return state + h / 6 * (a + 2 * b + 2 * c + d)


def sin_loop(x):
    return jax.lax.fori_loop(0, 20, lambda _, y: jnp.sin(y) * 1.01, x)


def recurrent(weights, inputs):
    def step(state, row):
        state = jnp.tanh(weights @ state + row)
        return state, state

    return jax.lax.scan(step, inputs[0], inputs)


def attention(queries, keys, values):
    return jax.nn.softmax(queries @ keys.T / 8) @ values


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def convolution(images, kernels):
    return jax.lax.conv(images, kernels, (1, 1), "SAME")


def adam(params, first, second, gradients):
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    return jax.tree.map(lambda p, m, v: p - 0.001 * m / (jnp.sqrt(v) + 1e-8), params, first, second)


def layers():
    return [jnp.ones((128, 128)) * i for i in range(8)]


# The times are those of two shared cores. Loops and Runge–Kutta steps are slower in some compiled copies than in
# others, or have two modes of speed.
FUNCTIONS = {
    "selu, 8 numbers (5 µs)": (selu, lambda: jnp.linspace(-1, 1, 8)),
    "Runge–Kutta step, 2 × 2000 (30 µs)": (oscillate, lambda: jnp.ones((2, 2_000))),
    "Runge–Kutta step, 2 × 10^4 (40 µs)": (oscillate, lambda: jnp.ones((2, 10_000))),
    "polynomial, 2 × 10^5 numbers (0.1 ms)": (polynomial, lambda: jnp.linspace(-1, 1, 200_000)),
    "selu, 10^6 numbers (0.3 ms)": (selu, lambda: jnp.linspace(-1, 1, 1_000_000)),
    "matrix product, 768 (3 ms)": (jnp.matmul, lambda: (jnp.ones((768, 768)),) * 2),
    "loop of sin, 2 × 10^4 numbers (0.5 ms)": (sin_loop, lambda: jnp.linspace(0, 1, 20_000)),
    "scan of an RNN, 50 steps (50 µs)": (recurrent, lambda: (jnp.eye(16) * 0.5, jnp.ones((50, 16)))),
    "attention, 256 × 64 (0.3 ms)": (attention, lambda: (jnp.ones((256, 64)),) * 3),
    "layer norm, 512 × 256 (50 µs)": (layer_norm, lambda: jnp.ones((512, 256))),
    "convolution, 4 × 8 × 32 × 32 (0.5 ms)": (
        convolution,
        lambda: (jnp.ones((4, 8, 32, 32)), jnp.ones((16, 8, 3, 3))),
    ),
    "Adam step, 8 × 128 × 128 (0.1 ms)": (adam, lambda: (layers(), layers(), layers(), layers())),
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
