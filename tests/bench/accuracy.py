"""How far from 1 is the speedup of a function over itself, alone and with other work beside it?"""

import numpy as np
from _bench import arguments, beside, exit_code, write
from _pairs import FUNCTIONS, as_hyperfine, as_timeit, copies

from jitguide import compare

TARGET = 0.02
RUNS, QUICK = 20, 1  # of each function; of 20, the 95th percentile is about the second worst


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
    options = arguments(__doc__, RUNS, QUICK)
    details, cores = {"runs": options.runs, "functions": {}}, []
    for load in ("alone", "busy"):
        with beside(load):
            for name in list(FUNCTIONS)[: 2 if options.quick else None]:
                found, busy = misses(name, options.runs)
                worst = {way: round(float(np.quantile(values, 0.95)), 5) for way, values in found.items()}
                entry = {"95th percentile of |ratio - 1|": worst, "compare": found["compare"]}
                details["functions"][f"{name}, {load}"] = entry
                cores += [value for value in busy if value is not None]
                ways = ", ".join(f"{way} {value:.2%}" for way, value in worst.items())
                print(f"  {name}, {load}: {ways}", flush=True)
    details["busy_cores"] = float(np.median(cores)) if cores else None
    value = max(f["95th percentile of |ratio - 1|"]["compare"] for f in details["functions"].values())
    write("accuracy", value, TARGET, "95th percentile of |ratio - 1|, worst function", details)
    return exit_code(options, times=value <= TARGET)


if __name__ == "__main__":
    raise SystemExit(main())
