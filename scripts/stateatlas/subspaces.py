"""Subspaces of the stream that are taken out: where a probe looks, where variance lies, and random ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Subspace:
    """A subspace of the stream: `basis` (width, k) with orthonormal columns."""

    name: str
    draw: int
    basis: np.ndarray

    @property
    def k(self) -> int:
        return self.basis.shape[1]

    def project_out(self, states: np.ndarray) -> np.ndarray:
        """Return states (..., width) without their part in the subspace."""
        return states - (states @ self.basis) @ self.basis.T


def probe_directions(weights: np.ndarray) -> np.ndarray:
    """Return the right-singular vectors of the centred probe weights, (width, rank), strongest first.

    Adding one vector to every class's weights changes no prediction, so the rank is at most classes - 1.
    """
    centred = weights - weights.mean(axis=0)
    _, values, vectors = np.linalg.svd(centred, full_matrices=False)
    return vectors[values > values[0] * 1e-6].T


def principal_directions(states: np.ndarray) -> np.ndarray:
    """Return the principal directions of states (n, length, width), (width, width), strongest first."""
    flat = np.asarray(states, dtype=np.float64).reshape(-1, states.shape[-1])
    _, vectors = np.linalg.eigh(np.cov(flat, rowvar=False))
    return vectors[:, ::-1].copy()  # torch takes no negative strides


def random_subspaces(rng: np.random.Generator, width: int, sizes: list[int], draws: int) -> Iterator[Subspace]:
    """Yield `draws` uniformly random subspaces of each dimension."""
    for k in sizes:
        for draw in range(draws):
            yield Subspace("random", draw, np.linalg.qr(rng.standard_normal((width, k)))[0])


def probe_subspaces(weights: np.ndarray) -> list[Subspace]:
    """Return the top direction and the whole row space of a probe (protocol A: directions (a) and (b))."""
    directions = probe_directions(weights)
    return [Subspace("top_direction", 0, directions[:, :1]), Subspace("row_space", 0, directions)]


def sweep(weights: np.ndarray, states: np.ndarray, sizes: list[int]) -> Iterator[Subspace]:
    """Yield the top principal and the top singular directions of every size, for an ablation curve."""
    directions, principal = probe_directions(weights), principal_directions(states)
    for k in sizes:
        if k <= directions.shape[1]:
            yield Subspace("probe_singular", 0, directions[:, :k])
        yield Subspace("pca", 0, principal[:, :k])
