"""Prefix coverage, against the literal definition."""

import numpy as np

from stateatlas.coverage import Coverage


def test_seen_prefixes_are_those_of_the_training_sequences():
    rng = np.random.default_rng(0)
    tests, batches = rng.integers(0, 3, (40, 8)), [rng.integers(0, 3, (20, n)) for n in (8, 5, 8)]
    coverage = Coverage(tests)
    for batch in batches:
        coverage.add(batch)
    prefixes = {tuple(row[: n + 1]) for batch in batches for row in batch for n in range(batch.shape[1])}
    literal = [[tuple(row[: n + 1]) in prefixes for n in range(8)] for row in tests]
    np.testing.assert_array_equal(coverage.seen, literal)


def test_covered_prefix_ends_where_less_than_the_share_was_seen():
    coverage = Coverage(np.array([[0, 0, 0], [1, 1, 1]]))
    assert coverage.covered_prefix() == 0
    coverage.add(np.array([[0, 0, 0], [1, 1, 0]]))
    assert coverage.covered_prefix() == 2
    coverage.add(np.array([[1, 1, 1]]))
    assert coverage.covered_prefix() == 3
