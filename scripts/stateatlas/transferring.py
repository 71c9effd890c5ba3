"""Cross-scale transfer (protocol B10): does a small model's map of |a| predict the large one's?

Maps are over relative depth and token, the first token and the final site left out. Anchors are sites of the large
model whose |a| is known: they correct the prediction by a ridge regression and are not predicted themselves. The
baselines are the small model's mean by token, and its mean by depth, corrected by the same anchors.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stateatlas.field import Field
from stateatlas.linearity import spearman
from stateatlas.over_prompts import Intervals

PREDICTORS = ("map", "token", "depth")
TOP = 0.1  # of the sites: what recall is of
RIDGE = 1.0  # pull of the correction towards none


@dataclass
class Transfer:
    """How well each predictor does on one prompt, (predictors, anchor numbers)."""

    spearman: np.ndarray
    recall: np.ndarray


def measure(small: Field, large: Field, anchors: list[int], rng: np.random.Generator) -> Transfer:
    """Compare the maps of a prompt that two models read as the same tokens."""
    truth = _map(large)
    aligned = _at_depths(_map(small), small.model.depth, large.model.depth)
    guesses = {
        "map": aligned,
        "token": np.broadcast_to(aligned.mean(axis=0, keepdims=True), aligned.shape),
        "depth": np.broadcast_to(aligned.mean(axis=1, keepdims=True), aligned.shape),
    }
    order = rng.permutation(truth.size)  # more anchors are the fewer ones and others
    found = Transfer(*(np.full((len(PREDICTORS), len(anchors)), np.nan) for _ in range(2)))
    for column, number in enumerate(anchors):
        known, rest = order[:number], np.sort(order[number:])
        for row, name in enumerate(PREDICTORS):
            guess = corrected(guesses[name], truth, known).ravel()[rest]
            found.spearman[row, column] = spearman(guess, truth.ravel()[rest])
            found.recall[row, column] = recall(guess, truth.ravel()[rest])
    return found


def _map(field: Field) -> np.ndarray:
    """Return log |a|, (sites, tokens); a place that does not count at all is as far down as numbers go."""
    scores = field.scores[:-1, 1:]
    return np.log(np.maximum(scores, np.finfo(float).eps * scores.max()))


def _at_depths(values: np.ndarray, depth: int, other: int) -> np.ndarray:
    """Return the map of a model with `depth` blocks at the relative depths of the inputs of `other` blocks."""
    here, there = np.arange(depth) / depth, np.arange(other) / other
    return np.stack([np.interp(there, here, column) for column in values.T], axis=1)


def corrected(guess: np.ndarray, truth: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the guess plus a plane over depth and token, fitted to what it misses at the known places.

    guess, truth: (sites, tokens), logarithms; known: flat indices. Without any the guess is returned as it is. Of the
    plane's coefficients only the constant is not pulled towards 0.
    """
    if not len(known):
        return guess
    axes = np.meshgrid(*(np.linspace(-1, 1, size) for size in guess.shape), indexing="ij")
    centred = guess - guess.mean()
    terms = np.stack([np.ones(guess.size), *(axis.ravel() for axis in axes), centred.ravel()], axis=1)
    x, y = terms[known], (truth - guess).ravel()[known]
    pull = RIDGE * np.diag([1e-9, 1.0, 1.0, 1.0])
    return guess + (terms @ np.linalg.solve(x.T @ x + pull, x.T @ y)).reshape(guess.shape)


def recall(guess: np.ndarray, truth: np.ndarray) -> float:
    """Share of the tenth of the places that is largest in truth that is also in the tenth largest by guess."""
    number = max(1, round(TOP * len(truth)))
    tops = [set(np.argsort(-values, kind="stable")[:number]) for values in (guess, truth)]
    return len(tops[0] & tops[1]) / number


def rows(found: list[Transfer], anchors: list[int], intervals: Intervals) -> Iterator[dict]:
    """Yield the rows of the table `transfer`; the best baseline is chosen on the mean, anew in every draw."""
    for column, number in enumerate(anchors):
        cell = {"anchors": number}
        for row, name in enumerate(PREDICTORS):
            for metric in ("spearman", "recall"):
                values = [getattr(prompt, metric)[row, column] for prompt in found]
                yield cell | {"predictor": name, "metric": metric} | intervals.mean(values)
        columns = [[prompt.spearman[None, row, column] for prompt in found] for row in range(len(PREDICTORS))]
        yield cell | {"predictor": "map", "metric": "spearman_minus_best_baseline"} | intervals.of(_gain, *columns)


def _gain(own: np.ndarray, *baselines: np.ndarray) -> float:
    return float(np.nanmean(own) - max(np.nanmean(baseline) for baseline in baselines))
