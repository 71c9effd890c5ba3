"""A bounded queue: first in, first out; held out beside Dyck (protocol A, A18).

Tokens: 0 and 1 put a symbol in at the back, 2 takes the one at the front out. A string puts in with probability
1/2, always when the queue is empty, never at the cap, which is that of Dyck: a quarter of the training length.
"""

import numpy as np

TAKE = 2


class Task:
    """The state is the symbol at the front after each token: 0 and 1, or 2 when the queue is empty."""

    vocabulary = 3
    min_length = 12

    def __init__(self, train_length: int):
        self.cap = train_length // 4
        self.targets = {"state": 3}

    def sample(self, rng: np.random.Generator, n: int, length: int) -> np.ndarray:
        """Return (n, length) int64 tokens."""
        puts = rng.integers(0, 2, size=(n, length)).astype(bool)
        symbols = rng.integers(0, 2, size=(n, length))
        size = np.zeros(n, dtype=np.int64)
        tokens = np.empty((n, length), dtype=np.int64)
        for t in range(length):
            put = (puts[:, t] | (size == 0)) & (size < self.cap)
            tokens[:, t] = np.where(put, symbols[:, t], TAKE)
            size += np.where(put, 1, -1)
        return tokens

    def label(self, tokens: np.ndarray) -> dict[str, np.ndarray]:
        """Return the front after each token, (n, length) int64."""
        rows = np.arange(len(tokens))
        line = np.full((len(tokens), tokens.shape[1] + 1), TAKE)  # what was put in, in order
        put, taken = np.zeros((2, len(tokens)), dtype=np.int64)
        front = np.empty_like(tokens)
        for t in range(tokens.shape[1]):
            puts = tokens[:, t] != TAKE
            line[rows[puts], put[puts]] = tokens[puts, t]
            put, taken = put + puts, taken + ~puts
            front[:, t] = line[rows, taken]
        return {"state": front}

    def valid(self, tokens: np.ndarray) -> np.ndarray:
        """Return which of (n, length) tokens are strings of the task, (n,) bool: the queue keeps to its bounds."""
        size = np.cumsum(np.where(tokens == TAKE, -1, 1), axis=1)
        return (size >= 0).all(axis=1) & (size <= self.cap).all(axis=1)
