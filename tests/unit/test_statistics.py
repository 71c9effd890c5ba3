"""Intervals agree with scipy's, and with what they are defined to be where scipy has none."""

import numpy as np
import pytest
from scipy import stats

from stateatlas import statistics
from stateatlas.resampling import bootstrap

SAMPLES = [
    ([0.91, 0.94, 0.9], [0.5, 0.71, 0.62]),
    ([1.0, 1.0, 1.0, 1.0], [0.9, 0.92, 0.91, 0.95]),
    ([0.2, 0.4], [0.1, 0.9]),
]


def ends(interval):
    return interval.low, interval.high


@pytest.mark.parametrize("values", [[0.91, 0.94, 0.9], [0.2, 0.4], [1, 2, 3, 4, 6]])
def test_student_is_the_one_sample_t_interval(values):
    interval = statistics.student(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert ends(interval) == pytest.approx(tuple(expected))
    assert (interval.value, interval.n, interval.df) == (
        pytest.approx(np.mean(values)),
        len(values),
        len(values) - 1,
    )


def test_student_of_three_seeds_by_hand():
    # t(.975, 2) = 4.302653 and the standard error of 1, 2, 3 is 1 / sqrt(3).
    assert ends(statistics.student([1, 2, 3])) == pytest.approx((2 - 2.484138, 2 + 2.484138), abs=1e-6)


def test_equal_seeds_are_a_point():
    point = statistics.student([0.7] * 3)
    assert (point.low, point.value, point.high, point.se) == (0.7, 0.7, 0.7, 0)


def test_one_seed_has_no_interval_over_seeds():
    with pytest.raises(ValueError, match="2 or more"):
        statistics.student([0.5])


@pytest.mark.parametrize(("first", "second"), SAMPLES)
def test_welch_is_scipys(first, second):
    interval = statistics.welch(first, second)
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert ends(interval) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert interval.df == pytest.approx(expected.df)
    assert interval.n == len(first)


def test_welch_of_two_points_is_a_point():
    interval = statistics.welch([1.0, 1.0], [0.25, 0.25, 0.25])
    assert ends(interval) == (0.75, 0.75)
    assert interval.n == 2


@pytest.mark.parametrize(("first", "second"), SAMPLES)
def test_paired_is_scipys(first, second):
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert ends(statistics.paired(first, second)) == pytest.approx(tuple(expected))


def test_pairs_have_to_match():
    with pytest.raises(ValueError, match="differ in size"):
        statistics.paired([1, 2], [1, 2, 3])


@pytest.mark.parametrize(("successes", "trials"), [(0, 3), (2, 3), (3, 3), (17, 40)])
def test_wilson_by_its_formula(successes, trials):
    z = stats.norm.ppf(0.975)
    share = successes / trials
    centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    interval = statistics.wilson(successes, trials)
    assert ends(interval) == pytest.approx((centre - half, centre + half))
    assert (interval.value, interval.n) == (share, trials)


def test_another_confidence_rescales_the_interval():
    values = [0.91, 0.94, 0.9, 0.97]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.99)
    assert ends(statistics.student(values).at(0.99)) == pytest.approx(tuple(expected))


def test_an_interval_inside_a_model_is_taken_as_normal_elsewhere():
    interval = statistics.within(0.5, 0.5 - 0.196, 0.5 + 0.196)
    assert ends(interval.at(0.99)) == pytest.approx((0.5 - 0.2576, 0.5 + 0.2576), abs=1e-4)


@pytest.mark.parametrize("threshold", [0.8, 0.9, 0.93])
def test_p_value_is_that_of_the_t_test(threshold):
    values = [0.91, 0.94, 0.9]
    assert statistics.student(values).pvalue(threshold) == pytest.approx(stats.ttest_1samp(values, threshold).pvalue)


def test_p_value_of_a_point():
    point = statistics.student([0.5, 0.5])
    assert (point.pvalue(0.5), point.pvalue(0.4)) == (1, 0)


def test_bootstrap_agrees_with_scipys_percentile():
    generator = np.random.default_rng(1)
    counts = generator.integers(5, 40, size=80)
    sums = generator.binomial(counts, generator.uniform(0.4, 1.0, size=80))
    low, high = bootstrap(sums, counts, np.random.default_rng(2), draws=20_000)
    expected = stats.bootstrap(
        (sums, counts),
        lambda s, c, axis: s.sum(axis) / c.sum(axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=20_000,
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=2e-3)


def test_bootstrap_is_clustered():
    # 20 tokens of a sequence are all right or all wrong: as wide as 50 coin tosses, not as 1,000.
    sums = np.repeat([0, 20], 25)
    low, high = bootstrap(sums, np.full(50, 20), np.random.default_rng(0), 2000)
    assert high - low == pytest.approx(2 * 1.96 * 0.5 / np.sqrt(50), rel=0.1)


def test_bootstrap_of_many_measurements_is_that_of_each():
    sums = np.random.default_rng(4).binomial(20, 0.8, size=(3, 2, 60))
    low, high = bootstrap(sums, np.full(60, 20), np.random.default_rng(5), 2000)
    alone = bootstrap(sums[2, 1], np.full(60, 20), np.random.default_rng(5), 2000)
    assert low.shape == high.shape == (3, 2)
    assert (low[2, 1], high[2, 1]) == (alone[0], alone[1])


def test_bootstrap_needs_sequences():
    with pytest.raises(ValueError, match="2 or more"):
        bootstrap([5], [9], np.random.default_rng(0), 2000)


def mean_of_means(samples):
    return float(np.mean([profiles.mean() for profiles in samples.values()]))


def test_jackknife_of_a_mean_is_students_interval():
    values = [0.3, 0.5, 0.1, 0.8]
    samples = {"own": {seed: np.array([value]) for seed, value in enumerate(values)}}
    interval = statistics.jackknife(mean_of_means, samples)
    assert ends(interval) == pytest.approx(ends(statistics.student(values)))
    assert (interval.value, interval.df) == (pytest.approx(np.mean(values)), 3)


def test_jackknife_leaves_a_seed_out_of_all_groups_at_once():
    # The two groups differ by a constant, so their difference is the same whichever seed is left out.
    first = {seed: np.array([value, 1.0]) for seed, value in enumerate([0.3, 0.5, 0.1])}
    second = {seed: profile - 0.2 for seed, profile in first.items()}
    interval = statistics.jackknife(
        lambda s: float((s["a"].mean(0) - s["b"].mean(0)).mean()), {"a": first, "b": second}
    )
    assert ends(interval) == pytest.approx((0.2, 0.2), abs=1e-12)


def test_jackknife_counts_the_smallest_group():
    samples = {
        "a": {0: np.array([0.1]), 1: np.array([0.2]), 2: np.array([0.4])},
        "b": {0: np.array([0.5]), 2: np.array([0.9])},
    }
    interval = statistics.jackknife(mean_of_means, samples)
    assert (interval.n, interval.df) == (2, 1)
    with pytest.raises(ValueError, match="2 or more in every group"):
        statistics.jackknife(mean_of_means, {"a": samples["a"], "b": {0: np.array([1.0])}})


def adjusted(pvalues):
    """Holm's adjusted p values, straight from the definition."""
    order = np.argsort(pvalues)
    steps = (len(pvalues) - np.arange(len(pvalues))) * np.asarray(pvalues)[order]
    result = np.empty(len(pvalues))
    result[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return result


@pytest.mark.parametrize(
    "pvalues", [[0.01, 0.04, 0.03, 0.005], [0.2, 0.001], [0.02], [0.03, 0.03, 0.03], [0.016, 0.9, 0.024]]
)
def test_holm_decides_as_the_adjusted_p_values_do(pvalues):
    decided = np.asarray(pvalues) <= statistics.holm(pvalues)
    assert decided.tolist() == (adjusted(pvalues) <= 0.05).tolist()


def test_holm_levels_by_hand():
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.05 / 3, 0.05 / 2, 0.05 / 2, 0.05 / 4])
    assert statistics.holm([]).size == 0
