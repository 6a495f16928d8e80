"""What `watch` adds to a hit, `import jitguide` to `import jax`, and clock and loop to a timed call."""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import jax
import jax.numpy as jnp

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from jitguide import watch  # noqa: E402 - the tree that this file belongs to
from jitguide._timing import engine  # noqa: E402 - the tree that this file belongs to

HIT_TARGET = 5e-6  # seconds: about one call of a small jitted function
IMPORT_TARGET = 30e-3  # seconds: a tenth of what `import jax` takes
LOOP_TARGET = 0.5e-6  # seconds: a tenth of the shortest call that the guide times
BLOCKS, CALLS, IMPORTS = 41, 2000, 9
SHORT_BLOCK = 20  # calls of 5 µs in a block: where the two readings of the clock weigh most

TIME_IMPORT = (
    "from time import perf_counter as t; a = t(); import jax; b = t(); import jitguide; print(b - a, t() - b)"
)


def added_to_a_hit(*args):
    """Return the median seconds that `watch` adds per call, from blocks of both in turn."""
    plain = jax.jit(lambda *xs: xs[0] + 1)
    watched = watch(plain)
    jax.block_until_ready((plain(*args), watched(*args)))
    added = []
    for _ in range(BLOCKS):
        added.append(block(watched, args) - block(plain, args))
        watched.reset()
    return statistics.median(added)


def block(fn, args):
    start = perf_counter()
    for _ in range(CALLS):
        fn(*args)
    return (perf_counter() - start) / CALLS


def added_by_the_loop():
    """Return the median seconds per call that a block reports beyond those of its function and its wait."""

    def nothing():
        return None

    def same(x):
        return x

    bench = engine.Bench([nothing], lambda: ((), {}), False, 1.0, 0, 0.0, perf_counter, same, int)
    bare = []
    for _ in range(BLOCKS):
        start = perf_counter()
        for _ in range(CALLS):
            same(nothing())
        bare.append((perf_counter() - start) / CALLS)
    blocks = [engine._block(bench, nothing, SHORT_BLOCK) for _ in range(BLOCKS * 10)]
    return max(statistics.median(blocks) - statistics.median(bare), 0.0)


def import_seconds():
    """Return the median seconds of `import jax`, and of `import jitguide` after it, in new processes."""
    runs = []
    for _ in range(IMPORTS):
        done = subprocess.run(
            [sys.executable, "-c", TIME_IMPORT], cwd=ROOT, capture_output=True, text=True, check=True
        )
        runs.append([float(word) for word in done.stdout.split()])
    return [
        statistics.median(column) for column in zip(*runs[1:], strict=True)
    ]  # the first fills file caches


def write_result(name, value, target, unit, details):
    try:
        from _bench import write
    except ImportError:
        folder = ROOT / "build" / "bench"
        folder.mkdir(parents=True, exist_ok=True)
        result = {"value": value, "target": target, "unit": unit, "details": details}
        (folder / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        print(json.dumps(result, indent=2))
    else:
        write(name, value, target, unit, details)


def main():
    hits = {
        "one argument": added_to_a_hit(jnp.ones(3)),
        "ten arguments": added_to_a_hit(*[jnp.ones(3)] * 10),
        "a tree of 100 leaves": added_to_a_hit(jnp.ones(3), {str(i): jnp.ones(3) for i in range(100)}),
    }
    jax_import, own_import = import_seconds()
    loop = added_by_the_loop()
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
    # The worst of the three, as a fraction of its target: at most 1 means that all are met.
    worst = max(max(hits.values()) / HIT_TARGET, own_import / IMPORT_TARGET, loop / LOOP_TARGET)
    write_result("overhead", round(worst, 3), 1, "of target (worst of hit, import and loop)", details)
    return 0 if worst <= 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
