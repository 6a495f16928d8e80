"""Seconds that `nox -s docs` takes when nothing, a sentence, or one cell of a page has changed.

The site must have been built. Each edit is undone at the end, and one more build puts the site back. A cell that is
edited runs with its page: the seconds of that page's cells are part of the third number, and given beside it.
"""

import contextlib
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from _bench import ENVIRONMENT, arguments, exit_code, write

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "docs" / "_build" / "html"
PAGE = "learn/one-compile-many-calls"
SOURCE = ROOT / "docs" / f"{PAGE}.md"
TARGETS = {"nothing": 3.0, "prose": 4.0, "cell": 4.0}
RUNS, QUICK = 5, 1


def build():
    """Build the site as a user would; return the seconds."""
    start = time.perf_counter()
    command = [ENVIRONMENT.get("NOX_PYTHON", sys.executable), "-m", "nox", "-s", "docs"]
    ran = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"The build failed:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return time.perf_counter() - start


@contextlib.contextmanager
def kept(path):
    """Put a file back as it was."""
    text = path.read_text("utf-8")
    try:
        yield text
    finally:
        path.write_text(text, "utf-8")


def cells():
    """Return the seconds that the cells of the page took when they last ran."""
    rows = json.loads((BUILT / "status.json").read_text("utf-8"))["pages"]
    return next(row["seconds"] for row in rows if row["page"] == PAGE)


def main():
    """Measure, and write the result."""
    options = arguments(__doc__, RUNS, QUICK)
    build()
    found = {"nothing": [build() for _ in range(options.runs)], "prose": [], "cell": []}
    ran = []
    with kept(SOURCE) as text:
        for number in range(options.runs):
            SOURCE.write_text(f"{text}\nSentence {number}.\n", "utf-8")
            found["prose"].append(build())
        for number in range(options.runs):
            fence = "```{code-cell}\n"
            SOURCE.write_text(f"{text}\n{fence}print({number})\n```\n", "utf-8")
            found["cell"].append(build())
            ran.append(cells())
    build()
    medians = {name: statistics.median(seconds) for name, seconds in found.items()}
    medians["cell"] -= statistics.median(ran)
    for name, seconds in medians.items():
        print(f"{name}: {seconds:.1f} s (target {TARGETS[name]:g})")
    write(
        "rebuild",
        medians["nothing"],
        TARGETS["nothing"],
        "s",
        {"seconds": found, "cells": ran, "medians": medians},
    )
    return exit_code(options, times=all(medians[name] <= target for name, target in TARGETS.items()))


if __name__ == "__main__":
    raise SystemExit(main())
