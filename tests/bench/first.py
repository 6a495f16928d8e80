"""Seconds of README's command, `pip install nox && nox -s docs`, in a clean clone with packages in the caches.

The caches are those of pip and uv on this machine, as they are: run it once before if they are empty. `--quick`
runs and builds one page.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _bench import arguments, exit_code, write

ROOT = Path(__file__).parents[2]
TARGET = 180
QUICK_PAGE = "learn/shapes"


def run(*command, folder):
    """Run a command as a new user would: with nothing of this environment."""
    hidden = ("VIRTUAL_ENV", "NOX_", "PYTHONPATH", "JITGUIDE_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    ran = subprocess.run(
        list(map(str, command)), cwd=folder, check=False, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if ran.returncode:
        raise SystemExit(f"{command} failed:\n{ran.stdout[-3000:]}")


def main() -> int:
    """Clone, build, and write what it took."""
    options = arguments(__doc__, 1, 1)
    with tempfile.TemporaryDirectory(prefix="jit-guide-first-") as name:
        folder = Path(name)
        run("git", "clone", "-q", ROOT, "clone", folder=folder)
        run(sys.executable, "-m", "venv", folder / "user", folder=folder)
        python, clone = folder / "user" / "bin" / "python", folder / "clone"
        start = time.perf_counter()
        run(python, "-m", "pip", "install", "-q", "nox", folder=clone)
        installed = time.perf_counter()
        run(python, "-m", "nox", "-s", "env", folder=clone)
        ready = time.perf_counter()
        page = ["--", QUICK_PAGE] if options.quick else []
        run(python, "-m", "nox", "-s", "docs", *page, folder=clone)
        end = time.perf_counter()
        shown = clone / "docs" / "_build" / "html" / f"{QUICK_PAGE if options.quick else 'index'}.html"
        if not shown.exists():
            raise SystemExit(f"{shown} was not built")
    details = {
        "nox_seconds": installed - start,
        "env_seconds": ready - installed,
        "docs_seconds": end - ready,
    }
    write("first", end - start, TARGET, "s", details)
    return exit_code(options, times=end - start <= TARGET)


if __name__ == "__main__":
    raise SystemExit(main())
