"""Instruments for understanding `jax.jit`: measure it, watch it, see through it, explain it."""

from __future__ import annotations

import jax

_OLDEST_JAX = (0, 10)
if jax.__version_info__ < _OLDEST_JAX:
    raise ImportError(
        f"jitguide needs JAX 0.10 or later, and this is JAX {jax.__version__}. "
        "Update it with `pip install --upgrade jax`; JAX 0.10 needs Python 3.11 or later."
    )

# Imported below the check, so that an old JAX is told in one line.
from jitguide._check import Findings, check
from jitguide._comparison import Comparison, Timing
from jitguide._device import DeviceReport, device_report
from jitguide._errors import CaughtError, Explanation, expect_error, explain
from jitguide._stages import Stages, stages
from jitguide._stats import Ratio
from jitguide._timing import compare
from jitguide._watch import Watched, watch

__version__ = "0.1.0"
