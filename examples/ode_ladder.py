"""Solve an ODE with NumPy, eager JAX, a jitted step, a compiled loop.

Run it with `python ode_ladder.py`. It prints the times of the rungs side by
side, checks that all of them end at the same place, and then lets the
compiled loop run on, with a check of what it must conserve. Put your own
right-hand side in the place of `slope`: it is written once, for NumPy and
for JAX.
"""

import argparse
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jitguide import compare

DT = 0.01


def slope(state, xp):
    """Return the derivative of (prey, predators); `xp` is np or jnp."""
    prey, predators = state
    return xp.stack([prey * (1.0 - predators), predators * (prey - 1.0)])


def conserved(state):
    """Return what the exact solution conserves."""
    state = np.asarray(state, np.float64)
    return float(np.sum(state - np.log(state)))


def step(state, xp=jnp):
    """Advance by one step of the classical Runge-Kutta method."""
    k1 = slope(state, xp)
    k2 = slope(state + DT / 2 * k1, xp)
    k3 = slope(state + DT / 2 * k2, xp)
    k4 = slope(state + DT * k3, xp)
    return state + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def by_python(state, steps, step=step):
    """Advance by a loop in Python."""
    for _ in range(steps):
        state = step(state)
    return state


@jax.jit
def in_one_loop(state, steps):
    """Advance by a loop inside jit, for any number of steps."""
    return jax.lax.fori_loop(0, steps, lambda _, state: step(state), state)


def positive(text):
    """Return `text` as a positive whole number, for argparse."""
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a positive whole number. Give one below "
            "2**31, such as 100."
        )
    return int(text)


def main(arguments=None):
    """Compare the rungs, then run the last one for long."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--steps",
        type=positive,
        default=50,
        help="steps to compare (default: %(default)s)",
    )
    parser.add_argument(
        "--long",
        type=positive,
        default=200_000,
        help="steps after it (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    begin = jnp.array([2.0, 1.0])

    print(f"{options.steps} steps, four ways:", flush=True)
    rungs = {
        "NumPy": lambda state, steps: by_python(
            np.asarray(state), steps, partial(step, xp=np)
        ),
        "JAX, eager": by_python,
        "jitted step": partial(by_python, step=jax.jit(step)),
        "one compiled loop": in_one_loop,
    }
    try:
        result = compare(
            rungs, begin, options.steps, baseline="NumPy", budget=0.2
        )
    except ValueError as error:
        sys.exit(f"The check failed. {error}")
    print(result, end="\n\n")

    print(f"{options.long} steps in one compiled loop:", flush=True)
    start = time.perf_counter()
    end = in_one_loop(begin, options.long).block_until_ready()
    seconds = time.perf_counter() - start
    print(
        f"{1e3 * seconds:.0f} ms, {1e9 * seconds / options.long:.0f} ns per "
        f"step, at {end[0]:.3f} prey and {end[1]:.3f} predators"
    )
    drift = abs(conserved(end) / conserved(begin) - 1)
    if not drift < 1e-3:
        sys.exit(
            "The check failed: the conserved quantity moved by "
            f"{drift:.1e}, and may move by 1e-3."
        )
    print(
        "checked: the four agree, and the long run conserves what it must"
    )


if __name__ == "__main__":
    main()
