"""Erasure: take out of a site all that a linear probe can find, and see whether the task breaks (the revision's test).

INLP (Ravfogel et al. 2020, arXiv 2004.07667) removes the row space of a probe, fits the next probe on what is left,
and so on; random subspaces of the same dimensions stand beside it. LEACE (Belrose et al. 2023, arXiv 2306.03819,
the authors' library) erases the same in one step. All are fitted on the `fit` sequences. INLP stops by its probe's
accuracy on the selection half of the test sequences; what counts is measured on the other half.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from concept_erasure import LeaceEraser

from stateatlas.ablation import Site
from stateatlas.probes import fit
from stateatlas.subspaces import Subspace

ERASED = 0.02  # a probe within 2 pp of what is known without any state finds nothing (protocol A, *INLP*)

Right = np.ndarray  # right tokens of every test sequence, (sequences,)


@dataclass(frozen=True)
class Erased:
    """What one site is after some erasure: `probe` for a probe fitted on what is left, `task` for the model itself.

    `eraser` is inlp, random or leace, `k` the dimension taken out. `probe` is None where none was fitted.
    """

    eraser: str
    k: int
    draw: int
    probe: Right | None
    task: Right


def probe_after(fit_set: tuple, test_set: tuple, subspace: Subspace) -> tuple[Right, np.ndarray]:
    """Fit a probe with `subspace` out of all states; return its right tokens per test sequence and its weights."""
    (fit_states, fit_labels), (states, labels) = fit_set, test_set
    probe = fit(subspace.project_out(fit_states), fit_labels)
    return probe.right(subspace.project_out(states), labels), probe.weights


def grown(basis: np.ndarray, weights: np.ndarray, largest: int) -> np.ndarray:
    """Return `basis` (width, k) with the row space of a probe's weights (classes, width) added, up to `largest`."""
    centred = weights - weights.mean(axis=0)
    rest = centred - centred @ basis @ basis.T
    _, values, vectors = np.linalg.svd(rest, full_matrices=False)
    new = vectors[values > values[0] * 1e-6][: largest - basis.shape[1]]
    return np.linalg.qr(np.hstack([basis, new.T]))[0]


def inlp(fit_set: tuple, test_set: tuple, floor: float) -> Iterator[tuple[np.ndarray, Right]]:
    """Yield the basis taken out so far, (width, k) from k = 0 on, and the right tokens of the probe fitted then.

    fit_set, test_set: states (sequences, length, width) and labels (sequences, length). The last one is erased: its
    accuracy on the selection half is `floor` + 2 pp or less, or k is half the width.
    """
    states, labels = test_set
    width, half = states.shape[-1], len(states) // 2
    basis = np.zeros((width, 0))
    while True:
        right, weights = probe_after(fit_set, test_set, Subspace("inlp", 0, basis))
        yield basis, right
        if right[:half].sum() / labels[:half].size <= floor + ERASED or basis.shape[1] >= width // 2:
            return
        basis = grown(basis, weights, width // 2)


def erase(site: Site, fit_set: tuple, floor: float, draws: int, rng: np.random.Generator) -> Iterator[Erased]:
    """Yield all erasures of one site. fit_set: states and labels to fit on; floor: what is known without any state."""
    test_set = site.states.cpu().numpy(), site.labels.cpu().numpy()
    steps = list(inlp(fit_set, test_set, floor))
    bases = [basis for basis, _ in steps]
    taken = [Subspace("inlp", 0, basis) for basis in bases]
    probed = [right for _, right in steps]
    width, sizes = bases[-1].shape[0], thinned([basis.shape[1] for basis in bases[1:]])
    for draw in range(draws):
        # Nested, as the steps of INLP are.
        whole = np.linalg.qr(rng.standard_normal((width, max(sizes, default=1))))[0]
        controls = [Subspace("random", draw, whole[:, :k]) for k in sizes]
        taken += controls
        probed += [probe_after(fit_set, test_set, c)[0] if draw == 0 else None for c in controls]
    for subspace, probe, (_, task) in zip(taken, probed, site.right([("zero", s) for s in taken]), strict=True):
        yield Erased(subspace.name, subspace.k, subspace.draw, probe, task)
    yield leace(site, fit_set)


def thinned(sizes: list[int]) -> list[int]:
    """Return the sizes, ascending, that random subspaces have: the first past every power of 2, and the last.

    What a random subspace costs changes slowly with its size; INLP itself is followed at every step.
    """
    kept = [k for before, k in zip([0, *sizes], sizes, strict=False) if k.bit_length() > before.bit_length()]
    return sorted({*kept, *sizes[-1:]})


def leace(site: Site, fit_set: tuple) -> Erased:
    """Erase the labels from one site by LEACE."""
    states, labels = fit_set
    flat = torch.tensor(states, dtype=torch.float64).flatten(0, 1)
    classes, index = np.unique(labels, return_inverse=True)
    eraser = LeaceEraser.fit(flat, torch.nn.functional.one_hot(torch.from_numpy(index.ravel())))
    probe = fit(eraser(flat).numpy().reshape(states.shape), labels)
    edited = eraser(site.states.double().cpu().flatten(0, 1)).unflatten(0, site.states.shape[:2])
    right = probe.right(edited.numpy(), site.labels.cpu().numpy())
    return Erased("leace", len(classes) - 1, 0, right, site.right_after(edited.to(site.states)))
