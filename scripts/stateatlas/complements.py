"""Control sets of units: as many as in a set, block by block, drawn from the others (protocol C)."""

import numpy as np

from stateatlas.units import Units

NEAREST = 4  # units of most similar norm that one is drawn from


def as_units(chosen: np.ndarray) -> Units:
    """Return a set, (blocks, units) bool, as lists by block; blocks without any are left out."""
    return {block: np.flatnonzero(row).tolist() for block, row in enumerate(chosen) if row.any()}


def matched(chosen: np.ndarray, rng: np.random.Generator, excluded: np.ndarray | None = None) -> np.ndarray | None:
    """Draw a set with as many units in every block as `chosen`, (blocks, units) bool, none of them chosen.

    excluded: more units that must not be drawn. None where a block has too few others.
    """
    others = ~chosen if excluded is None else ~(chosen | excluded)
    if (others.sum(axis=1) < chosen.sum(axis=1)).any():
        return None
    drawn = np.zeros_like(chosen)
    for block in np.flatnonzero(chosen.any(axis=1)):
        drawn[block, rng.choice(np.flatnonzero(others[block]), size=chosen[block].sum(), replace=False)] = True
    return drawn


def norm_matched(chosen: np.ndarray, norms: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """Draw such a set whose units write about as much as the chosen ones; norms (blocks, units).

    The chosen units of a block, in random order, each take one of the 4 others left whose norm is nearest to theirs.
    """
    if ((~chosen).sum(axis=1) < chosen.sum(axis=1)).any():
        return None
    drawn = np.zeros_like(chosen)
    for block in np.flatnonzero(chosen.any(axis=1)):
        for unit in rng.permutation(np.flatnonzero(chosen[block])):
            left = np.flatnonzero(~chosen[block] & ~drawn[block])
            nearest = left[np.argsort(np.abs(norms[block, left] - norms[block, unit]), kind="stable")[:NEAREST]]
            drawn[block, rng.choice(nearest)] = True
    return drawn


def top(norms: np.ndarray, size: int, excluded: np.ndarray) -> np.ndarray:
    """Return the `size` units of largest norm that are not excluded, (blocks, units) bool."""
    order = np.argsort(np.where(excluded, -np.inf, norms).ravel(), kind="stable")[::-1][:size]
    found = np.zeros(norms.size, bool)
    found[order] = True
    return found.reshape(norms.shape) & ~excluded


def subsample(chosen: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray | None:
    """Draw `size` of the chosen units, wherever they are; None where there are fewer."""
    members = np.flatnonzero(chosen)
    if len(members) < size:
        return None
    drawn = np.zeros(chosen.size, bool)
    drawn[rng.choice(members, size=size, replace=False)] = True
    return drawn.reshape(chosen.shape)
