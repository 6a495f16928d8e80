"""Run programs in forked processes: `python server.py JOBS.json RESULTS.json WORKERS`, as `runner.run` starts it.

It imports JAX once, starts no backend, and forks for each program: a fifth of a second instead of half a second
and more. A process that has started a backend must not fork: the children would hang. In forked processes the
instruments of `jitguide` measure more briefly, and what one program compiled serves the next, unless the program
would report it; a process of its own changes nothing. Standard library only, before JAX is imported.
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
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

# What children inherit, to save the time of importing it; a program that does not import it still has no name for it.
_INHERITED = ("jax", "jax.numpy", "numpy", "jitguide", "matplotlib.pyplot")
# What is read from a cache is not compiled, and these would say so.
_REPORTS_COMPILING = re.compile(
    r"watch|phases|assert_compiles|device_report|monitoring|log_compiles|explain_cache|compilation_cache|getrusage"
)
_SHARED = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
# What a program measures is compared with nothing, so a tenth of the time will do.
_BRIEFLY = {"JITGUIDE_BUDGET_SCALE": "0.1"}


def _share_compiled(folder: str) -> Callable[[], None]:
    """Let this process store compiled functions in a folder and use stored ones; return the function that undoes it."""
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


def _serve(jobs: list[dict[str, Any]], workers: int, shared: str) -> dict[str, dict]:
    waiting, results, parent, front = deque(jobs), {}, os.getppid(), 0
    running: dict[int, tuple[dict[str, Any], str, float]] = {}
    while waiting or running:
        if os.getppid() != parent:  # a build that was stopped leaves no process that waits for the results
            for pid in running:
                os.killpg(pid, signal.SIGKILL)
            sys.exit("The build that started these programs has ended.")
        while waiting and len(running) < workers:
            # One works from the front, others from the back: neighbors compile the same, and do so only once.
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
            for pid, (_, _, deadline) in running.items():
                if time.monotonic() > deadline:
                    os.killpg(pid, signal.SIGKILL)
            time.sleep(0.005)
    return results


def _start(job: dict[str, Any], folder: str, shared: str) -> int:
    """Fork; the child runs the program and never returns."""
    Path(folder, "job.json").write_text(json.dumps(job), "utf-8")
    _refuse_to_fork_after_a_backend()
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    if job["fresh"]:
        os.execv(sys.executable, [sys.executable, __file__, folder])  # noqa: S606 -- our own Python
    os.environ.update(_BRIEFLY)
    undo = _share_compiled(shared)
    _run(folder, undo if _REPORTS_COMPILING.search(job["text"]) else None)
    return 0


def _refuse_to_fork_after_a_backend() -> None:
    bridge = getattr(getattr(sys.modules.get("jax"), "_src", None), "xla_bridge", None)
    started = getattr(bridge, "backends_are_initialized", bool)()  # private: absent some day
    if started or threading.active_count() > 1:
        raise RuntimeError("a JAX backend or a thread was started before forking: children would hang.")


def _collect(folder: str, status: int) -> dict:
    place = Path(folder)
    found = place / "outcome.json"
    if found.exists():
        outcome = json.loads(found.read_text("utf-8"))
    else:
        stderr = (place / "stderr").read_text("utf-8", "replace") if (place / "stderr").exists() else ""
        code = os.waitstatus_to_exitcode(status)
        outcome = {"error": "Killed", "message": f"the process ended with {code}: {stderr[-2000:]}"}
    shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _run(folder: str, before_block: Callable[[], None] | None = None) -> None:
    """Run one program with its own output files, working directory and `__main__`; write its outcome."""
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
        _run(sys.argv[1])
    asked, answered, workers = sys.argv[1:]
    jobs = json.loads(Path(asked).read_text("utf-8"))
    if any(not job["fresh"] for job in jobs):
        for module in _INHERITED:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        if jitguide := sys.modules.get("jitguide"):
            for name in jitguide.__all__:  # jitguide imports its parts when they are first used
                getattr(jitguide, name)
        gc.freeze()  # a collection in a child would copy all of the parent's memory
    results = _serve(jobs, int(workers), str(Path(answered).parent / "compiled"))
    Path(answered).write_text(json.dumps(results), "utf-8")


if __name__ == "__main__":
    # Python puts the folder of this file first on the path, where a program would find the modules in it.
    _here = str(Path(__file__).resolve().parent)
    sys.path[:] = [_here, *(place for place in sys.path if place != _here)]
    _Program = importlib.import_module("child").Program
    del sys.path[0], sys.modules["child"]
    _main()
