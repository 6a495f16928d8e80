"""Train a small network with one jitted step that donates its state.

Run it with `python training_loop.py`. It prints the loss now and then, and
at the end checks that the step compiled once, that donation took effect,
and that the network has learned. Put your own model and data in the place
of `predict` and `examples`.
"""

import argparse
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jitguide import watch


def start(key, sizes=(2, 64, 64, 1)):
    """Return parameters and velocities: weight and bias per layer."""
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = zip(keys, sizes[:-1], sizes[1:], strict=True)
    params = [
        (jax.random.normal(k, (n, m)) / n**0.5, jnp.zeros(m))
        for k, n, m in shapes
    ]
    return params, jax.tree.map(jnp.zeros_like, params)


def predict(params, x):
    """Return what the network makes of a batch."""
    for weights, bias in params[:-1]:
        x = jnp.tanh(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


def loss(params, x, y):
    """Return the mean squared error."""
    return jnp.mean((predict(params, x) - y) ** 2)


@watch  # counts traces; remove it with `assert_traces` below
@jax.jit(donate_argnames="state")
def step(state, x, y):
    """Return the new state and the loss before; deletes the old state."""
    params, velocity = state
    value, slope = jax.value_and_grad(loss)(params, x, y)
    velocity = jax.tree.map(
        lambda v, s: 0.9 * v - 0.05 * s, velocity, slope
    )
    return (jax.tree.map(jnp.add, params, velocity), velocity), value


def examples(number):
    """Return points of the plane, and a wavy height over each of them."""
    x = (
        np.random.default_rng(0)
        .uniform(-1, 1, (number, 2))
        .astype(np.float32)
    )
    return x, np.sin(3 * x[:, :1]) * np.cos(2 * x[:, 1:])


def positive(text):
    """Return `text` as a positive whole number, for argparse."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a positive whole number. Give one, such as "
            "1000."
        )
    return int(text)


def main(arguments=None):
    """Train, tell how it goes, and check what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--steps",
        type=positive,
        default=1500,
        help="steps (default: %(default)s)",
    )
    parser.add_argument(
        "--batch",
        type=positive,
        default=128,
        help="size of a batch (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    x, y = examples(4096)
    if options.batch > len(x):
        parser.error(
            f"--batch is {options.batch}, and there are {len(x)} examples. "
            "Give at most that many."
        )

    rng, state, begun = (
        np.random.default_rng(1),
        start(jax.random.key(0)),
        time.perf_counter(),
    )
    first = state
    before = float(loss(state[0], x, y))
    for number in range(1, options.steps + 1):
        # Keep one size: a smaller last batch would compile again.
        batch = rng.integers(len(x), size=options.batch)
        state, value = step(state, x[batch], y[batch])
        # `float()` waits for the device, so don't call it in each step.
        if number % max(1, options.steps // 5) == 0:
            seconds = time.perf_counter() - begun
            print(
                f"step {number:5}  loss {float(value):.4f}  after "
                f"{seconds:4.1f} s",
                flush=True,
            )

    after = float(loss(state[0], x, y))
    step.assert_traces(1)  # not compiles: a persistent cache may save them
    if not all(leaf.is_deleted() for leaf in jax.tree.leaves(first)):
        sys.exit(
            "The check failed: a donated array is still there, so the step "
            "needs memory for two states."
        )
    if not after < before / 2:
        sys.exit(
            f"The check failed: the loss went from {before:.4f} to "
            f"{after:.4f}. Give more --steps."
        )
    print(
        f"checked: one trace, the old state is gone, loss {before:.3f} "
        f"before and {after:.4f} after"
    )


if __name__ == "__main__":
    main()
