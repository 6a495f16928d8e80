"""How far from 1 is the speed-up of a function over itself? `python tests/bench/accuracy.py [RUNS]`."""

import sys

import numpy as np
from _bench import write
from _pairs import FUNCTIONS, as_hyperfine, as_timeit, copies

from jitguide import compare

TARGET = 0.02
RUNS = 20  # of each function; the 95th percentile is then about the second worst


def misses(name, runs):
    """Return |ratio − 1| of two equal functions, timed in three ways, once each run."""
    found = {"compare": [], "%timeit": [], "hyperfine": []}
    busy = []
    for run in range(runs):
        (a, b), args = copies(name, 2)
        result = compare({"a": a, "b": b}, *args, seed=run)
        busy.append(result.busy_cores)
        found["compare"].append(abs(result.speedup("b").value - 1))
        found["%timeit"].append(abs(as_timeit(a, args) / as_timeit(b, args) - 1))
        found["hyperfine"].append(abs(as_hyperfine(a, args) / as_hyperfine(b, args) - 1))
    return found, busy


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    details, cores = {"runs": runs, "functions": {}}, []
    for name in FUNCTIONS:
        found, busy = misses(name, runs)
        worst = {way: round(float(np.quantile(values, 0.95)), 5) for way, values in found.items()}
        details["functions"][name] = {"95th percentile of |ratio - 1|": worst, "compare": found["compare"]}
        cores += [value for value in busy if value is not None]
        print(f"  {name}: " + ", ".join(f"{way} {value:.2%}" for way, value in worst.items()), flush=True)
    details["busy_cores"] = float(np.median(cores)) if cores else None
    value = max(f["95th percentile of |ratio - 1|"]["compare"] for f in details["functions"].values())
    write("accuracy", value, TARGET, "95th percentile of |ratio - 1|, worst function", details)
    return 0 if value <= TARGET else 1


if __name__ == "__main__":
    raise SystemExit(main())
