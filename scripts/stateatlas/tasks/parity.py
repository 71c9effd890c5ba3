"""Parity of a bit string: a commutative state of one bit (protocol A)."""

import numpy as np


class Task:
    """Uniform bits; the state is the parity of all bits so far (2 classes)."""

    vocabulary = 2
    min_length = 12

    def __init__(self, train_length: int):
        self.targets = {"state": 2}

    def sample(self, rng: np.random.Generator, n: int, length: int) -> np.ndarray:
        """Return (n, length) int64 bits."""
        return rng.integers(0, 2, size=(n, length))

    def label(self, tokens: np.ndarray) -> dict[str, np.ndarray]:
        """Return the parity after each bit, (n, length) int64."""
        return {"state": np.cumsum(tokens, axis=1) % 2}
