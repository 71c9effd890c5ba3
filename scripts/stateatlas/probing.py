"""Probes of one cell at every site, with their controls (protocol A)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from stateatlas import states
from stateatlas.probes import Probe, fit, position_token
from stateatlas.sequences import Sequences


def measure(
    folder: Path, sequences: Sequences, length: int, controls: tuple[str, ...], rng: np.random.Generator
) -> Iterator[tuple[dict, np.ndarray, Probe]]:
    """Yield (identity, right tokens per sequence, probe) for every site, target and control of one model.

    folder: the model's recorded states. `shuffled_labels` gives every fitted sequence the labels of another one, so
    what position alone tells stays.
    """
    shuffle = rng.permutation(len(sequences.get("fit", length)))
    for site in states.sites(folder):
        fitted, tested = (states.load(folder, split, site) for split in ("fit", "test"))
        for target in sequences.targets():
            labels, truth = (sequences.get(split, length, target) for split in ("fit", "test"))
            for control in controls if target == "state" else ("none",):
                probe = fit(fitted, labels[shuffle] if control == "shuffled_labels" else labels)
                row = {"length": length, "site": site, "target": target, "control": control, "tokens": length}
                yield row, probe.right(tested, truth), probe


def measure_base(sequences: Sequences, lengths: list[int]) -> Iterator[tuple[dict, np.ndarray, np.ndarray]]:
    """Yield (identity, which tokens are right, labels) of the position + token probe, fitted anew at every length.

    Both are (sequences, length).
    """
    for length in lengths:
        tokens = {split: sequences.get(split, length) for split in ("fit", "test")}
        vocabulary = 1 + max(int(values.max()) for values in tokens.values())
        features = {split: position_token(values, vocabulary) for split, values in tokens.items()}
        for target in sequences.targets():
            probe = fit(features["fit"], sequences.get("fit", length, target))
            row = {"length": length, "site": -1, "target": target, "control": "position_token"}
            truth = sequences.get("test", length, target)
            yield row, probe.hits(features["test"], truth), truth
