"""Running product of permutations of three things: a non-commutative state (protocol A).

Element i is the permutation `ELEMENTS[i]`, written as the images of 0, 1, 2. The state after tokens
g_1 ... g_t is g_1 * g_2 * ... * g_t in the convention of `sympy.combinatorics`: the left factor acts
first, (p * q)(x) = q(p(x)).
"""

import itertools

import numpy as np

ELEMENTS = np.array(list(itertools.permutations(range(3))))
_INDEX = {tuple(element): i for i, element in enumerate(ELEMENTS.tolist())}
# PRODUCT[i, j] is the index of "i first, then j".
PRODUCT = np.array([[_INDEX[tuple(q[p].tolist())] for q in ELEMENTS] for p in ELEMENTS])


class Task:
    """Uniform elements of S3; the state is the product of all elements so far (6 classes)."""

    vocabulary = 6
    min_length = 12

    def __init__(self, train_length: int):
        self.targets = {"state": 6}

    def sample(self, rng: np.random.Generator, n: int, length: int) -> np.ndarray:
        """Return (n, length) int64 indices into `ELEMENTS`."""
        return rng.integers(0, 6, size=(n, length))

    def label(self, tokens: np.ndarray) -> dict[str, np.ndarray]:
        """Return the index of the product after each element, (n, length) int64."""
        state = np.empty_like(tokens)
        state[:, 0] = tokens[:, 0]
        for t in range(1, tokens.shape[1]):
            state[:, t] = PRODUCT[state[:, t - 1], tokens[:, t]]
        return {"state": state}

    def valid(self, tokens: np.ndarray) -> np.ndarray:
        """Return which of (n, length) tokens are strings of the task, (n,) bool: all of them."""
        return np.ones(len(tokens), dtype=bool)
