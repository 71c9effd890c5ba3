"""Behaviour: what a model gets right, at the training length and beyond it."""

from collections.abc import Iterator

import numpy as np
import torch

from stateatlas.resampling import bootstrap
from stateatlas.residual import ResidualModel
from stateatlas.sequences import Sequences

SOLVED_POSITION = 0.95  # a prefix is solved when every position in it is (protocol A)


@torch.inference_mode()
def right_tokens(model: ResidualModel, tokens: np.ndarray, labels: np.ndarray, chunk: int = 256) -> np.ndarray:
    """Return which tokens the model gets right, (n, length) bool."""
    device = next(model.parameters()).device
    parts = [
        model(torch.from_numpy(tokens[i : i + chunk]).to(device)).argmax(-1).cpu().numpy() == labels[i : i + chunk]
        for i in range(0, len(tokens), chunk)
    ]
    return np.concatenate(parts)


def solved_prefix(right: np.ndarray) -> int:
    """Return the length of the longest prefix with every position at 95 % or more; right (n, length) bool."""
    solved = right.mean(axis=0) >= SOLVED_POSITION
    return len(solved) if solved.all() else int(np.argmin(solved))


def balanced_accuracy(right: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean over classes of the share of their tokens that are right; classes without tokens do not count.

    right: bool, labels: int, of one shape. The definition of scikit-learn's `balanced_accuracy_score`.
    """
    total = np.bincount(labels.ravel())
    hits = np.bincount(labels.ravel(), weights=right.ravel())
    return float(np.mean(hits[total > 0] / total[total > 0]))


def measure(
    model: ResidualModel, sequences: Sequences, lengths: list[int], draws: int, rng: np.random.Generator
) -> Iterator[tuple[dict, np.ndarray]]:
    """Yield the rows of the behaviour table for one model, and its right tokens (n, length) at each length."""
    for length in lengths:
        right = right_tokens(model, sequences.get("test", length), sequences.get("test", length, "state"))
        low, high = bootstrap(right.sum(axis=1) / length, 1.0, rng, draws)
        accuracy = {"metric": "accuracy", "value": right.mean(), "n": right.size, "low": low, "high": high}
        prefix = {
            "metric": "solved_prefix",
            "value": solved_prefix(right),
            "n": len(right),
            "low": np.nan,
            "high": np.nan,
        }
        for row in (accuracy, prefix):
            yield {"length": length} | row, right
