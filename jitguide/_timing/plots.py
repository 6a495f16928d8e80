"""The figures of the timing instruments, in the colours of matplotlib's cycle, which a page can change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jitguide._display import duration, significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jitguide._timing.statistics import Ratio

# Beyond this ratio of the largest to the smallest speedup, a linear axis shows one of them only.
_LOGARITHMIC = 8
_LINE_HEIGHT = 14  # points from one name to the next


def plot_comparison(speedups: Mapping[str, Ratio], baseline: str, ax: Axes | None = None) -> Axes:
    """Draw each speedup as a dot with its interval, over a line at 1 where the baseline stands."""
    ax = ax or _new_axes(height=1.2 + 0.4 * len(speedups))
    names, ratios = list(speedups), list(speedups.values())
    arms = [[r.value - r.low for r in ratios], [r.high - r.value for r in ratios]]
    ax.axvline(1, linestyle=":", color=_line_colour(), label=f"as fast as “{baseline}”")
    values, places = [r.value for r in ratios], range(len(names))
    ax.errorbar(values, places, xerr=arms, fmt="o", capsize=3, label="speedup with 95 % interval")
    _legend_above(ax)
    ax.set_yticks(places, names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    if max(r.high for r in ratios) > _LOGARITHMIC * min(r.low for r in ratios):
        ax.set_xscale("log")
    ax.set(xlabel=f"speedup over “{baseline}” (times)", ylabel="variant")
    return ax


def plot_phases(
    steps: Mapping[str, float], steady: float, break_even: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the steps of the first call as one stacked bar in milliseconds, over a later call.

    The bar of the later call is often too short to be seen, so its time is written beside it.
    """
    ax = ax or _new_axes(height=2.0)
    left = 0.0
    for step, seconds in steps.items():
        ax.barh(["first call"], [1e3 * seconds], left=[left], label=step.replace("_", " "))
        left += 1e3 * seconds
    later = 1e3 * steady
    ax.barh(["later call"], [later], label="later call")
    words = [duration(steady)]
    if break_even is not None:
        words.append(f"even after {break_even:.0f} calls" if break_even < math.inf else "never even")
    ax.annotate(
        "; ".join(words), (later, "later call"), xytext=(6, 0), textcoords="offset points", va="center"
    )
    ax.invert_yaxis()
    ax.set(xlabel="time (ms)", ylabel="call")
    _legend_above(ax)
    return ax


def plot_scaling(
    sizes: Sequence[float],
    times: Mapping[str, Sequence[tuple[float, float, float]]],
    crossovers: Mapping[tuple[str, str], float],
    ax: Axes | None = None,
) -> Axes:
    """Draw the median time of each variant against the size, in a band of the middle 80 % of its blocks.

    `times` has the 10th percentile, the median and the 90th percentile at each size, in seconds; `crossovers`, for
    pairs of variants, the size at which the second overtakes the first.
    """
    ax = ax or _new_axes(height=3.2)
    ax.set(xscale="log", yscale="log", xlabel="size", ylabel="time of a call (s)")
    ends = []
    for name, found in times.items():
        low, median, high = zip(*found, strict=True)
        (line,) = ax.plot(sizes, median, marker="o", label=name)
        ax.fill_between(sizes, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        ends.append((median[-1], name, line.get_color()))
    _name_the_lines(ax, ends)
    for (a, b), size in crossovers.items():
        label = f"“{b}” overtakes “{a}” at {significant(size)}"
        ax.axvline(size, linestyle=":", color=_line_colour(), label=label)
    if crossovers:
        ax.legend(handles=ax.get_lines()[-len(crossovers) :])
    return ax


def _name_the_lines(ax: Axes, ends: Sequence[tuple[float, str, Any]]) -> None:
    """Write the name of each line beside its end, from above, and far enough below the one before."""
    below = math.inf
    for y, name, colour in sorted(ends, key=lambda end: -end[0]):
        points = ax.transData.transform((1, y))[1] * 72 / ax.figure.dpi
        below = min(points, below - _LINE_HEIGHT)
        place, edge = (6, below - points), ("axes fraction", "data")
        ax.annotate(name, (1, y), place, edge, "offset points", va="center", color=colour)


def _line_colour() -> str:
    """Return the colour of the axes: it must not look like a variant."""
    import matplotlib.pyplot as plt

    return str(plt.rcParams["axes.edgecolor"])


def _legend_above(ax: Axes) -> None:
    ax.legend(ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)


def _new_axes(height: float) -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7.2, height), layout="constrained")[1]
