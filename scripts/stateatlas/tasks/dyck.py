"""Dyck-2 with bounded depth: a stack (protocol A).

Tokens: 0 = `(`, 1 = `[`, 2 = `)`, 3 = `]`. A string opens with probability 1/2, always at depth 0, never at
the cap; a closing bracket matches the top of the stack; a string need not end balanced. The cap is a quarter
of the training length (10 at the published length of 40), so that it is really met.
"""

import numpy as np


class Task:
    """The state is the depth (cap + 1 classes); the side target is the type of the stack's top (0 = empty)."""

    vocabulary = 4
    symbols = "([)]"  # how a language model reads the tokens
    min_length = 12

    def __init__(self, train_length: int):
        self.cap = train_length // 4
        self.targets = {"state": self.cap + 1, "stack_top": 3}

    def sample(self, rng: np.random.Generator, n: int, length: int) -> np.ndarray:
        """Return (n, length) int64 brackets."""
        opens = rng.integers(0, 2, size=(n, length)).astype(bool)
        kinds = rng.integers(0, 2, size=(n, length))
        tokens = np.empty((n, length), dtype=np.int64)
        stack = np.zeros((n, self.cap), dtype=np.int64)
        depth = np.zeros(n, dtype=np.int64)
        rows = np.arange(n)
        for t in range(length):
            opening = (opens[:, t] | (depth == 0)) & (depth < self.cap)
            up, down = rows[opening], rows[~opening]
            stack[up, depth[up]] = kinds[up, t]
            tokens[up, t] = kinds[up, t]
            tokens[down, t] = 2 + stack[down, depth[down] - 1]
            depth += np.where(opening, 1, -1)
        return tokens

    def label(self, tokens: np.ndarray) -> dict[str, np.ndarray]:
        """Return depth and type of the stack's top after each bracket, (n, length) int64 each."""
        n, length = tokens.shape
        depth = np.cumsum(np.where(tokens < 2, 1, -1), axis=1)
        stack = np.zeros((n, length + 1), dtype=np.int64)
        top = np.empty_like(tokens)
        rows = np.arange(n)
        for t in range(length):
            opening = tokens[:, t] < 2
            stack[rows[opening], depth[opening, t]] = tokens[opening, t] + 1
            top[:, t] = stack[rows, depth[:, t]]
        return {"state": depth, "stack_top": top}
