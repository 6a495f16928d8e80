"""Measure a function of your own: what jit buys it, what the first call costs, and when that has paid off.

Replace `mine` by your function and `inputs` by arguments like those it gets in real life, then run this file.
"""

import argparse

import jax
import jax.numpy as jnp

from jitguide import check, compare, device_report, phases


def mine(x):
    """Smooth a signal three times: a chain of cheap operations, as many programs have."""
    for _ in range(3):
        x = 0.25 * jnp.roll(x, 1) + 0.5 * x + 0.25 * jnp.roll(x, -1)
    return x


def inputs(size):
    """Return the arguments of one call, as a tuple."""
    return (jax.random.normal(jax.random.key(0), (size,)),)


def positive(text):
    """Return `text` as a positive whole number, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(
            f"{text} is not positive: give the length of the input, such as 100000"
        )
    return number


def main(arguments=None):
    """Print the comparison, the phases of the first call, the break-even, and what else there is to say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--size", type=positive, default=200_000, help="length of the input (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    args = inputs(options.size)

    print(device_report(), end="\n\n")
    result = compare({"as it is": mine, "jit": jax.jit(mine)}, *args)
    print(result, end="\n\n")
    cost = phases(mine, *args)
    print(cost)
    print(f"even after {cost.break_even(result['as it is'].median):,.0f} calls", end="\n\n")
    print(check(jax.jit(mine), *args))


if __name__ == "__main__":
    main()
