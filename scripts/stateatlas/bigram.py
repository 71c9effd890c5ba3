"""The yardstick of the minis: a bigram model with interpolated Kneser-Ney smoothing (Chen & Goodman 1999, section 2.7).

With c the counts of pairs, N(v .) the different tokens after v, N(. w) the different tokens before w and N the
different pairs, V the vocabulary, and a discount d of each order:

    p(w | v) = max(c(v w) - d2, 0) / c(v .) + d2 N(v .) / c(v .) * q(w)
    q(w)     = max(N(. w) - d1, 0) / N      + d1 #{w: N(. w) > 0} / N * 1 / V

Both discounts are Ney's estimate n1 / (n1 + 2 n2) from the numbers of ones and twos among the counts that they lower.
The step to 1 / V gives every token a probability, the ones never seen too.
"""

import numpy as np


def fit(windows: np.ndarray, vocabulary: int) -> np.ndarray:
    """Return log p(next | previous) in nats, (vocabulary, vocabulary) float64, from (n, length) windows of token ids.

    A pair never spans two windows. Memory: three tables of the result's size, 8 MiB each for 1024 tokens.
    """
    previous, following = windows[:, :-1].astype(np.int64).ravel(), windows[:, 1:].ravel()
    pairs = np.bincount(previous * vocabulary + following, minlength=vocabulary**2).reshape(vocabulary, vocabulary)
    return np.log(smooth(pairs, discount(pairs), smooth_unigram((pairs > 0).sum(axis=0))))


def smooth_unigram(counts: np.ndarray) -> np.ndarray:
    """Return q from N(. w), both (vocabulary,)."""
    uniform = np.full(len(counts), 1 / len(counts))
    return smooth(counts[None], discount(counts), uniform)[0]


def discount(counts: np.ndarray) -> float:
    """Return Ney's discount n1 / (n1 + 2 n2); 0.5 where no count is 1, so that unseen events keep some mass."""
    ones, twos = int((counts == 1).sum()), int((counts == 2).sum())
    return ones / (ones + 2 * twos) if ones else 0.5


def smooth(counts: np.ndarray, lowered: float, backoff: np.ndarray) -> np.ndarray:
    """Lower every count of a (rows, vocabulary) table by `lowered` and hand what is freed in a row to `backoff`.

    A row without counts is `backoff` itself.
    """
    total = counts.sum(axis=1, keepdims=True)
    kept = np.maximum(counts - lowered, 0)
    freed = np.where(total > 0, total - kept.sum(axis=1, keepdims=True), 1)
    return (kept + freed * backoff) / np.maximum(total, 1)


def loss(log_probability: np.ndarray, windows: np.ndarray) -> float:
    """Return the mean nats of the tokens after the first, over all windows."""
    return float(-log_probability[windows[:, :-1], windows[:, 1:]].mean())
