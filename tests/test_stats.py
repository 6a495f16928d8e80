"""The statistics on synthetic times of a known ratio."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from jitguide import Ratio
from jitguide._timing.statistics import between_copies, interval_of_median, judge, paired_ratio


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


def test_each_block_counts_with_each_one_of_the_other_function_in_its_round():
    """Beside another program, some blocks take twice as long."""
    rng = np.random.default_rng(8)

    def times():
        return np.exp(rng.normal(0, 0.05, (48, 2))) * np.where(rng.random((48, 2)) < 0.2, 2, 1)

    pairs = [(times(), times()) for _ in range(600)]
    spread = np.std([math.log(paired_ratio(a, b).value) for a, b in pairs])
    places = np.std([np.mean(np.median(np.log(a) - np.log(b), axis=0)) for a, b in pairs])
    assert spread < 0.95 * places


def test_a_slow_copy_counts_half():
    rng = np.random.default_rng(9)
    copies = np.exp(rng.normal(0, 0.01, (100, 2))) * np.array([1.0, 1.1])
    assert paired_ratio(copies, noisy(rng, 100)).value == pytest.approx(math.sqrt(1.1), rel=0.003)
    assert paired_ratio(noisy(rng, 100), copies).value == pytest.approx(1 / math.sqrt(1.1), rel=0.003)


def test_two_modes_of_speed_are_both_in_the_interval():
    found = paired_ratio([1.0] * 55 + [1.2] * 45, [1.0] * 100)
    assert (found.low, found.value, found.high) == pytest.approx((1.0, 1.0, 1.2))


def test_a_wandering_ratio_is_covered_where_ranks_of_single_rounds_are_too_sure():
    rng = np.random.default_rng(6)
    held = 0
    for _ in range(200):
        wander = 0.03 * np.sin(np.linspace(0, 2 * np.pi, 600) * rng.uniform(1, 3) + rng.uniform(0, 6))
        found = paired_ratio(noisy(rng, 600) * np.exp(wander), noisy(rng, 600))
        held += found.low <= 1 <= found.high
    assert held >= 190


@pytest.mark.parametrize("functions", [2, 3, 5])
def test_copies_that_differ_are_covered_though_only_two_of_each_are_timed(functions):
    rng = np.random.default_rng(functions)
    held = []
    for _ in range(1000):
        copies = rng.normal(0, 0.05, (functions, 2))
        half = between_copies(copies[:, 1] - copies[:, 0], (2, 2))
        held.append(abs(copies[0].mean() - copies[1].mean()) <= half)
    assert np.mean(held) >= 0.8  # what is known of others keeps the interval from being of no use
    alike = np.abs(rng.normal(0, 0.003, 1000)) <= between_copies([], (2, 2))
    assert np.mean(alike) >= 0.95


@pytest.mark.parametrize("degrees", [2, 4, 6, 20])
def test_the_quantile_for_few_copies_is_that_of_student(degrees):
    found = between_copies([0.002 * math.sqrt(2)] * (degrees - 2), (2, 2)) / 0.002
    assert found == pytest.approx(stats.t(degrees).ppf(0.975), rel=0.04)


def test_a_ratio_turned_around_is_its_inverse():
    rng = np.random.default_rng(5)
    a, b = noisy(rng, 101), 3 * noisy(rng, 101)
    one, other = paired_ratio(a, b), paired_ratio(b, a)
    assert other.value == pytest.approx(1 / one.value)
    assert (other.low, other.high) == pytest.approx((1 / one.high, 1 / one.low))


def test_one_round_gives_a_ratio_without_width():
    assert paired_ratio([2.0], [1.0]) == Ratio(2.0, 2.0, 2.0)


def test_widening_adds_what_is_independent():
    found = Ratio(2.0, 2 * math.exp(-0.3), 2 * math.exp(0.3)).widened(0.4)
    assert (found.value, found.low, found.high) == pytest.approx((2, 2 * math.exp(-0.5), 2 * math.exp(0.5)))


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
        (Ratio(5234.0, 5100, 5400), "×5,230 (5,100–5,400)"),
        (Ratio(0.5, 0.4, 0.8), "2.00× slower (1.25–2.50)"),
        (Ratio(0.0000245, 0.0000238, 0.0000253), "40,800× slower (39,500–42,000)"),
    ],
)
def test_a_ratio_reads_with_three_digits_and_the_same_decimals_throughout(ratio, text):
    assert repr(ratio) == str(ratio) == text


# SciPy as an oracle. The package does not need it; JAX installs it.


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
