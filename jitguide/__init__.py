"""Instruments for understanding `jax.jit`: measure it, watch it, see through it, explain it.

Names are imported when they are first used, so that `import jitguide` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import jax

_OLDEST_JAX = (0, 10)
if jax.__version_info__ < _OLDEST_JAX:
    raise ImportError(
        f"jitguide needs JAX 0.10 or later, and this is JAX {jax.__version__}. "
        "Update it with `pip install --upgrade jax`; JAX 0.10 needs Python 3.11 or later."
    )

import jax.extend  # noqa: E402 -- for `stages`: imported later, it makes JAX 0.12 compile everything again

if TYPE_CHECKING:  # for type checkers and editors, which do not see what is imported on demand
    from jitguide._calls import Call as Call
    from jitguide._check import Findings as Findings
    from jitguide._check import check as check
    from jitguide._comparison import Comparison as Comparison
    from jitguide._comparison import Timing as Timing
    from jitguide._device import DeviceReport as DeviceReport
    from jitguide._device import device_report as device_report
    from jitguide._errors import CaughtError as CaughtError
    from jitguide._errors import Explanation as Explanation
    from jitguide._errors import expect_error as expect_error
    from jitguide._errors import explain as explain
    from jitguide._peaks import Peaks as Peaks
    from jitguide._peaks import peaks as peaks
    from jitguide._phases import Phases as Phases
    from jitguide._phases import phases as phases
    from jitguide._reasons import Reason as Reason
    from jitguide._roofline import Roofline as Roofline
    from jitguide._roofline import roofline as roofline
    from jitguide._rules import Finding as Finding
    from jitguide._scaling import Scaling as Scaling
    from jitguide._scaling import scaling as scaling
    from jitguide._seen import Seen as Seen
    from jitguide._seen import assert_compiles as assert_compiles
    from jitguide._seen import assert_traces as assert_traces
    from jitguide._stages import Stages as Stages
    from jitguide._stages import stages as stages
    from jitguide._stats import Ratio as Ratio
    from jitguide._timing import compare as compare
    from jitguide._watch import Watched as Watched
    from jitguide._watch import watch as watch

__version__ = "0.1.0"

_HOMES = {
    "_calls": ["Call"],
    "_check": ["Findings", "check"],
    "_comparison": ["Comparison", "Timing"],
    "_device": ["DeviceReport", "device_report"],
    "_errors": ["CaughtError", "Explanation", "expect_error", "explain"],
    "_peaks": ["Peaks", "peaks"],
    "_phases": ["Phases", "phases"],
    "_reasons": ["Reason"],
    "_roofline": ["Roofline", "roofline"],
    "_rules": ["Finding"],
    "_scaling": ["Scaling", "scaling"],
    "_seen": ["Seen", "assert_compiles", "assert_traces"],
    "_stages": ["Stages", "stages"],
    "_stats": ["Ratio"],
    "_timing": ["compare"],
    "_watch": ["Watched", "watch"],
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
