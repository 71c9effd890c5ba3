"""The sequences of one task: validation, and for every length a set to fit probes on and a set to test on."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from stateatlas.seeds import stream


def draw(
    task, name: str, root: int, train_length: int, lengths: list[int], sizes: dict[str, int]
) -> dict[str, np.ndarray]:
    """Draw all sets; no sequence stands in two of them.

    sizes: sequences of `validation`, `fit` and `test`. Returns `validation/<length>/tokens`, `fit/<length>/<target>`
    and so on, (sequences, length) uint8.

    Raises
    ------
    ValueError
        If the task has too few different sequences of a length.
    """
    seen: set[bytes] = set()
    arrays = {}
    for split, length in [("validation", train_length), *((s, n) for n in lengths for s in ("test", "fit"))]:
        rng = stream(root, "encoding", name, "sequences", split, length)
        tokens = _unseen(sampler(task, split), rng, sizes[split], length, seen)
        for key, values in {"tokens": tokens, **task.label(tokens)}.items():
            arrays[f"{split}/{length}/{key}"] = values.astype(np.uint8)
    return arrays


def sampler(task, split: str) -> Callable[[np.random.Generator, int, int], np.ndarray]:
    """Return `sample(rng, n, length)` of a task for training or for one of the sets.

    A formal task has one distribution. A task that reads a corpus draws each set from the part of its name; probes
    are fitted on the part that models are trained on.
    """
    if not hasattr(task, "reads"):
        return task.sample
    return partial(task.sample, split="train" if split == "fit" else split)


def _unseen(sample: Callable, rng: np.random.Generator, n: int, length: int, seen: set[bytes]) -> np.ndarray:
    rows: list[np.ndarray] = []
    for _ in range(100):
        for row in sample(rng, n, length):
            if len(rows) < n and (key := row.astype(np.uint8).tobytes()) not in seen:
                seen.add(key)
                rows.append(row)
        if len(rows) == n:
            return np.stack(rows)
    raise ValueError(
        f"fewer than {n} new sequences of length {length}: lower validation, fit and test, or train longer"
    )


class Sequences:
    """A file of sequences, opened."""

    def __init__(self, path: Path):
        self._arrays = load_file(path)

    def get(self, split: str, length: int, target: str = "tokens") -> np.ndarray:
        """Return tokens or a target, (sequences, length) int64."""
        return self._arrays[f"{split}/{length}/{target}"].astype(np.int64)

    def targets(self) -> list[str]:
        """Return the names of the targets, `state` first."""
        names = {key.rsplit("/", 1)[1] for key in self._arrays} - {"tokens"}
        return sorted(names, key=lambda name: (name != "state", name))


def save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write the sets; arrays are copied, so that views are saved as they look."""
    save_file({key: np.ascontiguousarray(values) for key, values in arrays.items()}, path)
