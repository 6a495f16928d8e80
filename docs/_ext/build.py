"""Facts about the build that several extensions need: its JAX, its devices, its builder."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

JAX = version("jax")
_MOST_WORKERS = 8  # each may need some 500 MB, and on a GPU as much of its memory
PARALLEL_SAFE: ExtensionMetadata = {"parallel_read_safe": True, "parallel_write_safe": True}
_PROGRAM = """
import json, jax, jitguide  # which says in one line when JAX is too old
print(json.dumps([[[d.platform, d.device_kind] for d in jax.devices()], sorted(jax.config.values)]))
"""


@cache
def start_jax() -> subprocess.Popen[str]:
    """Start a process that says what JAX finds here, and do not wait for it.

    Sphinx forks to read pages in parallel, and a process that has started a JAX backend must not fork.
    """
    command = [sys.executable, "-c", _PROGRAM]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@cache
def _answer() -> list:
    process = start_jax()
    said, errors = process.communicate()
    if process.returncode:
        reason = (errors.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(
            f"JAX does not start in {platform.python_implementation()} {platform.python_version()}: {reason}"
        )
    return json.loads(said)


def devices() -> list[tuple[str, str]]:
    """Return platform and kind of each device.

    Raises:
        RuntimeError: JAX cannot start on this machine; the message quotes its last line.
    """
    return [(name, kind) for name, kind in _answer()[0]]


def options() -> list[str]:
    """Return the names of the options of the installed JAX."""
    return _answer()[1]


def workers() -> int:
    """Return how many pages or programs run at a time: one per core, and one where a process keeps the device for itself."""
    shared = all(name in ("cpu", "gpu") for name, _ in devices())
    return min(_MOST_WORKERS, os.cpu_count() or 1) if shared else 1


def share_gpu() -> None:
    """Let processes that this one starts share a GPU: by default, the first takes most of its memory."""
    if any(name == "gpu" for name, _ in devices()):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def processor() -> str:
    """Return the model of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor())


@contextmanager
def making(app: Sphinx, name: str, *facts: object) -> Iterator[bool]:
    """Say whether something has to be made of these facts, because the last build of this kind made it of others.

    The facts are remembered at the end of the block, unless it fails.
    """
    file = Path(app.doctreedir, f"{app.builder.name}-{name}.sha256")
    digest = hashlib.sha256(repr((app.outdir, facts)).encode()).hexdigest()
    yield not file.exists() or file.read_text("utf-8") != digest
    file.write_text(digest, "utf-8")


def is_site(app: Sphinx) -> bool:
    """Return whether this build writes the site, with its downloads and its scripts."""
    return app.builder.name in ("html", "dirhtml")
