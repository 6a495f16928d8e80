"""Kernels that are forked from a process that has imported JAX, as jupyter_client starts and watches any kernel."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, cast

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

_NAME = "guide-forked"
_ZYGOTE = Path(__file__).with_name("zygote.py")


class Zygote:
    """The process that forks kernels, started when the first one is wanted; it ends with the build."""

    def __init__(self, environment: dict[str, str]):
        self._environment = environment | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
        self._lock = threading.Lock()
        self._process: subprocess.Popen | None = None
        self._closed = False

    def fork(self, command: list[str], folder: str) -> ForkedKernel:
        """Start a kernel with the arguments of its usual command."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the build has ended.")
            if self._process is None or self._process.poll() is not None:  # a page may have ended it
                self._start()
            reading, writing = os.pipe()
            request = {"argv": command[2:], "folder": folder}  # less `python -m`
            try:
                socket.send_fds(self._control, [json.dumps(request).encode()], [writing])
            finally:
                os.close(writing)
            return ForkedKernel(reading)

    def _start(self) -> None:
        self._control, theirs = socket.socketpair()
        command = [sys.executable, str(_ZYGOTE)]
        # A session of its own: Ctrl-C reaches the build only, which then closes the socket.
        self._process = subprocess.Popen(
            command, stdin=theirs.fileno(), env=self._environment, start_new_session=True
        )
        theirs.close()

    def close(self) -> None:
        """End the process and the kernels that it still has; no kernel starts afterwards."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._control.close()
                self._process.wait()


class ForkedKernel:
    """A process that is no child of this one, with what jupyter_client uses of `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, pipe: int):
        self._pipe = open(pipe, "rb", buffering=0)  # noqa: SIM115 -- closed when the process has ended
        self.returncode: int | None = None
        line = b""
        while not line.endswith(b"\n"):
            if not (piece := self._pipe.read(1)):
                raise RuntimeError("the process that forks kernels has ended; its message stands above.")
            line += piece
        self.pid = int(line)
        os.set_blocking(pipe, False)

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while the process runs."""
        if self.returncode is None and (line := self._pipe.read(16)) is not None:
            # No line: the process that forks was killed, and all with it.
            self.returncode = int(line or -signal.SIGKILL)
            self._pipe.close()
        return self.returncode

    wait = poll  # jupyter_client waits until `poll` has an answer

    def send_signal(self, number: int) -> None:
        """Send a signal to the process and those it started."""
        if self.poll() is None:
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """End the process at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)


class Provisioner(LocalProvisioner):
    """Start a kernel by forking."""

    def __init__(self, zygote: Zygote, **options: Any):
        super().__init__(**options)
        self._zygote = zygote

    async def launch_kernel(self, cmd: list[str], **options: Any) -> KernelConnectionInfo:
        """Launch the kernel and return its connection information."""
        self.cwd = options["cwd"]
        kernel = self._zygote.fork(cmd, str(self.cwd))
        self.process, self.pid, self.pgid = cast(subprocess.Popen, kernel), kernel.pid, kernel.pid
        return self.connection_info


def use(spec: KernelSpec, zygote: Zygote) -> None:
    """Have a kernel of this specification forked."""
    # jupyter_client looks for provisioners among entry points of installed packages; this one is not installed.
    home = EntryPoint(_NAME, f"{__name__}:Provisioner", KernelProvisionerFactory.GROUP_NAME)
    KernelProvisionerFactory.instance().provisioners[_NAME] = home
    spec.metadata["kernel_provisioner"] = {"provisioner_name": _NAME, "config": {"zygote": zygote}}
