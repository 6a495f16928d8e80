"""How often is the interval right, and the verdict, alone and with other work beside it?"""

from collections import Counter

import jax
import jax.numpy as jnp
from _bench import arguments, beside, exit_code, write
from _pairs import FUNCTIONS, copies

from jitguide import compare

COVERED, FALSE_WINNERS, FOUND = 0.93, 0.02, 0.70
RUNS, QUICK = 20, 1
CALLS = 20  # of one compiled function, so that 21 or 40 take exactly 1.05 or 2 times as long
KNOWN = (1.05, 2)


@jax.jit
def one_call(x):
    return jax.lax.fori_loop(0, 10_000, lambda _, y: y * 0.999 + 0.001, x)  # some 50 µs


def calls(count):
    def run(x):
        for _ in range(count):
            x = jax.block_until_ready(one_call(x))
        return x

    return run


def equal_functions(runs, load):
    """Return how often the interval of equal functions holds 1 and how often a winner is named, by function."""
    shares = {}
    for name in FUNCTIONS:
        hits = winners = 0
        for run in range(runs):
            (a, b), args = copies(name, 2)
            result = compare({"a": a, "b": b}, *args, seed=run)
            ratio = result.speedup("b")
            hits += ratio.low <= 1 <= ratio.high
            winners += result.verdict("b") in ("faster", "slower")
        shares[f"{name}, {load}"] = {"holds 1": hits / runs, "false winners": winners / runs}
        print(f"  {name}, {load}: holds 1 {hits / runs:.0%}, false winners {winners / runs:.0%}", flush=True)
    return shares


def known_ratio(times, runs):
    """Return the verdicts on a function that does `times` as much, and how often the interval holds that."""
    found = Counter()
    for run in range(runs):
        variants = {"less": calls(CALLS), "more": calls(round(CALLS * times))}
        result = compare(variants, jnp.float32(0), check=None, baseline="more", seed=run)
        ratio = result.speedup("less")
        found.update(
            [result.verdict("less"), *(["in the interval"] if ratio.low <= times <= ratio.high else [])]
        )
    print(f"  {times} times as much: {dict(found)}", flush=True)
    return found


def main():
    options = arguments(__doc__, RUNS, QUICK)
    runs, equal, known = options.runs, {}, {}
    for load in ("alone", "busy"):
        with beside(load):
            equal |= equal_functions(runs, load)
            known |= {f"{times} times, {load}": known_ratio(times, runs) for times in KNOWN}
    value = sum(share["holds 1"] for share in equal.values()) / len(equal)
    winners = sum(share["false winners"] for share in equal.values()) / len(equal)
    details = {
        "runs": runs,
        "equal functions": equal,
        "known ratios": known,
        "false winners": winners,
        "targets": {"false winners": FALSE_WINNERS, "found alone": FOUND, "wrong way": 0},
    }
    write("coverage", round(value, 4), COVERED, "share of intervals of equal functions that hold 1", details)
    found = all(known[f"{times} times, alone"]["faster"] >= FOUND * runs for times in KNOWN)
    right = found and not any(counts["slower"] for counts in known.values())
    return exit_code(options, times=value >= COVERED and winners <= FALSE_WINNERS and right)


if __name__ == "__main__":
    raise SystemExit(main())
