"""Behaviour: what a model gets right, at the training length and beyond it."""

from collections.abc import Iterator

import numpy as np
import torch

from stateatlas.balance import balanced_accuracy
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


def measure(
    model: ResidualModel, sequences: Sequences, lengths: list[int], draws: int, rng: np.random.Generator
) -> Iterator[dict]:
    """Yield the rows of the behaviour table for one model."""
    for length in lengths:
        labels = sequences.get("test", length, "state")
        right = right_tokens(model, sequences.get("test", length), labels)
        low, high = bootstrap(right.sum(axis=1) / length, 1.0, rng, draws)
        accuracy = {"metric": "accuracy", "value": right.mean(), "n": right.size, "low": low, "high": high}
        balanced = {"metric": "balanced_accuracy", "value": balanced_accuracy(right, labels), "n": right.size}
        prefix = {"metric": "solved_prefix", "value": solved_prefix(right), "n": len(right)}
        for row in (accuracy, balanced, prefix):
            yield {"length": length, "low": np.nan, "high": np.nan} | row
