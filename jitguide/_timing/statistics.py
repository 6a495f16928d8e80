"""From paired times to a ratio, its interval and a verdict. Pure functions of numbers: no clock, no JAX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jitguide._display import AsData

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Rounds are looked at in this many groups, one after the other, so that a ratio that wanders shows.
BATCHES = 12
# Two compiled copies of one function differ for good, through where their code and data lie in memory: the
# standard deviation of the logarithm of a copy's time, which counts as much as the copies of two functions.
COPY, COPY_WEIGHT = 0.002, 2
# A winner is named only beyond this difference, and "same" is said only within the other one.
CLEAR, ALIKE = 0.02, 0.05
_Z95 = 1.96  # normal quantile of a two-sided 95 % interval
# With fewer values not even the whole range covers the median in 95 % of cases: 2 × 0.5**5 > 0.05.
_RANKS_NEED = 6
_READS_AS_SLOWER = 0.9


@dataclass(frozen=True, repr=False)
class Ratio(AsData):
    """A ratio of two times with its 95 % interval.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end of the interval.

    Example:
        >>> from jitguide import Ratio
        >>> Ratio(4.13, 4.08, 4.19)
        ×4.13 (4.08–4.19)
    """

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        # What is clearly slower reads as such: 41,000× slower, and not ×0.0000245.
        if self.value < _READS_AS_SLOWER:
            turned = Ratio(1 / self.value, 1 / self.high, 1 / self.low)
            return "{}× slower ({}–{})".format(*turned._numbers())
        return "×{} ({}–{})".format(*self._numbers())

    def _numbers(self) -> list[str]:
        # The same decimals for all three: three digits of the estimate, but no more than two decimals near 1.
        places = min(2 - math.floor(math.log10(self.value)), 2)
        return [f"{round(x, places):,.{max(places, 0)}f}" for x in (self.value, self.low, self.high)]

    def widened(self, by: float) -> Ratio:
        """Return the same estimate in an interval that is also unsure by the factor exp(`by`), independently."""
        below, above = math.log(self.value / self.low), math.log(self.high / self.value)
        low, high = -math.hypot(below, by), math.hypot(above, by)
        return Ratio(self.value, self.value * math.exp(low), self.value * math.exp(high))


def paired_ratio(numerators: ArrayLike, denominators: ArrayLike) -> Ratio:
    """Return the typical ratio of times that were taken side by side, one pair a round.

    The estimate is the median of the ratios within the rounds: what slows the machine for longer than a round
    cancels, and a spike in one round moves nothing. The interval is the rank-based 95 % interval of the same
    estimate in 12 batches of rounds, one after the other: a ratio that wanders while it is measured widens it.

    Either has the seconds of each round, or a row of them with one for each place. Then each block of a round
    counts with each block of the other function, without what the places typically differ by.

    Example:
        >>> paired_ratio([2.0, 4.0, 6.2, 2.0, 2.0, 2.0], [1.0, 2.0, 3.0, 1.0, 1.0, 1.0])
        ×2.00 (2.00–2.07)
    """
    logs = _even_places(numerators)[:, :, None] - _even_places(denominators)[:, None, :]
    middle = float(np.median(logs))
    batches = np.array_split(logs, min(BATCHES, len(logs)))
    low, high = interval_of_median(np.sort([np.median(batch) for batch in batches]))
    return Ratio(math.exp(middle), math.exp(min(low, middle)), math.exp(max(high, middle)))


def _even_places(seconds: ArrayLike) -> np.ndarray[Any, Any]:
    """Return logarithms, a row for each round, in which no place is typically slower than another one."""
    logs = np.log(np.asarray(seconds, float))
    logs = logs.reshape(len(logs), -1)
    apart = logs - logs.mean(axis=1, keepdims=True)
    even: np.ndarray[Any, Any] = logs - np.median(apart, axis=0)
    return even


def interval_of_median(ordered: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return a 95 % interval of the median from ranks: no assumption about the distribution.

    Source: Conover, "Practical Nonparametric Statistics", section 3.2. Below `_RANKS_NEED` values it is the
    range stretched to both sides, by itself for three values or more (Lord, Biometrika 34, 1947) and by its
    sixfold for two (Student's t has 12.7 there), which covers more than 95 % for normal noise.
    """
    n = len(ordered)
    if n < _RANKS_NEED:
        spread = float(ordered[-1] - ordered[0]) * (6 if n == 2 else 1)
        return float(ordered[0]) - spread, float(ordered[-1]) + spread
    half = _Z95 * math.sqrt(n) / 2
    first = max(math.floor(n / 2 - half), 1)
    return float(ordered[first - 1]), float(ordered[n - first])


def between_copies(gaps: Sequence[float], copies: tuple[int, int]) -> float:
    """Return by how much, as a logarithm, two functions may differ because each was compiled as it was.

    It is half a 95 % interval of Student's t for the difference of two means of copies. The variance of a copy
    is estimated from what is known of others and from `gaps`: for each function of which two copies were timed,
    the difference of the logarithms. `copies` is how many were timed of each of the two functions.
    """
    degrees = COPY_WEIGHT + len(gaps)
    variance = (COPY_WEIGHT * COPY**2 + sum(gap**2 for gap in gaps) / 2) / degrees
    # Cornish and Fisher's expansion of Student's quantile, right to 3 % from two degrees on.
    quantile = _Z95 + 2.37 / degrees + 2.82 / degrees**2 + 2.56 / degrees**3
    return quantile * math.sqrt(variance * sum(1 / count for count in copies))


def judge(speedup: Ratio) -> str:
    """Return what an interval allows to say: "faster", "slower", "same" or "cannot tell".

    Example:
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
