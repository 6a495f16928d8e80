"""Runs programs as a reader would, and says what they gave.

    python program_runner.py JOBS.json RESULTS.json

is started by `run`. It imports JAX once, starts no backend, and forks for each program: a fifth of a second
instead of half a second and more. A process that has started a backend must not fork: the children would hang.
Programs that JAX's import could spoil get an interpreter of their own. Nothing of Sphinx is imported here.
In forked processes the instruments of `jitguide` measure more briefly, and what one program compiled serves the
next, unless it would tell; an interpreter of its own changes nothing.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

if __name__ == "__main__":  # started by its path: its neighbours must not be found by programs
    sys.path[:] = [p for p in sys.path if p != str(Path(__file__).resolve().parent)]

# What happens before or at the import of JAX, reaches beyond the process, or is there only because jitguide imported it.
_FRESH = re.compile(
    r"environ|getenv|multiprocessing|distributed|sys\.path|importlib|atexit|jax\.extend|experimental\.shard_map"
)
# What children inherit, to save the time of importing it; a program that does not import it still has no name for it.
_INHERITED = ("jax", "jax.numpy", "numpy", "jitguide", "matplotlib.pyplot")
# What is read from a cache is not compiled, and these would say so.
_TELLS_OF_COMPILING = re.compile(
    r"watch|phases|assert_compiles|device_report|monitoring|log_compiles|explain_cache|compilation_cache|getrusage"
)
_SHARED = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
_BRIEF = "JITGUIDE_BUDGET_SCALE"
_NOT_GIVEN = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE", "MATPLOTLIBRC", "IPYTHONDIR")


@dataclass(frozen=True)
class Job:
    """One program to run.

    Attributes:
        name: What the result is to be called.
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
    """What a program gave.

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
    jobs = [asdict(job) for job in jobs]
    if not jobs:
        return {}
    with tempfile.TemporaryDirectory(prefix="jit-guide-programs-") as folder:
        asked, answered = Path(folder, "jobs.json"), Path(folder, "results.json")
        asked.write_text(json.dumps(jobs), "utf-8")
        command = [sys.executable, __file__, str(asked), str(answered), str(workers)]
        ran = subprocess.run(command, check=False, env=_environment(), capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(f"The programs could not be run:\n{ran.stderr}")
        return {name: Outcome(**found) for name, found in json.loads(answered.read_text("utf-8")).items()}


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in _NOT_GIVEN}
    return kept | {"MPLBACKEND": "agg", "JAX_PPRINT_USE_COLOR": "0", "PYTHONDONTWRITEBYTECODE": "1"}


# What follows runs in the process that `run` starts, and in its children. ------------------------------------


def _share_what_is_compiled(folder: str) -> Callable[[], None]:
    """Let this process keep compiled programs in a folder and use what others kept; return what undoes it."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    shared = {**_SHARED, "jax_compilation_cache_dir": folder}
    before = {option: getattr(jax.config, option) for option in shared}
    for option, value in shared.items():
        jax.config.update(option, value)

    def undo() -> None:
        for option, value in before.items():
            jax.config.update(option, value)
        compilation_cache.reset_cache()

    return undo


def _measure_briefly() -> None:
    """Let `compare` and its like spend a tenth of the time: what they measure is compared with nothing."""
    os.environ[_BRIEF] = "0.1"
    import jitguide

    for name in jitguide.__all__:  # jitguide imports them when they are first used
        getattr(jitguide, name)


def _serve(jobs: list[dict], workers: int, shared: str) -> dict[str, dict]:
    waiting, running, results, parent, front = deque(jobs), {}, {}, os.getppid(), 0
    while waiting or running:
        if os.getppid() != parent:  # a build that was stopped leaves nobody who waits for the results
            for pid in running:
                os.killpg(pid, signal.SIGKILL)
            sys.exit("nobody waits for these programs any more.")
        while waiting and len(running) < workers:
            # One works from the front, others from the back: neighbours compile the same, and do so only once.
            job = waiting.pop() if front in running else waiting.popleft()
            folder = tempfile.mkdtemp(prefix="jit-guide-program-")
            pid = _start(job, folder, shared)
            front = front if front in running else pid
            running[pid] = (job, folder, time.monotonic() + job["timeout"])
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in running:
            job, folder, _ = running.pop(pid)
            results[job["name"]] = _collect(folder, status)
        elif not pid:
            _stop_overdue(running)
            time.sleep(0.005)
    return results


def _start(job: dict, folder: str, shared: str) -> int:
    """Fork; the child runs the program and never returns."""
    Path(folder, "job.json").write_text(json.dumps(job), "utf-8")
    _refuse_to_fork_after_a_backend()
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    if job["fresh"]:
        os.environ.pop(_BRIEF, None)
        os.execv(sys.executable, [sys.executable, __file__, folder])  # noqa: S606 -- our own Python
    undo = _share_what_is_compiled(shared)
    _child(folder, undo if _TELLS_OF_COMPILING.search(job["text"]) else None)
    return 0


def _refuse_to_fork_after_a_backend() -> None:
    bridge = getattr(getattr(sys.modules.get("jax"), "_src", None), "xla_bridge", None)
    started = getattr(bridge, "backends_are_initialized", bool)()  # private: absent some day
    if started or threading.active_count() > 1:
        raise RuntimeError("a JAX backend or a thread was started before forking: children would hang.")


def _stop_overdue(running: dict) -> None:
    for pid, (_, _, deadline) in running.items():
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)


def _collect(folder: str, status: int) -> dict:
    place = Path(folder)
    found = place / "outcome.json"
    if found.exists():
        outcome = json.loads(found.read_text("utf-8"))
    else:
        told = (place / "stderr").read_text("utf-8", "replace") if (place / "stderr").exists() else ""
        code = os.waitstatus_to_exitcode(status)
        outcome = asdict(Outcome(error="Killed", message=f"the process ended with {code}: {told[-2000:]}"))
    shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _child(folder: str, before_block: Callable[[], None] | None = None) -> None:
    """Run one program with its own output files, working directory and `__main__`; write what it gave."""
    place = Path(folder)
    job = json.loads((place / "job.json").read_text("utf-8"))
    (place / "work").mkdir()
    os.chdir(place / "work")
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(place / name, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)  # C++ writes there too
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # every child would inherit the same random numbers
    start = time.perf_counter()
    outcome = _Program(job, place, before_block).run()
    outcome["seconds"] = round(time.perf_counter() - start, 3)
    (place / "partial.json").write_text(json.dumps(outcome), "utf-8")
    (place / "partial.json").rename(place / "outcome.json")
    os._exit(0)


def _main() -> None:
    if len(sys.argv) == 2:
        _child(sys.argv[1])
    asked, answered, workers = sys.argv[1:]
    jobs = json.loads(Path(asked).read_text("utf-8"))
    if any(not job["fresh"] for job in jobs):
        for module in _INHERITED:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        if "jitguide" in sys.modules:
            _measure_briefly()
        gc.freeze()  # a collection in a child would copy all of the parent's memory
    Path(answered).write_text(
        json.dumps(_serve(jobs, int(workers), str(Path(answered).parent / "compiled"))), "utf-8"
    )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from _ext.program_child import Program as _Program  # standard library only

    del sys.path[0]
    _main()
