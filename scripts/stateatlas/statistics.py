"""Intervals over seeds and of shares, and Holm's correction.

Every interval is two-sided, at 95 % unless asked otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate and its interval, in the unit of the measured values.

    `n` is the number of independent runs behind it (of a difference: of the smaller side), `se` the standard
    error and `df` the degrees of freedom of the t distribution (infinite for a normal one). All runs equal:
    `se` is 0 and the interval a point.
    """

    value: float
    low: float
    high: float
    n: int
    se: float
    df: float

    def at(self, confidence: float) -> Interval:
        """The same estimate at another confidence: value -+ t x se."""
        half = _t_quantile(confidence, self.df) * self.se if self.se else 0.0
        return replace(self, low=self.value - half, high=self.value + half)

    def pvalue(self, threshold: float) -> float:
        """The smallest alpha at which the 1 - alpha interval leaves `threshold` out."""
        distance = abs(self.value - threshold)
        if self.se == 0:
            return 0.0 if distance else 1.0
        return float(2 * stats.t.sf(distance / self.se, self.df))


def student(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Mean over seeds with Student's t, df n-1. `values`: one per seed, two or more."""
    sample = _sample(values)
    return _t_interval(_mean(sample), _standard_error(sample), sample.size - 1, sample.size, confidence)


def paired(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Mean of `first - second`, value k of both coming from the same run or seed."""
    if len(first) != len(second):
        raise ValueError(f"paired samples differ in size: {len(first)} and {len(second)}")
    return student(np.asarray(first, dtype=float) - np.asarray(second, dtype=float), confidence)


def welch(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Difference of the means of independent samples with unequal variances (Welch-Satterthwaite df)."""
    a, b = _sample(first), _sample(second)
    n = min(a.size, b.size)
    # Not from scipy's ttest_ind: it warns whenever one side is a point, and solved models often are.
    va, vb = _standard_error(a) ** 2, _standard_error(b) ** 2
    df = (va + vb) ** 2 / (va**2 / (a.size - 1) + vb**2 / (b.size - 1)) if va + vb else n - 1
    return _t_interval(_mean(a) - _mean(b), float(np.sqrt(va + vb)), df, n, confidence)


def within(value: float, low: float, high: float, confidence: float = CONFIDENCE) -> Interval:
    """The interval inside one model that a table holds already; at another confidence taken as normal."""
    error = (high - low) / (2 * _t_quantile(confidence, np.inf))
    return Interval(float(value), float(low), float(high), 1, float(error), np.inf)


def wilson(successes: int, trials: int, confidence: float = CONFIDENCE) -> Interval:
    """A share and its Wilson score interval (no continuity correction)."""
    share = stats.binomtest(successes, trials)
    limits = share.proportion_ci(confidence, method="wilson")
    value = share.statistic
    error = float(np.sqrt(value * (1 - value) / trials))
    return Interval(value, limits.low, limits.high, trials, error, np.inf)


def jackknife(
    function: Callable[[dict[str, np.ndarray]], float],
    samples: Mapping[str, Mapping[int, np.ndarray]],
    confidence: float = CONFIDENCE,
) -> Interval:
    """Jackknife over seeds of a function of several groups of profiles, with t and df n-1.

    samples: group -> seed index -> profile (sites,). `function` gets group -> array (seeds, sites) and
    returns a number, normally from the seed means. One seed index at a time is left out of every group
    that has it. n is the size of the smallest group, so a group with unsolved seeds makes the interval
    wider, never narrower.
    """
    smallest = min(len(group) for group in samples.values())
    if smallest < 2:
        raise ValueError("a jackknife over seeds needs 2 or more in every group")

    def without(left_out: int | None) -> float:
        kept = {
            name: np.stack([profile for seed, profile in group.items() if seed != left_out])
            for name, group in samples.items()
        }
        return function(kept)

    seeds = sorted(set().union(*samples.values()))
    replicates = np.array([without(seed) for seed in seeds])
    error = float(np.sqrt((len(seeds) - 1) * replicates.var())) if np.ptp(replicates) else 0.0
    return _t_interval(without(None), error, smallest - 1, smallest, confidence)


def holm(pvalues: Sequence[float], alpha: float = 1 - CONFIDENCE) -> np.ndarray:
    """Holm's step-down levels: test k is decided when its p value is at most level k.

    The smallest p value is held against alpha / m, the next against alpha / (m - 1), and so on; from the
    first that fails, all later ones stay at its level. So 1 - level is also the confidence at which to
    show each interval.
    """
    values = np.asarray(pvalues, dtype=float)
    levels = np.empty(values.size)
    steps = alpha / np.arange(values.size, 0, -1)
    order = np.argsort(values, kind="stable")
    failed = np.flatnonzero(values[order] > steps)
    if failed.size:
        steps[failed[0] :] = steps[failed[0]]
    levels[order] = steps
    return levels


def _sample(values: Sequence[float]) -> np.ndarray:
    sample = np.asarray(values, dtype=float)
    if sample.ndim != 1 or sample.size < 2:
        raise ValueError(f"an interval over seeds needs 2 or more values, got shape {sample.shape}")
    return sample


# The mean of three times 0.7 is not 0.7 in floating point: equal values are a point, exactly.
def _mean(sample: np.ndarray) -> float:
    return float(sample.mean() if np.ptp(sample) else sample[0])


def _standard_error(sample: np.ndarray) -> float:
    return float(stats.sem(sample)) if np.ptp(sample) else 0.0


def _t_quantile(confidence: float, df: float) -> float:
    return float(stats.t.ppf((1 + confidence) / 2, df))


def _t_interval(value: float, error: float, df: float, n: int, confidence: float) -> Interval:
    value = float(value)
    return Interval(value, value, value, int(n), error, float(df)).at(confidence)
