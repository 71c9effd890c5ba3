"""Which prefixes of the test sequences a training has seen: at short lengths, most of them (protocol A, *data*)."""

import numpy as np


class Coverage:
    """Prefixes of `tests`, (n, length) int64, that occurred at the start of a training sequence.

    `seen` is (n, length) bool: whether the prefix that ends at a position did.
    """

    def __init__(self, tests: np.ndarray):
        self._codes = _codes(tests)
        self.seen = np.zeros(tests.shape, dtype=bool)

    def add(self, tokens: np.ndarray) -> None:
        """Take in a batch of training sequences, (batch, up to length) int64."""
        for position, codes in enumerate(_codes(tokens).T):
            if self.seen[:, position].all():
                continue
            met = np.isin(self._codes[:, position], codes)
            if not met.any():
                return  # then none of the longer ones is met either
            self.seen[:, position] |= met

    def covered_prefix(self, share: float = 0.99) -> int:
        """Return the longest length at which at least `share` of the test prefixes were seen."""
        covered = self.seen.mean(axis=0) >= share
        return len(covered) if covered.all() else int(np.argmin(covered))


def _codes(tokens: np.ndarray) -> np.ndarray:
    """Return a number for every prefix, (n, length) uint64; wraps around at lengths where none repeats anyway."""
    codes = np.empty(tokens.shape, dtype=np.uint64)
    code = np.zeros(len(tokens), dtype=np.uint64)
    for position, column in enumerate(tokens.astype(np.uint64).T):
        code = code * np.uint64(0x9E3779B97F4A7C15) + column + np.uint64(1)
        codes[:, position] = code
    return codes
