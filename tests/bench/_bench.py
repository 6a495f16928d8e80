"""What the benchmarks share: their arguments, and where their results go."""

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = dict(os.environ)  # JAX sets variables when it is imported, and a page's outputs depend on them

import jax  # noqa: E402

FOLDER = Path(__file__).parents[2] / "build" / "bench"


# What another page of the guide may do meanwhile: it compiles and runs.
_OTHER_PAGE = """
import os
import jax, jax.numpy as jnp
parent = os.getppid()
while os.getppid() == parent:  # a benchmark that is killed leaves no load behind
    step = jax.jit(lambda x: jnp.sin(x) @ x)
    for _ in range(100):
        step(jnp.ones((200, 200))).block_until_ready()
"""


@contextlib.contextmanager
def beside(load):
    """Keep about one core busy in another process meanwhile if `load` is "busy"."""
    if load != "busy":
        yield
        return
    with subprocess.Popen([sys.executable, "-c", _OTHER_PAGE]) as other:
        try:
            yield
        finally:
            other.kill()


def arguments(description, runs, quick_runs):
    """Return the options of a benchmark: how many `runs`, and whether it is `quick`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="one short pass, whose times fail nothing")
    parser.add_argument("--runs", type=int, help=f"{runs}, or {quick_runs} with --quick, if left out")
    options = parser.parse_args()
    options.runs = options.runs or (quick_runs if options.quick else runs)
    return options


def write(name, value, target, unit, details):
    """Write build/bench/NAME.json and print one line."""
    machine = {
        "jax": jax.__version__,
        "python": platform.python_version(),
        "device": jax.devices()[0].device_kind,
    }
    result = {"value": value, "target": target, "unit": unit, "details": {**details, "machine": machine}}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"{name}: {value:.4g} {unit} (target {target:g})")


def exit_code(options, *, counts=True, times=True):
    """Return 1 where a target was missed; one of time only in a full run, because a short one proves nothing."""
    if not times:
        print("a target of time was missed" + (", which a quick run reports only" if options.quick else ""))
    if not counts:
        print("a target that is counted was missed")
    return 0 if counts and (times or options.quick) else 1
