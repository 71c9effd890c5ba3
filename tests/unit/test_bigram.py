"""The bigram model: probabilities, the definition applied literally, and another library's Kneser-Ney."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from stateatlas import bigram

V = 9


@pytest.fixture
def windows() -> np.ndarray:
    """Pairs with a lean; token 7 is never followed, token 8 never seen."""
    rng = np.random.default_rng(0)
    rows = np.minimum(rng.geometric(0.35, size=(20, 12)) - 1, 6).astype(np.uint16)
    rows[:, 1::3] = (rows[:, 0:-1:3] + 1) % 7
    rows[3, -1] = 7
    return rows


def literal(windows: np.ndarray, previous: int, token: int) -> float:
    """p(token | previous) from the formula, counted pair by pair."""
    pairs = Counter((int(a), int(b)) for row in windows for a, b in pairwise(row))
    before = Counter(w for _, w in pairs)

    def ney(counts):
        ones, twos = (sum(c == k for c in counts.values()) for k in (1, 2))
        return ones / (ones + 2 * twos) if ones else 0.5

    d1, d2 = ney(before), ney(pairs)
    kinds = sum(before.values())
    q = max(before[token] - d1, 0) / kinds + d1 * len(before) / kinds / V
    after = {w: c for (v, w), c in pairs.items() if v == previous}
    if not after:
        return q
    total = sum(after.values())
    return max(after.get(token, 0) - d2, 0) / total + d2 * len(after) / total * q


def test_it_is_the_definition(windows):
    found = bigram.fit(windows, V)
    assert found.dtype == np.float64
    for previous in range(V):
        for token in range(V):
            assert found[previous, token] == pytest.approx(math.log(literal(windows, previous, token)), abs=1e-12)


def test_probabilities_sum_to_one_and_none_is_zero(windows):
    found = np.exp(bigram.fit(windows, V))
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-14)
    assert found.min() > 0


def test_loss_is_the_mean_over_all_pairs(windows):
    table = bigram.fit(windows, V)
    pairs = [(a, b) for row in windows for a, b in pairwise(row)]
    assert bigram.loss(table, windows) == pytest.approx(np.mean([-table[a, b] for a, b in pairs]), abs=1e-12)


def test_pairs_never_span_two_windows():
    windows = np.array([[0, 1], [2, 3]], np.uint16)
    found = np.exp(bigram.fit(windows, 4))
    np.testing.assert_array_equal(found, np.exp(bigram.fit(windows[::-1], 4)))
    np.testing.assert_array_equal(found[1], found[3])  # neither is followed by anything


def test_it_knows_pairs_and_beats_the_unigram(windows):
    table = bigram.fit(windows, V)
    share = np.bincount(windows.ravel(), minlength=V) / windows.size
    assert bigram.loss(table, windows) < -(share[share > 0] * np.log(share[share > 0])).sum() - 0.1


def test_it_is_nltks_where_both_say_the_same():
    """nltk takes one discount, and none for the unigram."""
    smoothing = pytest.importorskip("nltk.lm.smoothing", reason="nltk is not installed")
    from nltk.lm import KneserNeyInterpolated

    assert smoothing
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 5, size=(30, 8)) ** 2 // 4
    model = KneserNeyInterpolated(2, discount=0.4)
    words = [[str(token) for token in row] for row in rows]
    model.fit([[*pairwise(row), *((word,) for word in row)] for row in words], [str(token) for token in range(5)])
    counts = np.zeros((5, 5), int)
    np.add.at(counts, (rows[:, :-1].ravel(), rows[:, 1:].ravel()), 1)
    before = (counts > 0).sum(axis=0)
    found = bigram.smooth(counts, 0.4, before / before.sum())
    for v in range(5):
        for w in range(5):
            if counts[v].any() and before[w]:
                assert found[v, w] == pytest.approx(model.score(str(w), [str(v)]), abs=1e-12)
