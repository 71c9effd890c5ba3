"""Linear probes: what can be read at a site (protocol A, *probe*).

A probe is scikit-learn's multinomial logistic regression on standardised features, fitted on sequences that are
disjoint from the test sequences. Only fitting needs scikit-learn.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

_FIELDS = ("weights", "bias", "classes")


@dataclass(frozen=True)
class Probe:
    """A fitted probe in the coordinates of the stream.

    `weights` (classes, width) and `bias` (classes,) act on raw states; `classes` are the labels.
    """

    weights: np.ndarray
    bias: np.ndarray
    classes: np.ndarray

    def hits(self, states: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return which tokens are right, (n, length) bool; states (n, length, width), labels (n, length)."""
        return self.classes[np.argmax(states @ self.weights.T + self.bias, axis=-1)] == labels

    def right(self, states: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the number of right tokens per sequence."""
        return self.hits(states, labels).sum(axis=1)


def fit(states: np.ndarray, labels: np.ndarray) -> Probe:
    """Fit a probe on states (n, length, width) and labels (n, length).

    Raises
    ------
    ConvergenceWarning, LinAlgWarning
        As errors: a probe that has not converged, or was handed to another solver half-way, measures the optimiser.
    """
    from scipy.linalg import LinAlgWarning
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    features = np.asarray(states, dtype=np.float64).reshape(-1, states.shape[-1])
    scaler = StandardScaler().fit(features)
    # One optimum, reached by Newton's method in few steps: a probe that reads little takes L-BFGS hundreds. The
    # Hessian of two classes is small enough to be solved outright.
    solver = "newton-cholesky" if len(np.unique(labels)) == 2 else "newton-cg"
    regression = LogisticRegression(solver=solver, max_iter=2000)
    with warnings.catch_warnings():
        for sign in (ConvergenceWarning, LinAlgWarning):
            warnings.simplefilter("error", sign)
        regression.fit(scaler.transform(features), labels.ravel())
    weights, bias = regression.coef_, regression.intercept_
    if len(regression.classes_) == 2:  # scikit-learn keeps one row for two classes
        weights, bias = np.vstack([-weights, weights]) / 2, np.hstack([-bias, bias]) / 2
    weights = weights / scaler.scale_
    return Probe(weights, bias - weights @ scaler.mean_, regression.classes_)


def position_token(tokens: np.ndarray, vocabulary: int) -> np.ndarray:
    """Return one-hot position beside one-hot token: what is known without any state, (n, length, features)."""
    n, length = tokens.shape
    position = np.broadcast_to(np.eye(length), (n, length, length))
    return np.concatenate([position, np.eye(vocabulary)[tokens]], axis=-1)


def save(path: Path, probes: dict[int, Probe]) -> None:
    """Write one probe per site."""
    arrays = {f"{site}/{field}": getattr(probe, field) for site, probe in probes.items() for field in _FIELDS}
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)


def load(path: Path) -> dict[int, Probe]:
    """Read the probes by site."""
    arrays = load_file(path)
    sites = sorted({int(name.split("/")[0]) for name in arrays})
    return {site: Probe(*(arrays[f"{site}/{field}"] for field in _FIELDS)) for site in sites}
