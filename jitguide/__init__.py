"""Instruments for understanding `jax.jit`: measure it, watch it, see through it, explain it.

Names are imported when they are first used, so that `import jitguide` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import jax

_OLDEST_JAX = (0, 10, 2)
if jax.__version_info__ < _OLDEST_JAX:
    raise ImportError(
        f"jitguide needs JAX 0.10.2 or later, and this is JAX {jax.__version__}. "
        "Update it with `pip install --upgrade jax`; JAX 0.10 needs Python 3.11 or later."
    )

if TYPE_CHECKING:  # for type checkers and editors, which do not see what is imported on demand
    from jitguide._check.check import check as check
    from jitguide._check.findings import Finding as Finding
    from jitguide._check.findings import Findings as Findings
    from jitguide._errors.entry import Explanation as Explanation
    from jitguide._errors.expect_error import CaughtError as CaughtError
    from jitguide._errors.expect_error import expect_error as expect_error
    from jitguide._errors.explain import explain as explain
    from jitguide._hardware.device_report import DeviceReport as DeviceReport
    from jitguide._hardware.device_report import device_report as device_report
    from jitguide._hardware.peaks import Peaks as Peaks
    from jitguide._hardware.peaks import peaks as peaks
    from jitguide._hardware.roofline import Roofline as Roofline
    from jitguide._hardware.roofline import roofline as roofline
    from jitguide._recording.recording import Recording as Recording
    from jitguide._recording.recording import record as record
    from jitguide._stages.result import Stages as Stages
    from jitguide._stages.stages import stages as stages
    from jitguide._timing.compare import compare as compare
    from jitguide._timing.comparison import Comparison as Comparison
    from jitguide._timing.comparison import Timing as Timing
    from jitguide._timing.phases import Phases as Phases
    from jitguide._timing.phases import phases as phases
    from jitguide._timing.scaling import Scaling as Scaling
    from jitguide._timing.scaling import scaling as scaling
    from jitguide._timing.statistics import Ratio as Ratio
    from jitguide._watch.block import WatchedBlock as WatchedBlock
    from jitguide._watch.block import assert_compiles as assert_compiles
    from jitguide._watch.block import assert_traces as assert_traces
    from jitguide._watch.reasons import Call as Call
    from jitguide._watch.reasons import Reason as Reason
    from jitguide._watch.watch import Watched as Watched
    from jitguide._watch.watch import watch as watch

__version__ = "0.1.0"

_HOMES = {
    "_check.check": ["check"],
    "_check.findings": ["Finding", "Findings"],
    "_errors.entry": ["Explanation"],
    "_errors.expect_error": ["CaughtError", "expect_error"],
    "_errors.explain": ["explain"],
    "_hardware.device_report": ["DeviceReport", "device_report"],
    "_hardware.peaks": ["Peaks", "peaks"],
    "_hardware.roofline": ["Roofline", "roofline"],
    "_recording.recording": ["Recording", "record"],
    "_stages.result": ["Stages"],
    "_stages.stages": ["stages"],
    "_timing.compare": ["compare"],
    "_timing.comparison": ["Comparison", "Timing"],
    "_timing.phases": ["Phases", "phases"],
    "_timing.scaling": ["Scaling", "scaling"],
    "_timing.statistics": ["Ratio"],
    "_watch.block": ["WatchedBlock", "assert_compiles", "assert_traces"],
    "_watch.reasons": ["Call", "Reason"],
    "_watch.watch": ["Watched", "watch"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'jitguide' has no attribute {name!r}; it has {', '.join(__all__)}.")
    value = getattr(import_module(f"jitguide.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, whether or not they have been used."""
    return [*__all__, "__version__"]
