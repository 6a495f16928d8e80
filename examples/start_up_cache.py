"""Start faster: keep executables on disk for the next process.

Run it with `python start_up_cache.py`. It starts itself twice, as two
processes that share one folder, and prints what the first call cost each of
them. Without `--folder` the folder is a temporary one; with it, the
executables are kept, and you can run it again. In your own program, copy
`use_cache`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
from jitguide import watch


def use_cache(folder):
    """Keep executables in this folder; call it before the first jit."""
    # An absolute path: the program may start in another folder.
    folder = Path(folder).expanduser().absolute()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # By default, JAX keeps what took a second or more to compile. Here, it
    # keeps all.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@watch
@jax.jit
def simulate(x):
    """Do something slow to compile: many different steps, unrolled."""
    for k in range(1, 32):
        x = (
            jnp.sin(x + k) + jnp.sort(x) * 0.5
            if k % 10 == 0
            else jnp.tanh(x * k) + 0.1 * jnp.cumsum(x)
        )
    return x.sum()


def work(folder):
    """Be one process: call the function once, and report as JSON."""
    use_cache(folder)
    x = jnp.linspace(0.0, 1.0, 1000)
    start = time.perf_counter()
    value = float(simulate(x))
    call = simulate.last
    report = {
        "seconds": time.perf_counter() - start,
        "outcome": call.outcome,
        "value": value,
    }
    print(
        json.dumps(
            report
            | {
                "compile": call.compile,
                "trace": call.trace,
                "lower": call.lower,
            }
        )
    )


def start_process(folder):
    """Run this file as a process of its own, and return its report."""
    command = [sys.executable, __file__, "--folder", str(folder), "--work"]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,  # its errors and JAX's warnings are shown
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        sys.exit("The check failed: the process ended with an error.")
    return json.loads(done.stdout.splitlines()[-1])


def compare_starts(folder):
    """Start two processes, print what they say, and check it."""
    was_empty = not any(folder.iterdir())
    reports = []
    print(
        f"{'process':8}  {'first call':>10}  {'trace, lower':>12}  "
        f"{'compile or read':>15}  outcome",
        flush=True,
    )
    for name in ("first", "second"):
        report = start_process(folder)
        python, xla = report["trace"] + report["lower"], report["compile"]
        print(
            f"{name:8} {report['seconds']:9.2f} s {python:11.2f} s "
            f"{xla:14.2f} s",
            "",
            report["outcome"],
            flush=True,
        )
        reports.append(report)
    first, second = reports
    if was_empty and first["outcome"] != "compiled":
        sys.exit(
            "The check failed: the first process had nothing to read, and "
            f"yet {first['outcome']}."
        )
    if second["outcome"] != "read from the persistent cache":
        sys.exit(
            f"The check failed: the second process {second['outcome']}. Is "
            "the folder writable?"
        )
    if first["value"] != second["value"]:
        sys.exit(
            f"The check failed: {first['value']} and then "
            f"{second['value']}."
        )
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(
        f"the folder holds {size / 1024:.0f} KiB in "
        f"{len(list(folder.iterdir()))} files"
    )
    print(
        "checked: the second process compiled nothing, and got the same "
        "result"
    )


def main(arguments=None):
    """Run two processes, or be one of them."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="where to keep executables (default: a temporary folder)",
    )
    parser.add_argument(
        "--work", action="store_true", help=argparse.SUPPRESS
    )
    options = parser.parse_args(arguments)
    if options.work:
        return work(options.folder)
    if options.folder is None:
        with tempfile.TemporaryDirectory() as folder:
            return compare_starts(Path(folder))
    folder = options.folder.expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(
            f"--folder is {str(folder)!r}: {error.strerror}. Name a "
            "folder; it may be a new one."
        )
    return compare_starts(folder)


if __name__ == "__main__":
    main()
