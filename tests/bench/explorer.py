"""What `stages` adds: seconds beyond JAX's own lowering and compiling, and the size of its HTML.

The function has 100 operations on 50 lines, new for each measurement, so that nothing is cached. The two
sides alternate, and the value is the difference of their fastest runs: what else the machine does only adds.
"""

import linecache
import statistics
import time

import jax
import numpy as np
from _bench import arguments, exit_code, write

from jitguide import stages

OPERATIONS = 100
TARGET_SECONDS = 0.1
TARGET_KIB = 60
RUNS, QUICK = 9, 1


def fresh(number: int):
    """Return a function of 100 operations that JAX has not seen."""
    steps = ["sin(x)", "tanh(x)", "cos(x)", "log1p(x)"]
    lines = [f"    x = jnp.{steps[i % len(steps)]} + {i + 1}.5" for i in range(OPERATIONS // 2)]
    code = "\n".join(["def f(x):", *lines, "    return x", ""])
    file = f"<explorer-{number}>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    space = {"jnp": jax.numpy}
    exec(compile(code, file, "exec"), space)
    return space["f"]


def jax_alone(fn, x) -> float:
    """Return the seconds that JAX takes to trace, lower, compile and print."""
    start = time.perf_counter()
    lowered = jax.jit(fn).trace(x).lower()
    compiled = lowered.compile()
    lowered.as_text()
    compiled.as_text()
    return time.perf_counter() - start


def with_stages(fn, x) -> float:
    """Return the seconds that `stages` takes."""
    start = time.perf_counter()
    stages(fn, x)
    return time.perf_counter() - start


def main() -> int:
    """Measure, and write both results."""
    options = arguments(__doc__, RUNS, QUICK)
    x = np.linspace(0.1, 1.0, 64, dtype=np.float32)
    stages(fresh(-1), x)
    pairs = [(jax_alone(fresh(2 * i), x), with_stages(fresh(2 * i + 1), x)) for i in range(options.runs)]
    extra = min(b for _, b in pairs) - min(a for a, _ in pairs)
    found = stages(fresh(2 * options.runs), x)
    kib = len(found._repr_html_().encode()) / 1024
    details = {
        "jax_seconds": sorted(a for a, _ in pairs),
        "stages_seconds": sorted(b for _, b in pairs),
        "median_difference_seconds": statistics.median(b - a for a, b in pairs),
        "equations": len(found.equations),
        "html_kib": kib,
        "html_target_kib": TARGET_KIB,
        "html_within_target": kib <= TARGET_KIB,
    }
    write("explorer", extra, TARGET_SECONDS, "s", details)
    print(f"the HTML has {kib:.1f} KiB (target {TARGET_KIB})")
    return exit_code(options, counts=kib <= TARGET_KIB, times=extra <= TARGET_SECONDS)


if __name__ == "__main__":
    raise SystemExit(main())
