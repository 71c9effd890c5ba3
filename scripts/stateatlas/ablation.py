"""Ablation: take a subspace out of the stream at one site and let the model run on (protocol A).

`zero` projects the subspace out, `mean` puts its mean there, `resample` the part of another test sequence at the
same position.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from stateatlas.residual import Edit, ResidualModel
from stateatlas.sequences import Sequences
from stateatlas.states import load
from stateatlas.subspaces import Subspace, probe_subspaces, random_subspaces, sweep

CHUNK = 256  # sequences
METHODS = ("zero", "mean", "resample")


def edit(method: str, basis: torch.Tensor, mean: torch.Tensor, other: torch.Tensor) -> Edit:
    """Return the edit of one method.

    basis (width, k); mean (width,), the mean of the fitted states; other, the stream that `resample` takes from.
    """
    centre = {"zero": 0.0, "mean": mean, "resample": other}[method]
    return lambda stream: stream - (stream - centre) @ basis @ basis.T


class Site:
    """The states of the test sequences at one site, ready to be edited and run on from.

    states: (sequences, length, width) float32; labels: (sequences, length); mean: (width,).
    """

    def __init__(self, model: ResidualModel, site: int, states: np.ndarray, labels: np.ndarray, mean: np.ndarray):
        self.model, self.site = model, site
        device = next(model.parameters()).device
        self.states, self.labels = torch.tensor(states).to(device), torch.tensor(labels).to(device)
        self.mean = torch.tensor(mean, dtype=torch.float32).to(device)
        # Half the set away: every sequence serves once, and none serves itself.
        self.other = self.states.roll(len(states) // 2, dims=0)

    @torch.inference_mode()
    def right(self, method: str, subspace: Subspace) -> np.ndarray:
        """Return the right tokens of every sequence after the edit."""
        basis = torch.tensor(subspace.basis, dtype=torch.float32).to(self.states.device)
        counts = []
        for start in range(0, len(self.states), CHUNK):
            rows = slice(start, start + CHUNK)
            change = edit(method, basis, self.mean, self.other[rows])
            logits = self.model.resume(self.states[rows], self.site, change)
            counts.append((logits.argmax(-1) == self.labels[rows]).sum(1).cpu())
        return torch.cat(counts).numpy()

    def row(self, method: str, subspace: Subspace) -> dict:
        """Return the identity of a measurement at this site."""
        length = self.states.shape[1]
        return {"length": length, "site": self.site, "method": method, "subspace": subspace.name,
                "k": subspace.k, "draw": subspace.draw, "tokens": length}  # fmt: skip


def at_training_length(
    site: Site,
    weights: np.ndarray,
    fit_states: np.ndarray,
    sizes: list[int],
    draws: int,
    rng: np.random.Generator,
) -> Iterator[tuple[dict, np.ndarray]]:
    """Yield (identity, right tokens per sequence) of every ablation at one site.

    The probe's directions, principal directions and random ones of the probe's dimensions are taken out by every
    method; the other random ones are set to zero only.
    """
    width = fit_states.shape[-1]
    own = probe_subspaces(weights)
    ranks = sorted({subspace.k for subspace in own})
    every_method = [*own, *random_subspaces(rng, width, ranks, draws), *sweep(weights, fit_states, sizes)]
    curves = random_subspaces(rng, width, [k for k in sizes if k not in ranks], draws)
    for subspace in every_method:
        for method in METHODS:
            yield site.row(method, subspace), site.right(method, subspace)
    for subspace in curves:
        yield site.row("zero", subspace), site.right("zero", subspace)


def at_other_length(
    site: Site, weights: np.ndarray, draws: int, rng: np.random.Generator
) -> Iterator[tuple[dict, np.ndarray]]:
    """Yield the same for the training length's top direction at another length, beside random directions."""
    for subspace in [probe_subspaces(weights)[0], *random_subspaces(rng, weights.shape[1], [1], draws)]:
        yield site.row("zero", subspace), site.right("zero", subspace)


def measure(
    model: ResidualModel,
    sequences: Sequences,
    folder: Path,
    probes: dict[int, np.ndarray],
    cfg: dict,
    rng: np.random.Generator,
) -> Iterator[tuple[dict, np.ndarray]]:
    """Yield (identity, right tokens per sequence) of every ablation of one model.

    folder: its recorded states; probes: the weights (classes, width) of the probe at every site; cfg: train_length,
    lengths, subspace_sizes and random_draws. At the training length every site runs on from its recorded states.
    """
    train_length, draws = cfg["train_length"], cfg["random_draws"]
    labels = sequences.get("test", train_length, "state")
    for site, weights in probes.items():
        fitted = load(folder, "fit", site)
        mean = fitted.mean(axis=(0, 1), dtype=np.float64)
        place = Site(model, site, load(folder, "test", site), labels, mean)
        yield from at_training_length(place, weights, fitted, cfg["subspace_sizes"], draws, rng)
    for length in cfg["lengths"]:
        if length != train_length:
            tokens, labels = (sequences.get("test", length, key) for key in ("tokens", "state"))
            with torch.inference_mode():
                streams = model.states(torch.from_numpy(tokens).to(model.head.weight.device))
            for site, weights in probes.items():
                place = Site(model, site, streams[site].cpu().numpy(), labels, np.zeros(weights.shape[1]))
                yield from at_other_length(place, weights, draws, rng)
