"""A digest of everything outside a page that can change what its cells give."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_EXTENSIONS = Path(__file__).resolve().parent

# Sources that cells run or that shape their outputs.
_SOURCES = (
    _ROOT / "jitguide",
    _ROOT / "examples",
    _ROOT / "docs" / "_ipython",
    _EXTENSIONS / "kernels.py",
    _EXTENSIONS / "cleaning.py",
    _EXTENSIONS / "pages.py",
)
_VARIABLES = (
    "JAX_",
    "XLA_",
    "LIBTPU",
    "CUDA_",
    "NVIDIA_",
    "TF_",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "PYTHONHASHSEED",
)
_DEVICE_PROGRAM = "import jax, json; print(json.dumps([[d.platform, d.device_kind] for d in jax.devices()]))"


def facts() -> dict[str, object]:
    """Return the environment as data: versions, device, variables and digests of the sources.

    Raises:
        RuntimeError: JAX cannot start on this machine; the message quotes its last line.
    """
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "devices": devices(),
        "packages": sorted({f"{d.metadata['Name']}=={d.version}" for d in distributions()}),
        "variables": {k: v for k, v in sorted(os.environ.items()) if k.startswith(_VARIABLES)},
        "sources": {str(p.relative_to(_ROOT)): _digest(p) for top in _SOURCES for p in _files(top)},
    }


def digest(environment: dict[str, object]) -> str:
    """Return the environment as one hexadecimal word."""
    return hashlib.sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()


def devices() -> list[list[str]]:
    """Return platform and kind of each device, asked in a process of its own.

    Sphinx forks to read pages in parallel, and a process that has started a JAX backend must not fork.
    """
    run = subprocess.run([sys.executable, "-c", _DEVICE_PROGRAM], capture_output=True, text=True, check=False)
    if run.returncode:
        reason = (run.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(
            f"JAX does not start in {platform.python_implementation()} {platform.python_version()}: {reason}"
        )
    return json.loads(run.stdout)


def _files(top: Path) -> list[Path]:
    if top.is_file():
        return [top]
    return sorted(p for p in top.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )
