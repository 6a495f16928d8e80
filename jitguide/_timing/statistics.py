"""From paired times to a ratio, its interval and a verdict. Pure functions of numbers: no clock, no JAX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitguide._display import AsData

# Two copies of one function differ for good, through where their code and data lie in memory: most by up to
# half a percent, one pair of 5 µs calls in ten by up to 1.4 %. An interval narrower than that would call the
# two different; a winner is named only beyond `CLEAR`, which is wider than both.
FLOOR = 0.005
# A winner is named only beyond this difference, and "same" is said only within the other one.
CLEAR, ALIKE = 0.02, 0.05
# A quarter off each end keeps the mean safe from interruptions, and it still sees a second mode of speed.
TRIM = 0.25
_Z95 = 1.96  # normal quantile of a two-sided 95 % interval
# With fewer values not even the whole range covers the median in 95 % of cases: 2 × 0.5**5 > 0.05.
_RANKS_NEED = 6


@dataclass(frozen=True, repr=False)
class Ratio(AsData):
    """A ratio of two times with its 95 % interval.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end of the interval.

    Example:
        >>> from jitguide._timing.statistics import Ratio
        >>> Ratio(4.13, 4.08, 4.19)
        ×4.13 (4.08–4.19)
    """

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        # The same decimals for all three: three digits of the estimate, but no more than two decimals near 1.
        size = math.floor(math.log10(self.value))
        places = 2 if size == -1 else max(2 - size, 0)
        return f"×{self.value:.{places}f} ({self.low:.{places}f}–{self.high:.{places}f})"

    def widened(self, by: float) -> Ratio:
        """Return the same estimate with both ends of the interval moved outwards by the factor 1 + `by`."""
        return Ratio(self.value, self.low / (1 + by), self.high * (1 + by))


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Ratio:
    """Return the typical ratio of times that were taken side by side, one pair a round.

    The estimate is the median of the ratios within the rounds: what slows the machine for longer than a round
    cancels, and a spike in one round moves nothing. The interval holds the median's rank-based 95 % interval
    and the trimmed mean, which differ where a function has two modes of speed.

    Args:
        numerators: Seconds, one for each round.
        denominators: Seconds of the same rounds.

    Example:
        >>> from jitguide._timing.statistics import paired_ratio
        >>> paired_ratio([2.0, 4.0, 6.2, 2.0, 2.0, 2.0], [1.0, 2.0, 3.0, 1.0, 1.0, 1.0])
        ×2.00 (2.00–2.07)
    """
    logs = np.sort(np.log(np.asarray(numerators, float)) - np.log(np.asarray(denominators, float)))
    middle, (low, high), mean = float(np.median(logs)), _interval_of_median(logs), trimmed_mean(logs.tolist())
    return Ratio(math.exp(middle), math.exp(min(low, mean)), math.exp(max(high, mean)))


def _interval_of_median(ordered: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return a 95 % interval of the median from ranks: no assumption about the distribution, one sort.

    Source: Conover, "Practical Nonparametric Statistics", section 3.2. Below `_RANKS_NEED` values it is the
    range stretched by itself to both sides, which covers more than 95 % for normal noise and three values or
    more (Lord, Biometrika 34, 1947).
    """
    n = len(ordered)
    if n < _RANKS_NEED:
        spread = float(ordered[-1] - ordered[0])
        return float(ordered[0]) - spread, float(ordered[-1]) + spread
    half = _Z95 * math.sqrt(n) / 2
    first = max(math.floor(n / 2 - half), 1)
    return float(ordered[first - 1]), float(ordered[n - first])


def trimmed_mean(ordered: Sequence[float]) -> float:
    """Return the mean of sorted values without the lowest and the highest quarter.

    Example:
        >>> from jitguide._timing.statistics import trimmed_mean
        >>> trimmed_mean([1, 2, 4, 100])
        3.0
    """
    cut = int(len(ordered) * TRIM)
    return float(np.mean(ordered[cut : len(ordered) - cut]))


def judge(speedup: Ratio) -> str:
    """Return what an interval allows to say: "faster", "slower", "same" or "cannot tell".

    A winner is named when the whole interval lies more than 2 % away from 1, "same" is said when it lies
    within 5 %; anything else stays open.

    Example:
        >>> from jitguide._timing.statistics import Ratio, judge
        >>> [judge(r) for r in (Ratio(1.1, 1.03, 1.2), Ratio(1, 0.99, 1.03), Ratio(1.1, 0.9, 1.3))]
        ['faster', 'same', 'cannot tell']
    """
    if speedup.low > 1 + CLEAR:
        return "faster"
    if speedup.high < 1 / (1 + CLEAR):
        return "slower"
    if speedup.low >= 1 / (1 + ALIKE) and speedup.high <= 1 + ALIKE:
        return "same"
    return "cannot tell"
