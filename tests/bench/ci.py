"""How long everything takes that must pass before a change lands: `.ci/run` in a clean clone, step by step.

With `--quick` it runs nothing, and reports the last run of `nox -s ci` in this folder, if there was one.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from _bench import arguments, exit_code, write

ROOT = Path(__file__).parents[2]
TARGET = 1200  # seconds on two cores


def seconds_of(folder):
    """Return the seconds of each step of the last run in a folder; nothing where there was none."""
    record = folder / "build" / "ci.json"
    return json.loads(record.read_text("utf-8")) if record.exists() else {}


def main():
    """Run CI in a clean clone, or report the last run; write the seconds of its steps."""
    options = arguments(__doc__, 1, 0)
    steps = seconds_of(ROOT)
    if options.runs:
        with tempfile.TemporaryDirectory() as folder:
            clone = Path(folder, "clone")
            subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
            subprocess.run([clone / ".ci" / "run"], check=True)
            steps = seconds_of(clone)
    if not steps:
        print("ci: no run of `nox -s ci` is recorded in this folder")
        return 0
    total = sum(steps.values())
    write("ci", total, TARGET, "s", {"steps": steps})
    return exit_code(options, times=total <= TARGET)


if __name__ == "__main__":
    sys.exit(main())
