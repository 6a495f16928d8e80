"""The figures of the timing instruments, in the colours of matplotlib's cycle, which a page can change."""

from __future__ import annotations

import math
from itertools import permutations
from typing import TYPE_CHECKING

from jitguide._display import duration, significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jitguide._timing.comparison import Comparison
    from jitguide._timing.phases import Phases
    from jitguide._timing.scaling import Scaling

# Beyond this ratio of the largest to the smallest speed-up, a linear axis shows one of them only.
_LOGARITHMIC = 8
_MILLISECONDS = 1e3


def plot_comparison(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """Draw each speed-up as a dot with its interval, over a line at 1 where the baseline stands."""
    ax = ax or _new_axes(height=1.2 + 0.4 * len(comparison.timings))
    names = [timing.name for timing in comparison.timings]
    ratios = [comparison.speedup(name) for name in names]
    arms = [[r.value - r.low for r in ratios], [r.high - r.value for r in ratios]]
    places = range(len(names))
    ax.axvline(1, linestyle=":", color=_line_colour(), label=f"as fast as “{comparison.baseline}”")
    ax.errorbar(
        [r.value for r in ratios], places, xerr=arms, fmt="o", capsize=3, label="speed-up with 95 % interval"
    )
    _legend_above(ax)
    ax.set_yticks(places, names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    if max(r.high for r in ratios) > _LOGARITHMIC * min(r.low for r in ratios):
        ax.set_xscale("log")
    ax.set(xlabel=f"speed-up over “{comparison.baseline}” (times)", ylabel="variant")
    return ax


def plot_phases(phases: Phases, break_even: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw the steps of the first call as one stacked bar in milliseconds, over a later call.

    The bar of the later call is often too short to be seen, so its time is written beside it.
    """
    ax = ax or _new_axes(height=2.0)
    left = 0.0
    for step in ("trace", "lower", "compile", "first_run"):
        width = getattr(phases, step) * _MILLISECONDS
        ax.barh(["first call"], [width], left=[left], label=step.replace("_", " "))
        left += width
    later = phases.steady * _MILLISECONDS
    ax.barh(["later call"], [later], label="later call")
    words = [duration(phases.steady)]
    if break_even is not None:
        words.append(f"even after {break_even:.0f} calls" if break_even < math.inf else "never even")
    ax.annotate(
        "; ".join(words), (later, "later call"), xytext=(6, 0), textcoords="offset points", va="center"
    )
    ax.invert_yaxis()
    ax.set(xlabel="time (ms)", ylabel="call")
    _legend_above(ax)
    return ax


def plot_scaling(scaling: Scaling, ax: Axes | None = None) -> Axes:
    """Draw the median time of each variant against the size, in a band of the middle 80 % of its blocks."""
    ax = ax or _new_axes(height=3.2)
    for name in scaling.names:
        timings = [comparison[name] for comparison in scaling.comparisons]
        (line,) = ax.plot(scaling.sizes, [t.median for t in timings], marker="o", label=name)
        low, high = [t.low for t in timings], [t.high for t in timings]
        ax.fill_between(scaling.sizes, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    for a, b in permutations(scaling.names, 2):
        if (size := scaling.crossover(a, b)) is not None:
            ax.axvline(
                size,
                linestyle=":",
                color=_line_colour(),
                label=f"“{b}” overtakes “{a}” at {significant(size)}",
            )
    ax.set(xscale="log", yscale="log", xlabel="size", ylabel="time of a call (s)")
    ax.legend()
    return ax


def _line_colour() -> str:
    """Return the colour of the axes: what is no variant must not look like one."""
    import matplotlib.pyplot as plt

    return str(plt.rcParams["axes.edgecolor"])


def _legend_above(ax: Axes) -> None:
    ax.legend(ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)


def _new_axes(height: float) -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7.2, height), layout="constrained")[1]
