"""Numbers of study B with their 95 % intervals: a percentile bootstrap over prompts (protocol, intervals)."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import rankdata

from stateatlas.resampling import bootstrap

PART = 200  # draws at once


class Intervals:
    """Estimates with intervals, as the columns value, n (prompts), low and high of a table.

    Prompts without a number (NaN) are left out; fewer than two with one give NaN.
    """

    def __init__(self, draws: int, rng: np.random.Generator):
        self.draws, self.rng = draws, rng

    def mean(self, values: Sequence[float]) -> dict:
        """Mean of one number a prompt, (prompts,)."""
        return self.ratio(values, np.ones(len(values)))

    def ratio(self, sums: Sequence[float], counts: Sequence[float]) -> dict:
        """Sum of `sums` over sum of `counts`, one of each a prompt."""
        sums, counts = np.asarray(sums, float), np.asarray(counts, float)
        known = np.isfinite(sums) & (counts > 0)
        sums, counts = sums[known], counts[known]
        if len(sums) < 2:
            return _row(np.nan, len(sums), np.nan, np.nan)
        low, high = bootstrap(sums, counts, self.rng, self.draws)
        return _row(sums.sum() / counts.sum(), len(sums), float(low), float(high))

    def median(self, parts: Sequence[np.ndarray]) -> dict:
        """Median of all values (the lower one of two in the middle); every prompt has an array of them."""
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return _row(np.nan, len(parts), np.nan, np.nan)
        values = np.concatenate(parts)
        owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        order = np.argsort(values, kind="stable")
        medians = []
        for first in range(0, self.draws, PART):
            times = self._times(len(parts), min(PART, self.draws - first))
            below = times[:, owner[order]].cumsum(axis=1)  # how many drawn values are at most this one
            medians.append(values[order[(2 * below >= below[:, -1:]).argmax(axis=1)]])
        middle = np.sort(values)[(len(values) - 1) // 2]
        return _row(middle, len(parts), *np.quantile(np.concatenate(medians), [0.025, 0.975]))

    def of(self, statistic: Callable[..., float], *columns: Sequence[np.ndarray]) -> dict:
        """A statistic of columns of values, each an array a prompt, put together over prompts."""
        number = len(columns[0])
        if number < 2:
            return _row(np.nan, number, np.nan, np.nan)
        drawn = [self.rng.integers(0, number, number) for _ in range(self.draws)]
        values = [statistic(*(np.concatenate([column[i] for i in index]) for column in columns)) for index in drawn]
        whole = statistic(*(np.concatenate(list(column)) for column in columns))
        return _row(whole, number, *np.nanquantile(values, [0.025, 0.975]))

    def spearman(self, x: np.ndarray, y: np.ndarray) -> dict:
        """Spearman's correlation of the values of all prompts together; x and y are (prompts, values).

        All draws at once: one by one they would take seconds.
        """
        index = self.rng.integers(0, len(x), (self.draws, len(x)))
        whole, drawn = (
            (x[rows].reshape(len(rows), -1), y[rows].reshape(len(rows), -1))
            for rows in (np.arange(len(x))[None], index)
        )
        low, high = np.nanquantile(_rank_correlations(*drawn), [0.025, 0.975])
        return _row(_rank_correlations(*whole)[0], len(x), low, high)

    def _times(self, number: int, draws: int) -> np.ndarray:
        return self.rng.multinomial(number, np.full(number, 1 / number), size=draws).astype(np.int32)


def _rank_correlations(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman's correlation of every row, (rows,); NaN where one side does not vary."""
    ranks = (rankdata(side, axis=1) for side in (x, y))
    x, y = (rank - rank.mean(axis=1, keepdims=True) for rank in ranks)
    size = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    return np.divide((x * y).sum(axis=1), size, out=np.full(len(x), np.nan), where=size > 0)


def plain(value: float, n: int) -> dict:
    """A number that has no interval."""
    return _row(value, n, np.nan, np.nan)


def _row(value: float, n: int, low: float, high: float) -> dict:
    return {"value": float(value), "n": int(n), "low": float(low), "high": float(high)}
