"""Run programs as a user would, and report their outcomes.

The programs run in processes that `server.py` forks. Nothing of Sphinx is imported here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

_SERVER = Path(__file__).with_name("server.py")
# What happens before or at the import of JAX, reaches beyond the process, or is there only because jitguide imported it.
_FRESH = re.compile(
    r"environ|getenv|multiprocessing|distributed|sys\.path|importlib|atexit|jax\.extend|experimental\.shard_map"
)
_NOT_GIVEN = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE", "MATPLOTLIBRC", "IPYTHONDIR")


@dataclass(frozen=True)
class Job:
    """One program to run.

    Attributes:
        name: Name of the result.
        text: The program.
        block: Line, counted from 1, with which the part begins whose outcome is wanted.
        shown: Whether its last statement prints a value that the page shows.
        fresh: Whether it needs an interpreter of its own.
        timeout: Seconds after which it is stopped.
    """

    name: str
    text: str
    block: int = 1
    shown: bool = False
    fresh: bool = False
    timeout: float = 600.0


@dataclass(frozen=True)
class Outcome:
    """The outcome of a program.

    Attributes:
        stdout: What its block printed, less the value that the page shows.
        stderr: What its block wrote to stderr.
        error: Class of the error that ended it.
        message: The error's text.
        early: Whether the error came before the block.
        plain: The shown value as text.
        html: The shown value as HTML, where it has such a form.
        seconds: How long it ran.
    """

    stdout: str = ""
    stderr: str = ""
    error: str | None = None
    message: str = ""
    early: bool = False
    plain: str | None = None
    html: str | None = None
    seconds: float = 0.0


def needs_fresh(text: str) -> bool:
    r"""Return whether a program must not run in a process that has imported JAX already.

    Example:
        >>> needs_fresh("import os\nos.environ['XLA_FLAGS'] = ''"), needs_fresh("import jax")
        (True, False)
    """
    return bool(_FRESH.search(text))


def run(jobs: Iterable[Job], workers: int = 2) -> dict[str, Outcome]:
    r"""Run programs, `workers` at a time, and return the outcome of each by its name.

    Example:
        >>> run([Job("one", "print(1 + 1)")])["one"].stdout
        '2\n'
    """
    given = [asdict(job) for job in jobs]
    if not given:
        return {}
    with tempfile.TemporaryDirectory(prefix="jit-guide-programs-") as folder:
        asked, answered = Path(folder, "jobs.json"), Path(folder, "results.json")
        asked.write_text(json.dumps(given), "utf-8")
        command = [sys.executable, str(_SERVER), str(asked), str(answered), str(workers)]
        ran = subprocess.run(command, check=False, env=_environment(), capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(f"The programs could not be run:\n{ran.stderr}")
        return {name: Outcome(**found) for name, found in json.loads(answered.read_text("utf-8")).items()}


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in _NOT_GIVEN}
    return kept | {"MPLBACKEND": "agg", "JAX_PPRINT_USE_COLOR": "0", "PYTHONDONTWRITEBYTECODE": "1"}
