"""Code-Depth: the nesting depth of Python functions of a corpus (protocol A).

Tokens are operators, keywords and types of tokens (`code_depth.KINDS`). A sequence is the beginning of a function; a
function that is shorter than a sequence is not drawn for it.
"""

from pathlib import Path

import numpy as np

from stateatlas.code_depth import CAP, CHANGE, KINDS
from stateatlas.corpora import SPLITS, file

_CHANGE = np.array([CHANGE.get(kind, 0) for kind in KINDS])


class Task:
    """The state is the number of open brackets, at most 10 at every training length (11 classes)."""

    reads = "code"  # the corpus that it draws from
    min_length = 12

    def __init__(self, train_length: int, corpus: Path):
        self.vocabulary = len(KINDS)
        self.targets = {"state": CAP + 1}
        self._functions = {split: _Functions(file.read(corpus, split, "kinds")) for split in SPLITS}

    def sample(self, rng: np.random.Generator, n: int, length: int, split: str) -> np.ndarray:
        """Return the first `length` tokens of functions of a split, drawn with replacement, (n, length) int64.

        Raises
        ------
        ValueError
            If no function of the split is that long.
        """
        return self._functions[split].beginnings(rng, n, length)

    def label(self, tokens: np.ndarray) -> dict[str, np.ndarray]:
        """Return the depth after each token, (n, length) int64."""
        return {"state": np.minimum(np.cumsum(_CHANGE[tokens], axis=1), CAP)}


class _Functions:
    """The functions of a split, one after the other, the longest first."""

    def __init__(self, kinds: list[bytes]):
        ordered = sorted(kinds, key=len, reverse=True)
        self.tokens = np.frombuffer(b"".join(ordered), dtype=np.uint8)
        self.lengths = np.array([len(function) for function in ordered], dtype=np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths

    def beginnings(self, rng: np.random.Generator, n: int, length: int) -> np.ndarray:
        long_enough = int((self.lengths >= length).sum())
        if not long_enough:
            raise ValueError(f"no function of the corpus has {length} tokens: take a larger one or shorter lengths")
        first = self.starts[rng.integers(0, long_enough, n)]
        return self.tokens[first[:, None] + np.arange(length)].astype(np.int64)
