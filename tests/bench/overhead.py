"""What `watch` adds to a hit, `import jitguide` to `import jax`, and `compare` to the calls that it times."""

import statistics
import subprocess
import sys
from time import perf_counter

import jax
import jax.numpy as jnp
from _bench import arguments, exit_code, write

from jitguide import compare, watch

HIT_TARGET = 3e-6  # seconds: less than one call of a small jitted function
IMPORT_TARGET = 5e-3  # seconds: a hundredth of what `import jax` takes
LOOP_TARGET = 0.5e-6  # seconds: a tenth of the shortest call that the guide times
RUNS, QUICK = 41, 3
CALLS = 2000
STEPS = 450  # of a loop in Python, which take some 5 µs: `compare` then times blocks of about 20 calls

TIME_IMPORT = (
    "from time import perf_counter as t; a = t(); import jax; b = t(); import jitguide; print(b - a, t() - b)"
)


def added_to_a_hit(runs, *args):
    """Return the median seconds that `watch` adds per call, from alternating blocks of both."""
    plain = jax.jit(lambda *xs: xs[0] + 1)
    watched = watch(plain)
    jax.block_until_ready((plain(*args), watched(*args)))
    added = []
    for _ in range(runs):
        added.append(block(watched, args) - block(plain, args))
        watched.reset()
    return statistics.median(added)


def block(fn, args):
    """Return the seconds per call of a loop that waits for nothing."""
    start = perf_counter()
    for _ in range(CALLS):
        fn(*args)
    return (perf_counter() - start) / CALLS


def added_by_the_loop(runs):
    """Return the median seconds per call that `compare` reports beyond those of the function and its wait."""

    def spin():
        for _ in range(STEPS):
            pass
        return 0

    def bare():
        start = perf_counter()
        for _ in range(CALLS):
            jax.block_until_ready(spin())
        return (perf_counter() - start) / CALLS

    added = []
    for _ in range(max(runs // 2, 1)):
        before = bare()
        reported = compare({"spin": spin}, budget=0.05).timings[0].median
        added.append(reported - (before + bare()) / 2)
    return statistics.median(added)


def import_seconds(runs):
    """Return the median seconds of `import jax`, and of `import jitguide` after it, in new processes."""
    times = []
    for _ in range(1 + max(runs // 5, 1)):
        done = subprocess.run([sys.executable, "-c", TIME_IMPORT], capture_output=True, text=True, check=True)
        times.append([float(word) for word in done.stdout.split()])
    return [
        statistics.median(column) for column in zip(*times[1:], strict=True)
    ]  # the first fills file caches


def main():
    """Measure all three, and write the worst as a share of its target."""
    options = arguments(__doc__, RUNS, QUICK)
    runs = options.runs
    hits = {
        "one argument": added_to_a_hit(runs, jnp.ones(3)),
        "ten arguments": added_to_a_hit(runs, *[jnp.ones(3)] * 10),
        "a tree of 100 leaves": added_to_a_hit(runs, jnp.ones(3), {str(i): jnp.ones(3) for i in range(100)}),
    }
    jax_import, own_import = import_seconds(runs)
    loop = added_by_the_loop(runs)
    details = {
        "hit": {"seconds added": hits, "target": HIT_TARGET, "met": max(hits.values()) <= HIT_TARGET},
        "import": {
            "jax": jax_import,
            "jitguide after jax": own_import,
            "target": IMPORT_TARGET,
            "met": own_import <= IMPORT_TARGET,
        },
        "loop": {"seconds added": loop, "target": LOOP_TARGET, "met": loop <= LOOP_TARGET},
    }
    shares = {
        "hit": max(hits.values()) / HIT_TARGET, "import": own_import / IMPORT_TARGET, "loop": loop / LOOP_TARGET
    }  # fmt: skip
    print("of target: " + ", ".join(f"{name} {share:.0%}" for name, share in shares.items()))
    worst = max(shares.values())  # at most 1 means that all are met
    write("overhead", round(worst, 3), 1, "of target (worst of hit, import and loop)", details)
    return exit_code(options, times=worst <= 1)


if __name__ == "__main__":
    raise SystemExit(main())
