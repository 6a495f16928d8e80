"""Fork kernels for pages: `python zygote.py`, started and asked by `forked.py` over its standard input.

It imports once what the pages import, starts no backend, and forks a kernel for each request: a tenth of a second
instead of two. Every kernel begins with the same fresh interpreter, and nothing it does comes back.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
from pathlib import Path

# What kernels import; a page that does not import it still has no name for it. Not the inline backend of matplotlib:
# at its import it looks for the kernel to draw for.
_INHERITED = (
    "ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell",
    "matplotlib.pyplot", "numpy", "jax", "jax.numpy", "jitguide", "myst_nb",
)  # fmt: skip


def _import_all() -> None:
    for module in _INHERITED:
        importlib.import_module(module)
    for name in sys.modules["jitguide"].__all__:  # jitguide imports its parts when they are first used
        getattr(sys.modules["jitguide"], name)
    if threading.active_count() > 1 or sys.modules["jax"]._src.xla_bridge.backends_are_initialized():
        raise RuntimeError("an import started a JAX backend or a thread: forked kernels would hang.")
    gc.freeze()  # a collection in a child would copy all of the parent's memory


def _serve(control: socket.socket) -> None:
    """Fork for each request; write the process id, and later the exit status, to the pipe that came with it."""
    running: dict[int, int] = {}
    while True:
        while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            os.write(running[pid], f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os.close(running.pop(pid))
        if not select.select([control], [], [], 0.02 if running else None)[0]:
            continue
        request, pipes, *_ = socket.recv_fds(control, 65536, 1)
        if not request:  # the build has ended, however it did
            break
        if pid := os.fork():
            running[pid] = pipes[0]
        else:
            for other in (control.fileno(), *running.values()):
                os.close(other)
            _become_kernel(json.loads(request), pipes[0])
    for pid in running:
        os.killpg(pid, signal.SIGKILL)


def _become_kernel(request: dict, pipe: int) -> None:
    os.setsid()  # a kernel is interrupted and killed with all the processes it starts
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(request["folder"])
    os.write(pipe, f"{os.getpid()}\n".encode())
    os.close(pipe)
    # Where memory runs out, Linux ends the page that took it and not the build.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    sys.modules["numpy"].random.seed()  # every kernel would inherit the same random numbers
    sys.argv = request["argv"]
    kernel = sys.modules["ipykernel.kernelapp"].IPKernelApp
    kernel.launch_instance(sys.argv[1:], parent_handle=os.getppid())
    os._exit(0)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file, where a page would find the modules beside it
    _import_all()
    _serve(socket.socket(fileno=0))
