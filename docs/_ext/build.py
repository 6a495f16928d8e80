"""Facts about the build that several extensions need: its JAX, its devices, its builder."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

JAX = version("jax")
PARALLEL_SAFE: ExtensionMetadata = {"parallel_read_safe": True, "parallel_write_safe": True}
_DEVICE_PROGRAM = "import jax, json; print(json.dumps([[d.platform, d.device_kind] for d in jax.devices()]))"


@cache
def devices() -> list[tuple[str, str]]:
    """Return platform and kind of each device, asked in a separate process.

    Sphinx forks to read pages in parallel, and a process that has started a JAX backend must not fork.

    Raises:
        RuntimeError: JAX cannot start on this machine; the message quotes its last line.
    """
    run = subprocess.run([sys.executable, "-c", _DEVICE_PROGRAM], capture_output=True, text=True, check=False)
    if run.returncode:
        reason = (run.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(
            f"JAX does not start in {platform.python_implementation()} {platform.python_version()}: {reason}"
        )
    return [(name, kind) for name, kind in json.loads(run.stdout)]


def workers() -> int:
    """Return how many pages or programs run at a time: on an accelerator they would compete for its memory."""
    on_cpu = all(name == "cpu" for name, _ in devices())
    return min(2, os.cpu_count() or 1) if on_cpu else 1


def processor() -> str:
    """Return the model of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor())


def is_site(app: Sphinx) -> bool:
    """Return whether this build writes the site, with its downloads and its scripts."""
    return app.builder.name in ("html", "dirhtml")
