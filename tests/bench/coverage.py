"""How often is the interval right, and the verdict?"""

import jax
import jax.numpy as jnp
from _bench import arguments, exit_code, write
from _pairs import FUNCTIONS, copies

from jitguide import compare

COVERED, FOUND = 0.95, 0.70
RUNS, QUICK = 20, 1
STEPS = 20_000  # some 0.2 ms, so that what a call costs besides its steps does not blur the known difference
LONGER = 1.05


@jax.jit
def steps(x, count):
    return jax.lax.fori_loop(0, count, lambda _, y: y * 0.999 + 0.001, x)


def share_covered(runs):
    """Return the share of comparisons of equal functions whose interval holds 1, by function."""
    shares = {}
    for name in FUNCTIONS:
        hits = 0
        for run in range(runs):
            (a, b), args = copies(name, 2)
            ratio = compare({"a": a, "b": b}, *args, seed=run).speedup("b")
            hits += ratio.low <= 1 <= ratio.high
        shares[name] = hits / runs
        print(f"  {name}: {shares[name]:.0%}", flush=True)
    return shares


def verdicts_on_a_known_difference(runs):
    """Return how often a function that does 5 % more is called what."""
    x, short, long = jnp.float32(0), jnp.int32(STEPS), jnp.int32(round(STEPS * LONGER))
    counts = dict.fromkeys(("slower", "cannot tell", "same", "faster"), 0)
    for run in range(runs):
        variants = {"less": lambda: steps(x, short), "more": lambda: steps(x, long)}
        counts[compare(variants, check=lambda a, b: True, seed=run).verdict("more")] += 1
    print(f"  5 % more: {counts}", flush=True)
    return counts


def main():
    options = arguments(__doc__, RUNS, QUICK)
    runs = options.runs
    shares = share_covered(runs)
    verdicts = verdicts_on_a_known_difference(runs)
    value = sum(shares.values()) / len(shares)
    details = {
        "runs": runs,
        "covered": shares,
        "verdicts on 5 % more work": verdicts,
        "targets": {"found": FOUND, "wrong way": 0},
    }
    write("coverage", round(value, 4), COVERED, "share of intervals of equal functions that hold 1", details)
    met = value >= COVERED and verdicts["slower"] >= FOUND * runs and not verdicts["faster"]
    return exit_code(options, times=met)


if __name__ == "__main__":
    raise SystemExit(main())
