"""Measure what jit gains on your function, and when it has paid off.

Put your function in the place of `mine`, and arguments like those it gets
in real life in the place of `inputs`. Then run this file:
`python measure_your_function.py`, or with `--size 1000` for another input.

It prints the machine, a comparison with and without jit, the steps of the
first call, the number of calls after which jit has paid off, and what else
there is to say about the function.
"""

import argparse
import math
import sys

import jax
import jax.numpy as jnp
from jitguide import check, compare, device_report, phases


def mine(x):
    """Smooth a signal three times: a chain of cheap operations."""
    for _ in range(3):
        x = 0.25 * jnp.roll(x, 1) + 0.5 * x + 0.25 * jnp.roll(x, -1)
    return x


def inputs(size):
    """Return the arguments of one call, as a tuple."""
    return (jax.random.normal(jax.random.key(0), (size,)),)


def positive(text):
    """Return `text` as a positive whole number, for argparse."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a positive whole number. Give the length of "
            "the input, such as 100000."
        )
    return int(text)


def measured(args):
    """Return the times with and without jit, and compare the results."""
    # If your function fails, it fails here, with its own traceback.
    jax.block_until_ready(mine(*args))
    try:
        return compare({"as it is": mine, "jit": jax.jit(mine)}, *args)
    except ValueError as error:
        sys.exit(f"The check failed. {error}")


def main(arguments=None):
    """Print the comparison, the phases, the break-even and the findings."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--size",
        type=positive,
        default=200_000,
        help="length of the input (default: %(default)s)",
    )
    args = inputs(parser.parse_args(arguments).size)

    print(device_report(), end="\n\n", flush=True)
    result = measured(args)
    print(result, end="\n\n", flush=True)

    cost = phases(mine, *args)
    print(cost)
    calls = cost.break_even(result["as it is"].median)
    if result.verdict("jit") != "faster" or math.isinf(calls):
        print("jit does not pay off here: a call is not faster with it")
    else:
        print(f"jit has paid off after {calls:,.0f} calls")
    print(f"\n{check(jax.jit(mine), *args)}")
    print("\nchecked: with and without jit the result is the same")


if __name__ == "__main__":
    main()
