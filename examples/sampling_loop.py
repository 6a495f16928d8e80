"""Sample with Metropolis chains, all steps in one compiled loop.

Run it with `python sampling_loop.py`. It prints the estimates after each
round, and at the end checks them against the exact mean and variance. The
distribution is a gamma distribution here; put the logarithm of your own
density in the place of `log_density`.
"""

import argparse
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jitguide import watch

SHAPE, RATE = 3.0, 2.0
MEAN, VARIANCE = SHAPE / RATE, SHAPE / RATE**2  # of a gamma distribution


def log_density(x):
    """Return the log density up to a constant; -inf outside."""
    # `where` computes both sides, so keep the logarithm finite.
    inside = jnp.maximum(x, 1e-30)
    return jnp.where(
        x > 0, (SHAPE - 1) * jnp.log(inside) - RATE * x, -jnp.inf
    )


def move(state, key):
    """Propose a step, take it or stay; one chain, one key."""
    x, density = state
    # Each draw needs a key of its own.
    to_walk, to_decide = jax.random.split(key)
    proposal = x + 1.5 * jax.random.normal(to_walk)
    proposed = log_density(proposal)
    taken = jnp.log(jax.random.uniform(to_decide)) < proposed - density
    return (
        jnp.where(taken, proposal, x),
        jnp.where(taken, proposed, density),
    ), taken


@watch
@jax.jit(static_argnames="steps")
def advance(x, key, steps):
    """Return positions; mean and mean square of x - MEAN; share moved."""

    def chain(x, key):
        def one(carry, number):
            state, total, square, moves = carry
            state, taken = move(state, jax.random.fold_in(key, number))
            off = state[0] - MEAN  # sums of x**2 would lose the digits
            sums = total + off, square + off**2, moves + taken
            return (state, *sums), None

        carry = ((x, log_density(x)), 0.0, 0.0, 0)
        (state, *sums), _ = jax.lax.scan(one, carry, jnp.arange(steps))
        return state[0], jnp.stack([s / steps for s in sums])

    return jax.vmap(chain)(x, jax.random.split(key, x.shape[0]))


def number_between(low, high):
    """Return an argparse type: a whole number in these bounds."""

    def read(text):
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {low} to {high}. "
                f"Give one, such as {10 * low}."
            )
        return int(text)

    return read


def main(arguments=None):
    """Sample in rounds, tell how it goes, and check mean and variance."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    chains, rounds = number_between(20, 10**6), number_between(2, 1000)
    # Longer sums in float32 would lose their last terms.
    steps = number_between(2, 10**6)
    parser.add_argument(
        "--chains",
        type=chains,
        default=200,
        help="chains (default: %(default)s)",
    )
    parser.add_argument(
        "--steps",
        type=steps,
        default=1000,
        help="steps a round (default: %(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=rounds,
        default=5,
        help="rounds (default: %(default)s)",
    )
    options = parser.parse_args(arguments)

    key = jax.random.key(42)
    # Without the dtype, the second round would compile again.
    x = jnp.full(options.chains, MEAN, float)
    history = []
    for number in range(options.rounds):
        x, found = advance(
            x, jax.random.fold_in(key, number), steps=options.steps
        )
        history.append(np.asarray(found, float))
        off, square, moved = history[-1].mean(axis=0)
        print(
            f"round {number + 1}: mean {MEAN + off:.3f}, variance "
            f"{square - off**2:.3f}, moved {moved:.0%}",
            flush=True,
        )

    advance.assert_traces(1)
    # Drop the first round, in which the chains forget their start.
    of_chains = np.mean(history[1:], axis=0)
    off, square, _ = of_chains.T
    # The chains know nothing of each other, so their spread tells how far
    # off their mean can be.
    for name, values, exact in [
        ("mean", MEAN + off, MEAN),
        (
            "variance",
            square - 2 * off.mean() * off + off.mean() ** 2,
            VARIANCE,
        ),
    ]:
        error = values.std(ddof=1) / options.chains**0.5
        print(
            f"{name}: {values.mean():.4f} ± {error:.4f}, exactly "
            f"{exact:.4f}"
        )
        if not abs(values.mean() - exact) < 5 * error:
            sys.exit(
                f"The check failed: the {name} is more than five standard "
                "errors off."
            )
    print(
        "checked: one trace, mean and variance within five standard errors"
    )


if __name__ == "__main__":
    main()
