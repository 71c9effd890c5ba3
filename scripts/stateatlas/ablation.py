"""Ablation: take a subspace out of the stream at one site and let the model run on (protocol A).

`zero` projects the subspace out, `mean` puts its mean there, `resample` the part of another test sequence at the
same position.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from stateatlas.residual import Edit, Residual
from stateatlas.sequences import Sequences
from stateatlas.states import load
from stateatlas.subspaces import Subspace, probe_subspaces, random_subspaces, sweep

CHUNK = 256  # edited sequences that run at once: more do not fit the cache and take a fifth longer
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

    def __init__(self, model: Residual, site: int, states: np.ndarray, labels: np.ndarray, mean: np.ndarray):
        self.model, self.site = model, site
        device = next(model.parameters()).device
        self.states, self.labels = torch.tensor(states).to(device), torch.tensor(labels).to(device)
        self.mean = torch.tensor(mean, dtype=torch.float32).to(device)
        # Half the set away: every sequence serves once, and none serves itself.
        self.other = self.states.roll(len(states) // 2, dims=0)

    def right(self, edits: list[tuple[str, Subspace]]) -> Iterator[tuple[dict, np.ndarray]]:
        """Yield (identity, right tokens of every sequence) after each edit, a method and a subspace.

        Edits of few sequences run as one batch: one at a time would mostly wait for the calls.
        """
        together = max(1, CHUNK // len(self.states))
        for start in range(0, len(edits), together):
            group = edits[start : start + together]
            for (method, subspace), right in zip(group, self._right(group), strict=True):
                yield self.row(method, subspace), right

    @torch.inference_mode()
    def _right(self, edits: list[tuple[str, Subspace]]) -> np.ndarray:
        counts = []
        for start in range(0, len(self.states), CHUNK):
            rows = slice(start, start + CHUNK)
            streams = [self._edited(rows, method, subspace) for method, subspace in edits]
            logits = self.model.resume(torch.cat(streams), self.site)
            right = logits.argmax(-1).unflatten(0, (len(edits), -1)) == self.labels[rows]
            counts.append(right.sum(-1).cpu().numpy())
        return np.concatenate(counts, axis=1)

    def right_after(self, stream: torch.Tensor) -> np.ndarray:
        """Return the right tokens of every sequence when the model runs on from another stream of the same shape."""
        with torch.inference_mode():
            parts = zip(stream.split(CHUNK), self.labels.split(CHUNK), strict=True)
            rights = [self.model.resume(part, self.site).argmax(-1) == labels for part, labels in parts]
        return torch.cat(rights).sum(-1).cpu().numpy()

    def _edited(self, rows: slice, method: str, subspace: Subspace) -> torch.Tensor:
        basis = torch.tensor(subspace.basis, dtype=torch.float32).to(self.states.device)
        return edit(method, basis, self.mean, self.other[rows])(self.states[rows])

    def clean(self) -> Iterator[tuple[dict, np.ndarray]]:
        """Yield the same for the model as it is, which belongs to no site (-1)."""
        nothing = Subspace("none", 0, np.zeros((self.states.shape[-1], 0)))
        for row, right in self.right([("zero", nothing)]):
            yield row | {"site": -1, "method": "clean"}, right

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
    edits = [(method, subspace) for subspace in every_method for method in METHODS]
    yield from site.right(edits + [("zero", subspace) for subspace in curves])


def at_other_length(
    site: Site, weights: np.ndarray, draws: int, rng: np.random.Generator
) -> Iterator[tuple[dict, np.ndarray]]:
    """Yield the same for the training length's top direction at another length, beside random directions."""
    taken = [probe_subspaces(weights)[0], *random_subspaces(rng, weights.shape[1], [1], draws)]
    yield from site.right([("zero", subspace) for subspace in taken])


def measure(
    model: Residual,
    sequences: Sequences,
    folder: Path,
    probes: dict[int, np.ndarray],
    cfg: dict,
    rng: np.random.Generator,
) -> Iterator[tuple[dict, np.ndarray]]:
    """Yield (identity, right tokens per sequence) of the model as it is and of every ablation of it.

    folder: its recorded states; probes: the weights (classes, width) of the probe at every site; cfg: train_length,
    lengths, subspace_sizes and random_draws. At the training length every site runs on from its recorded states.
    """
    train_length, draws = cfg["train_length"], cfg["random_draws"]
    labels = sequences.get("test", train_length, "state")
    sizes = [k for k in cfg["subspace_sizes"] if k <= model.width / 2]
    for site, weights in probes.items():
        fitted = load(folder, "fit", site)
        mean = fitted.mean(axis=(0, 1), dtype=np.float64)
        place = Site(model, site, load(folder, "test", site), labels, mean)
        yield from at_training_length(place, weights, fitted, sizes, draws, rng)
    yield from place.clean()
    for length in cfg["lengths"]:
        if length != train_length:
            tokens, labels = (sequences.get("test", length, key) for key in ("tokens", "state"))
            with torch.inference_mode():
                streams = model.states(torch.from_numpy(tokens).to(model.head.weight.device))
            for site, weights in probes.items():
                place = Site(model, site, streams[site].cpu().numpy(), labels, np.zeros(weights.shape[1]))
                yield from at_other_length(place, weights, draws, rng)
            yield from place.clean()
