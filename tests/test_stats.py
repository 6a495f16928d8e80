"""The statistics on synthetic times of a known ratio."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from jitguide import Ratio
from jitguide._timing.statistics import TRIM, judge, paired_ratio, trimmed_mean
from jitguide._timing.statistics import _interval_of_median as interval_of_median


def noisy(rng, n, *, spikes=0.0, drift=0.0, noise=0.01):
    """Times of one function: noise of a hundredth, a slow drift of the machine, and rare interruptions."""
    times = np.exp(rng.normal(0, noise, n)) * np.linspace(1, 1 + drift, n)
    return np.where(rng.random(n) < spikes, times * 20, times)


@pytest.mark.parametrize("true", [0.5, 0.95, 1.0, 1.05, 30.0])
def test_the_ratio_of_known_times_is_found(true):
    rng = np.random.default_rng(1)
    found = paired_ratio(true * noisy(rng, 400), noisy(rng, 400))
    assert found.value == pytest.approx(true, rel=0.003)
    assert found.low < true < found.high


def test_drift_cancels_because_both_times_of_a_pair_share_it():
    machine = np.linspace(1, 5, 300)
    rng = np.random.default_rng(2)
    found = paired_ratio(2 * machine * noisy(rng, 300), machine * noisy(rng, 300))
    assert found.value == pytest.approx(2, rel=0.005)
    assert found.high / found.low < 1.02


def test_spikes_move_neither_the_estimate_nor_much_of_the_interval():
    rng = np.random.default_rng(3)
    found = paired_ratio(noisy(rng, 500, spikes=0.1), noisy(rng, 500, spikes=0.1))
    assert found.value == pytest.approx(1, rel=0.005)
    assert 0.98 < found.low < found.high < 1.02


def test_the_interval_covers_the_truth_in_about_95_percent_of_cases():
    rng = np.random.default_rng(4)
    intervals = [paired_ratio(noisy(rng, 60), noisy(rng, 60)) for _ in range(400)]
    assert np.mean([r.low <= 1 <= r.high for r in intervals]) >= 0.93


@pytest.mark.parametrize("n", [3, 4, 5, 6, 15])
def test_the_interval_covers_the_truth_with_few_rounds_as_well(n):
    rng = np.random.default_rng(n)
    intervals = [paired_ratio(noisy(rng, n), noisy(rng, n)) for _ in range(400)]
    assert np.mean([r.low <= 1 <= r.high for r in intervals]) >= 0.93


def test_two_modes_of_speed_stretch_the_interval_to_the_trimmed_mean():
    ratios = [1.0] * 55 + [1.2] * 45
    found = paired_ratio(ratios, [1.0] * 100)
    assert found.value == 1.0
    assert found.high >= math.exp(trimmed_mean(np.log(ratios)))


def test_a_ratio_turned_around_is_its_inverse():
    rng = np.random.default_rng(5)
    a, b = noisy(rng, 101), 3 * noisy(rng, 101)
    one, other = paired_ratio(a, b), paired_ratio(b, a)
    assert other.value == pytest.approx(1 / one.value)
    assert (other.low, other.high) == pytest.approx((1 / one.high, 1 / one.low))


def test_one_round_gives_a_ratio_without_width():
    assert paired_ratio([2.0], [1.0]) == Ratio(2.0, 2.0, 2.0)


def test_widening_moves_both_ends_by_the_same_factor():
    assert Ratio(2.0, 1.0, 4.0).widened(0.25) == Ratio(2.0, 0.8, 5.0)


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Ratio(1.03, 1.021, 1.04), "faster"),
        (Ratio(1.03, 1.019, 1.04), "same"),
        (Ratio(1.06, 1.019, 1.1), "cannot tell"),
        (Ratio(0.97, 0.96, 0.979), "slower"),
        (Ratio(0.97, 0.96, 0.99), "same"),
        (Ratio(1.0, 0.94, 1.01), "cannot tell"),
        (Ratio(1.0, 1.0, 1.0), "same"),
        (Ratio(50, 1, 2500), "cannot tell"),
    ],
)
def test_a_verdict_is_given_only_as_far_as_the_interval_allows(ratio, verdict):
    assert judge(ratio) == verdict


def test_verdicts_are_the_same_seen_from_the_other_side():
    for ratio in (Ratio(1.03, 1.021, 1.04), Ratio(1, 0.98, 1.04), Ratio(1, 0.9, 1.1)):
        turned = Ratio(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)
        swap = {"faster": "slower"}
        assert judge(turned) == swap.get(judge(ratio), judge(ratio))


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (Ratio(1.0, 0.994, 1.006), "×1.00 (0.99–1.01)"),
        (Ratio(0.953, 0.94, 0.97), "×0.95 (0.94–0.97)"),
        (Ratio(17.93, 16.4, 19.31), "×17.9 (16.4–19.3)"),
        (Ratio(5234.0, 5100, 5400), "×5234 (5100–5400)"),
        (Ratio(0.00123, 0.0012, 0.0013), "×0.00123 (0.00120–0.00130)"),
    ],
)
def test_a_ratio_reads_with_three_digits_and_the_same_decimals_throughout(ratio, text):
    assert repr(ratio) == str(ratio) == text


# SciPy as an oracle. The package does not need it; JAX installs it.


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=60).map(sorted))
def test_the_trimmed_mean_is_that_of_scipy(ordered):
    assert trimmed_mean(ordered) == pytest.approx(stats.trim_mean(ordered, TRIM), abs=1e-12)


def ranks(n):
    """Return which of n sorted values, counted from 1, bound the interval of the median."""
    low, high = interval_of_median(np.arange(1.0, n + 1))
    return int(low), int(high)


@pytest.mark.parametrize("n", [*range(6, 60), 99, 100, 1000, 5000])
def test_the_ranks_cover_the_median_in_95_percent_of_cases_by_the_binomial_distribution(n):
    low, high = ranks(n)
    below = stats.binom(n, 0.5)  # how many of n values lie below the median
    assert below.cdf(high - 1) - below.cdf(low - 1) >= 0.95


@pytest.mark.parametrize("n", [*range(6, 60), 99, 100, 250])
def test_the_interval_is_the_exact_one_of_scipy_or_wider_by_one_rank_at_each_end(n):
    values = np.arange(1.0, n + 1)
    exact = stats.quantile_test(values, q=(n + 1) / 2, p=0.5).confidence_interval(0.95)
    low, high = ranks(n)
    assert exact.low - 1 <= low <= exact.low
    assert exact.high <= high <= exact.high + 1


@pytest.mark.parametrize("n", [3, 4, 5])
def test_the_stretched_range_of_few_values_covers_the_median_of_normal_noise(n):
    # The interval misses 0 on one side if the largest value m is below 0 and the range exceeds -m, or the other
    # way around: n f(m) (F(m) - F(2m))**(n - 1), integrated over m.
    low, high = interval_of_median(np.array([-1.0, *[0.0] * (n - 2), 1.0]))
    assert (low, high) == (-3, 3)
    normal = stats.norm
    missed, _ = quad(lambda m: n * normal.pdf(m) * (normal.cdf(m) - normal.cdf(2 * m)) ** (n - 1), -12, 0)
    assert 1 - 2 * missed >= 0.95


@pytest.mark.parametrize("rounds", [200, 1000])
def test_the_interval_of_a_ratio_is_about_as_wide_as_a_bootstrap_of_the_median(rounds):
    rng = np.random.default_rng(rounds)
    widths = []
    for _ in range(20):
        a, b = 2 * noisy(rng, rounds), noisy(rng, rounds)
        found = paired_ratio(a, b)
        by_resampling = stats.bootstrap(
            (np.log(a / b),), np.median, n_resamples=500, method="percentile", rng=rng
        ).confidence_interval
        widths.append(math.log(found.high / found.low) / (by_resampling.high - by_resampling.low))
    assert 0.9 < np.median(widths) < 1.3
