"""Accuracy that a frequent class does not carry: for tasks whose classes come in very unequal numbers."""

import numpy as np


def balanced_accuracy(right: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean over classes of the share of their tokens that are right; classes without tokens do not count.

    right: bool, labels: int, of one shape. The definition of scikit-learn's `balanced_accuracy_score`.
    """
    total = np.bincount(labels.ravel())
    hits = np.bincount(labels.ravel(), weights=right.ravel())
    return float(np.mean(hits[total > 0] / total[total > 0]))
