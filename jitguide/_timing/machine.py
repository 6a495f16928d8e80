"""The state of the machine while something is measured: how busy the rest of it is, and the clock of an NVIDIA GPU."""

import ctypes
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from jitguide._otherwise import otherwise

_STAT = Path("/proc/stat")
# user, nice, system, irq, softirq, steal. Not idle and iowait; and guests' time is part of "user" already.
_WORK = (0, 1, 2, 5, 6, 7)
_MULTIPROCESSORS = 1  # which clock, in the driver's library


@dataclass(frozen=True)
class Busy:
    """A reading of the counters of processor time, in seconds; two readings tell the load between them."""

    wall: float  # on the wall clock
    own: float  # processor time of this process and its children
    machine: float | None  # processor time of all programs; None where the system does not tell

    @classmethod
    def now(cls) -> Self:
        return cls(perf_counter(), sum(os.times()[:4]), _machine_seconds())

    def cores_since(self, now: Self | None = None) -> float | None:
        """Return the mean number of cores that other programs have used since this reading."""
        now = now or self.now()
        if self.machine is None or now.machine is None or now.wall <= self.wall:
            return None
        others = (now.machine - self.machine) - (now.own - self.own)
        return round(max(others, 0.0) / (now.wall - self.wall), 2)


@otherwise(None)  # only Linux has this file
def _machine_seconds() -> float:
    columns = _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    return sum(int(columns[i]) for i in _WORK) / os.sysconf("SC_CLK_TCK")


@otherwise(None)  # there is no such library, or it is not NVIDIA's
def megahertz() -> int | None:
    """Return the clock of the first visible GPU in MHz, None where no NVIDIA driver tells it; it takes about 1 ms and sets nothing."""
    library, device = _gpu()
    clock = ctypes.c_uint()
    failed = library.nvmlDeviceGetClockInfo(device, _MULTIPROCESSORS, ctypes.byref(clock))
    return None if failed else clock.value


@cache
def _gpu() -> tuple[Any, ctypes.c_void_p]:
    """Return the driver's library and its handle of the GPU."""
    library = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
    library.nvmlInit_v2()
    device = ctypes.c_void_p()
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0].strip()
    if first.isdigit():
        library.nvmlDeviceGetHandleByIndex_v2(int(first), ctypes.byref(device))
    else:
        library.nvmlDeviceGetHandleByUUID(first.encode(), ctypes.byref(device))
    return library, device
