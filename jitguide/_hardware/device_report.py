"""The machine and the settings that a measurement depends on, without a name or a path of that machine."""

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np

from jitguide import _display, _jax
from jitguide._otherwise import otherwise
from jitguide._text import clean, first_sentence

# Options of JAX that change what a program computes, or how fast, with their defaults: only departures are
# reported. The list is fixed because JAX has no public way to ask for a default.
_OFF = (
    "jax_check_tracer_leaks", "jax_debug_infs", "jax_debug_key_reuse", "jax_debug_nans",
    "jax_disable_jit", "jax_disable_most_optimizations", "jax_enable_checks", "jax_enable_pgle",
    "jax_explain_cache_misses", "jax_log_compiles", "jax_no_execution", "jax_no_tracing",
    "jax_threefry_gpu_kernel_lowering", "jax_use_simplified_jaxpr_constants",
)  # fmt: skip
_JAX_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(_OFF, False),
    "jax_compiler_enable_remat_pass": True,
    "jax_cpu_enable_async_dispatch": True,
    "jax_default_device": None,
    "jax_default_prng_impl": "threefry2x32",
    "jax_enable_compilation_cache": True,
    "jax_num_cpu_devices": -1,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_platforms": None,
    "jax_threefry_partitionable": True,
    "jax_transfer_guard": None,
    "jax_use_shardy_partitioner": True,
}
# Effort levels are enumerations in some versions and text in others; "UNKNOWN" leaves the choice to XLA.
_EFFORT_DEFAULTS = {"jax_optimization_level": "UNKNOWN", "jax_memory_fitting_level": "O2"}
# Variables that XLA and its libraries read; none of them holds a path.
_ENVIRONMENT = (
    "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS", "TF_GPU_ALLOCATOR",
    "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
)  # fmt: skip
# A word may have quoted parts, with spaces in them; an unclosed quote takes the rest.
_WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*'|["'].*)+""")


@dataclass(frozen=True, repr=False)
class DeviceReport(_display.Displayed):
    """What ran a measurement.

    Attributes:
        jax: Version of JAX; `jaxlib`, `numpy` and `python` likewise.
        platform: JAX's name of the backend ("cpu", "gpu", "tpu"), None without a working backend.
        device_kind: What the backend calls its device, None without a working backend.
        device_count: Number of devices that JAX sees.
        device_memory: Bytes that JAX may use on the first device, None where the backend does not say.
        cpu: Model of the processor.
        cores: Number of cores that this process may use.
        x64: Whether 64-bit types are on.
        matmul_precision: The default precision of matrix products; None is the backend's own choice.
        settings: Pairs of name and value: the options of JAX that change what is computed or how fast, where
            they differ from their defaults; the XLA flags; and related environment variables.
        compilation_cache: Whether executables are kept on disk.
        load: Mean number of running processes over the last minute, None where the system does not say.
        problem: A sentence that says why there is no device, None when there is one.
        driver: Version of NVIDIA's driver as `nvidia-smi` gives it, None without it.
    """

    jax: str
    jaxlib: str
    numpy: str
    python: str
    platform: str | None
    device_kind: str | None
    device_count: int
    device_memory: int | None
    cpu: str
    cores: int
    x64: bool
    matmul_precision: str | None
    settings: tuple[tuple[str, str], ...]
    compilation_cache: bool
    load: float | None
    problem: str | None = None
    driver: str | None = None

    def _table(self) -> _display.Table:
        device = f"{self.device_count} × {self.device_kind} ({self.platform})" if self.platform else "none"
        rows = [
            ("JAX", f"{self.jax} (jaxlib {self.jaxlib})"),
            ("NumPy", self.numpy),
            ("Python", self.python),
            ("device", device),
            ("device memory", _display.size(self.device_memory)),
            *([("driver", self.driver)] if self.driver else []),
            ("processor", self.cpu),
            ("usable cores", str(self.cores)),
            ("64-bit types", "on" if self.x64 else "off"),
            ("matmul precision", self.matmul_precision or "backend's default"),
            ("compilation cache", "yes" if self.compilation_cache else "no"),
            ("load", "not available" if self.load is None else f"{self.load:.1f}"),
            *self.settings,
            *([("problem", self.problem)] if self.problem else []),
        ]
        return _display.Table(["what", "value"], rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as data that `json.dumps` accepts."""
        return {**asdict(self), "settings": dict(self.settings)}


def device_report() -> DeviceReport:
    """Report versions, device, processor and settings of this process.

    The report names no host, no user and no path, so it can be published or pasted into an issue.
    A backend that does not start is reported in `problem`; nothing is raised.

    Returns:
        A `DeviceReport`; its sizes are in bytes.

    Example:
        >>> from jitguide import device_report
        >>> report = device_report()
        >>> report.device_count >= 1, report.problem is None
        (True, True)
    """
    found, precision = _backend(), jax.config.jax_default_matmul_precision
    cache_on = _jax.setting("jax_enable_compilation_cache", True)
    return DeviceReport(
        jax=jax.__version__,
        jaxlib=jaxlib.__version__,
        numpy=np.__version__,
        python=platform.python_version(),
        cpu=_cpu_model(),
        cores=_usable_cores(),
        x64=bool(jax.config.jax_enable_x64),
        matmul_precision=None if precision is None else str(precision),
        settings=(*_changed_options(), *_environment(os.environ)),
        compilation_cache=bool(_jax.setting("jax_compilation_cache_dir") and cache_on),
        load=_load(),
        driver=_driver() if found["platform"] == "gpu" else None,
        **found,
    )


def _backend() -> dict[str, Any]:
    try:
        devices = jax.devices()
    except Exception as error:  # a missing driver, plug-in or platform: each backend raises its own class
        # Some failures are assertions without a text; the class is then all there is to say.
        reason = first_sentence(clean(str(error))) or type(error).__name__
        reason += "" if reason.endswith((".", "!", "?")) else "."
        problem = f"JAX could not start a device: {reason} Check JAX_PLATFORMS and the installed plug-in."
        unknown = dict.fromkeys(("platform", "device_kind", "device_memory"))
        return unknown | {"device_count": 0, "problem": problem}
    first = {name: getattr(devices[0], name) for name in ("platform", "device_kind")}
    return first | {"device_count": len(devices), "device_memory": memory_limit(devices[0])}


@otherwise(None)  # optional in every backend, and not all agree on how to refuse
def memory_limit(device: Any) -> int | None:
    """Return the bytes that JAX may use on `device`, or None where the backend does not say."""
    limit: int | None = device.memory_stats().get("bytes_limit")
    return limit


def _changed_options() -> list[tuple[str, str]]:
    known = (_JAX_DEFAULTS | _EFFORT_DEFAULTS).items()
    found = ((name, _jax.setting(name, default), default) for name, default in known)
    return [(n, _public(str(v))) for n, v, default in found if default not in (v, getattr(v, "name", v))]


def _environment(variables: Mapping[str, str]) -> list[tuple[str, str]]:
    pairs = [(name, _public(variables[name])) for name in _ENVIRONMENT if variables.get(name)]
    flags = variables.get("XLA_FLAGS", "").strip()
    return [*pairs, ("XLA_FLAGS", _public_flags(flags))] if flags else pairs


def _public_flags(flags: str) -> str:
    if not flags.startswith("-"):  # XLA then takes the value as the name of a file with flags
        return "(read from a file)"
    return " ".join(_public(word) for word in _WORD.findall(flags))


def _public(value: str) -> str:
    """Return `value` with what looks like a path or the identifier of a chip replaced."""
    name, equals, content = value.rpartition("=")
    if re.search(r"[/\\~]", content):
        content = "(a path)"
    return name + equals + re.sub(r"\b(?:GPU|MIG)-[\w-]+", "(an identifier)", content)


def _cpu_model() -> str:
    text = otherwise("")(Path("/proc/cpuinfo").read_text)("utf-8", "replace")  # only on Linux
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine() or "unknown"


def _usable_cores() -> int:
    if hasattr(os, "process_cpu_count"):  # Python 3.13; it also honours PYTHON_CPU_COUNT
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@otherwise(None)  # not on Windows
def _load() -> float:
    return round(os.getloadavg()[0], 2)


@otherwise(None)  # without NVIDIA's tool
def _driver() -> str | None:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603 -- a fixed command
    return found.stdout.partition("\n")[0].strip() or None
