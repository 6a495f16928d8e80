"""Measure this machine: `record` runs the guide's experiments."""

from datetime import date
from time import perf_counter

from jitguide._arguments import refuse_tracing
from jitguide._hardware.device_report import device_report
from jitguide._recording.experiments import EXPERIMENTS, QUICK, THOROUGH
from jitguide._recording.recording import Recording
from jitguide._timing.machine import megahertz


def record(*, name: str = "here", quick: bool = False) -> Recording:
    """Run the guide's experiments on this machine, to compare it with others.

    It measures the cost of a call, fusion against a copy of the same bytes, how much of a loop to jit, NumPy against
    jit from few numbers to many, the steps of compiling, the ceilings of the device, the precision of matrix products,
    and whether programs repeat their bits. Nothing but JAX and NumPy is needed, and no network.

    Args:
        name: What the machine is called in tables.
        quick: Take seconds instead of minutes, with wider intervals.

    Returns:
        A `Recording`; `beside()` shows it next to those that come with the guide.

    Raises:
        TypeError: `name` is not text, or `quick` is not True or False.
        RuntimeError: It was called inside a trace, or JAX has no device.

    Example:
        >>> from jitguide import record
        >>> here = record(quick=True)  # doctest: +SKIP
        >>> here.beside()  # doctest: +SKIP
    """
    if not isinstance(name, str):
        raise TypeError(f'`name` must be text, got {name!r}. Write `record(name="workstation")`.')
    if not isinstance(quick, bool):
        raise TypeError(f"`quick` must be True or False, got {quick!r}. Write `record(quick=True)`.")
    refuse_tracing("record", ())
    report = device_report()
    if report.problem:
        raise RuntimeError(report.problem)
    start, clock = perf_counter(), megahertz()
    rows = tuple(row for experiment in EXPERIMENTS for row in experiment(QUICK if quick else THOROUGH))
    machine = report.to_dict() | ({"clock_mhz": [clock, megahertz()]} if report.platform == "gpu" else {})
    return Recording(name, date.today().isoformat(), machine, rows, perf_counter() - start, quick)
