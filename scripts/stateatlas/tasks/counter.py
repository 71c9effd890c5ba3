"""What the cyclic tasks share: a running sum modulo some number."""

import numpy as np


class Counter:
    """Uniform elements of the cyclic group Z_m; the state is the sum of all elements so far.

    A subclass sets `vocabulary`, which is m and also the number of classes, and `min_length`.
    """

    def __init__(self, train_length: int):
        self.targets = {"state": self.vocabulary}

    def sample(self, rng: np.random.Generator, n: int, length: int) -> np.ndarray:
        """Return (n, length) int64 elements."""
        return rng.integers(0, self.vocabulary, size=(n, length))

    def label(self, tokens: np.ndarray) -> dict[str, np.ndarray]:
        """Return the sum after each element, (n, length) int64."""
        return {"state": np.cumsum(tokens, axis=1) % self.vocabulary}

    def valid(self, tokens: np.ndarray) -> np.ndarray:
        """Return which of (n, length) tokens are strings of the task, (n,) bool: all of them."""
        return np.ones(len(tokens), dtype=bool)
