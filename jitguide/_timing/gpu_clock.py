"""The clock of an NVIDIA GPU, as its driver's library tells it. It is read and never set."""

import ctypes
import os
import sys
from functools import cache
from typing import Any

_MULTIPROCESSORS = 1  # which clock, in the driver's library


def megahertz() -> int | None:
    """Return the clock of the first visible GPU in MHz, None where no NVIDIA driver tells it; it takes about 1 ms."""
    try:
        library, device = _gpu()
        clock = ctypes.c_uint()
        failed = library.nvmlDeviceGetClockInfo(device, _MULTIPROCESSORS, ctypes.byref(clock))
    except (OSError, AttributeError):  # there is no such library, or it is not NVIDIA's
        return None
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
