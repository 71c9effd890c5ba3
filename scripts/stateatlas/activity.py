"""Unit activity (protocol C): what every unit does at the tokens of every class, streamed over a corpus.

Counts, means and sums of squared deviations are kept by class, in float64, and merged chunk by chunk (Chan, Golub &
LeVeque 1983, the batch form of Welford's update), so memory does not grow with the corpus. They are kept for a fixed
number of groups of documents: intervals resample these.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from stateatlas import units
from stateatlas.adapters import Adapter
from stateatlas.token_classes import CLASSES, CONTENT

CHUNK = 16  # windows
FREQUENT = 24  # tokens whose signal is kept by itself: what any two of them share is a null for dual sets


class Moments:
    """Counts (classes,), means and sums of squared deviations (classes, width) of what is added, float64."""

    def __init__(self, width: int, classes: int = len(CLASSES)):
        self.count = np.zeros(classes)
        self.mean, self.squares = np.zeros((2, classes, width))

    def add(self, values: np.ndarray, classes: np.ndarray) -> None:
        """Add tokens: values (tokens, width), classes (tokens,); those of a negative class are left out."""
        for index in np.unique(classes[classes >= 0]):
            part = values[classes == index].astype(np.float64)
            mean = part.mean(axis=0)
            self._merge(index, len(part), mean, ((part - mean) ** 2).sum(axis=0))

    def merge(self, other: "Moments") -> None:
        """Add what another has seen."""
        for index in np.flatnonzero(other.count):
            self._merge(index, other.count[index], other.mean[index], other.squares[index])

    def _merge(self, index: int, new: float, mean: np.ndarray, squares: np.ndarray) -> None:
        before, shift = self.count[index], mean - self.mean[index]
        self.mean[index] += shift * new / (before + new)
        self.squares[index] += squares + shift**2 * before * new / (before + new)
        self.count[index] += new

    @property
    def variance(self) -> np.ndarray:
        """The population variance, (classes, width); 0 where there is no token."""
        return self.squares / np.maximum(self.count, 1)[:, None]


@dataclass(frozen=True)
class Activity:
    """What the units of a model do, float64.

    count: tokens, (groups, classes); signal: its means, (groups, classes, blocks, units); spread: the standard
    deviation of the signal over all tokens of a class, (classes, blocks, units); output: mean outputs, (groups,
    classes, blocks, inner); norm: the mean length of what a unit writes to the stream, (classes, blocks, units);
    gate, delta: means of SiLU(z) and Δ over reference tokens, (blocks, inner) and (blocks, units), or of no columns;
    frequent: mean signals of the most frequent tokens that are neither BOS nor newline, (tokens, blocks, units).
    """

    count: np.ndarray
    signal: np.ndarray
    spread: np.ndarray
    output: np.ndarray
    norm: np.ndarray
    gate: np.ndarray
    delta: np.ndarray
    frequent: np.ndarray

    def save(self, path: Path) -> None:
        """Write the arrays to a safetensors file."""
        save_file({f.name: np.ascontiguousarray(getattr(self, f.name)) for f in fields(self)}, path)

    @classmethod
    def load(cls, path: Path) -> "Activity":
        """Read what `save` wrote."""
        return cls(**load_file(path))

    def means(self) -> dict[int, units.Means]:
        """Return the means over the reference tokens of every block, for interventions."""
        output = pooled(self.output, self.count)[CONTENT]
        parts = zip(self.gate, self.delta, output, strict=True)
        return {index: units.Means(*map(torch.from_numpy, part)) for index, part in enumerate(parts)}


def pooled(means: np.ndarray, count: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
    """Return means over groups, (..., classes, *rest), of means (groups, classes, *rest) and counts (groups, classes).

    times: (..., groups), how often each group counts; once where it is not given. NaN where there is no token.
    """
    times = np.ones(len(count)) if times is None else times
    sums = means * count.reshape(*count.shape, *[1] * (means.ndim - 2))
    total = np.tensordot(times, sums, axes=(-1, 0))
    number = np.tensordot(times, count, axes=(-1, 0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / number.reshape(*number.shape, *[1] * (means.ndim - 2))


def measure(model: Adapter, groups: Sequence[np.ndarray]) -> Activity:
    """Return what the units of a model do over groups of windows, each (windows, length, 2) of ids and classes."""
    tokens = frequent(groups)
    counts, signals, outputs = [], [], []
    total: list[dict[str, Moments]] = []
    for windows in groups:
        found = observe(model, windows, tokens)
        counts.append(found[0]["signal"].count)
        signals.append(np.stack([known["signal"].mean for known in found], axis=1))
        outputs.append(np.stack([known["output"].mean for known in found], axis=1))
        total = total or [{name: Moments(*m.mean.shape[::-1]) for name, m in known.items()} for known in found]
        for known, new in zip(total, found, strict=True):
            for name, moments in known.items():
                moments.merge(new[name])
    blocks = {
        name: np.stack([known[name].mean for known in total], axis=1) for name in ("norm", "gate", "delta", "frequent")
    }
    spread = np.sqrt(np.stack([known["signal"].variance for known in total], axis=1))
    return Activity(
        np.stack(counts), np.stack(signals), spread, np.stack(outputs),
        blocks["norm"], blocks["gate"][CONTENT], blocks["delta"][CONTENT], blocks["frequent"],
    )  # fmt: skip


def frequent(groups: Sequence[np.ndarray]) -> np.ndarray:
    """Return the most frequent tokens that are neither BOS nor newline; among equals the smaller id first."""
    ids, classes = np.concatenate([windows.reshape(-1, 2) for windows in groups]).T
    boundaries = [CLASSES.index("bos"), CLASSES.index("newline")]
    found, number = np.unique(ids[~np.isin(classes, boundaries)], return_counts=True)
    return found[np.argsort(-number, kind="stable")[:FREQUENT]]


@torch.inference_mode()
def observe(model: Adapter, windows: np.ndarray, tokens: np.ndarray) -> list[dict[str, Moments]]:
    """Return the moments of every block by quantity, over windows (windows, length, 2) of ids and classes.

    Those of `frequent` are the signal's, by the place of a token in `tokens`; all others by class.
    """
    place = np.full(int(max(windows[..., 0].max(), tokens.max())) + 1, -1)
    place[tokens] = np.arange(len(tokens))
    kind = units.family(model.family)
    found: list[dict[str, Moments]] = [{} for _ in range(model.depth)]
    device = next(model.parameters()).device
    for start in range(0, len(windows), CHUNK):
        chunk = windows[start : start + CHUNK]
        classes, places = chunk[..., 1].ravel(), place[chunk[..., 0].ravel()]
        stream = model.embed(torch.from_numpy(chunk[..., 0].astype(np.int64)).to(device))
        for index, known in enumerate(found):
            seen = kind.observe(model, index, stream)
            mixer = kind.mixer(model.blocks[index])
            quantities = {
                "signal": seen.signal,
                "delta": seen.delta,
                "gate": seen.gate,
                "output": seen.output,
                "norm": written(kind.output(mixer).weight, seen.output, kind.number(mixer)),
            }
            for name, values in quantities.items():
                flat = values.flatten(0, 1).cpu().numpy()
                known.setdefault(name, Moments(flat.shape[1])).add(flat, classes)
                if name == "signal":
                    known.setdefault("frequent", Moments(flat.shape[1], len(tokens))).add(flat, places)
            stream = seen.stream
    return found


def written(weight: torch.Tensor, outputs: torch.Tensor, number: int) -> torch.Tensor:
    """Return the length of what every unit writes, (batch, length, units).

    weight: (width, inner) of the output projection; outputs: (batch, length, inner).
    """
    columns = weight.unflatten(1, (number, -1))  # (width, units, size)
    gram = torch.einsum("wup,wuq->upq", columns, columns)
    parts = outputs.unflatten(-1, (number, -1))
    return torch.einsum("blup,upq,bluq->blu", parts, gram, parts).clamp(min=0).sqrt()
