"""The sequences of one task: validation, and for every length a set to fit probes on and a set to test on.

Pairs for activation patching differ in one token before the middle and have different states there.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from stateatlas.seeds import stream

FEWEST = 64  # sequences of a corpus that make a set


def draw(
    task, name: str, root: int, train_length: int, lengths: list[int], sizes: dict[str, int]
) -> dict[str, np.ndarray]:
    """Draw all sets; no sequence stands in two of them.

    sizes: sequences of `validation`, `fit` and `test`, and of `pairs` if any. Returns `validation/<length>/tokens`,
    `fit/<length>/<target>` and so on, (sequences, length) uint8; pairs are the splits `clean` and `corrupt`.

    Raises
    ------
    ValueError
        If the task has too few different sequences of a length.
    """
    seen: set[bytes] = set()
    arrays = {}
    for split, length in [("validation", train_length), *((s, n) for n in lengths for s in ("test", "fit"))]:
        rng = stream(root, "encoding", name, "sequences", split, length)
        arrays |= _labelled(task, split, _unseen(task, split, rng, sizes[split], length, seen))
    if sizes.get("pairs"):
        pairs = draw_pairs(task, stream(root, "encoding", name, "pairs"), sizes["pairs"], train_length)
        for split, tokens in zip(("clean", "corrupt"), pairs, strict=True):
            arrays |= _labelled(task, split, tokens)
    return arrays


def draw_pairs(task, rng: np.random.Generator, n: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw n pairs of valid strings that differ in one token before the middle and in the state at the middle.

    Returns clean and corrupt tokens, (n, length) int64 each. Pairs are drawn until n of them will do.
    """
    middle, clean, corrupt = length // 2, [], []
    while sum(map(len, clean)) < n:
        tokens = task.sample(rng, n, length)
        other, rows = tokens.copy(), np.arange(n)
        place, shift = rng.integers(0, middle, n), rng.integers(1, task.vocabulary, n)
        other[rows, place] = (tokens[rows, place] + shift) % task.vocabulary
        good = np.flatnonzero(task.valid(other))
        states = (task.label(part[good])["state"][:, middle] for part in (tokens, other))
        good = good[np.not_equal(*states)]
        clean.append(tokens[good])
        corrupt.append(other[good])
    return np.concatenate(clean)[:n], np.concatenate(corrupt)[:n]


def _labelled(task, split: str, tokens: np.ndarray) -> dict[str, np.ndarray]:
    known = {"tokens": tokens, **task.label(tokens)}
    return {f"{split}/{tokens.shape[1]}/{key}": values.astype(np.uint8) for key, values in known.items()}


def sampler(task, split: str) -> Callable[[np.random.Generator, int, int], np.ndarray]:
    """Return `sample(rng, n, length)` of a task for training or for one of the sets.

    A formal task has one distribution. A task that reads a corpus draws each set from the part of its name; probes
    are fitted on the part that models are trained on.
    """
    if not hasattr(task, "reads"):
        return task.sample
    return partial(task.sample, split="train" if split == "fit" else split)


def _unseen(task, split: str, rng: np.random.Generator, n: int, length: int, seen: set[bytes]) -> np.ndarray:
    """Draw n sequences that stand in no set yet; of a corpus, which may not have so many, as many as there are."""
    sample, rows = sampler(task, split), []
    for _ in range(100):
        for row in sample(rng, n, length):
            if len(rows) < n and (key := row.astype(np.uint8).tobytes()) not in seen:
                seen.add(key)
                rows.append(row)
        if len(rows) == n:
            return np.stack(rows)
    if hasattr(task, "reads") and len(rows) >= FEWEST:
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

    def evaluated(self, length: int) -> list[np.ndarray]:
        """Return the tokens of every set that a model is evaluated on at this length: none may be trained on."""
        splits = [key.split("/")[0] for key in self._arrays if key.endswith(f"/{length}/tokens")]
        return [self.get(split, length) for split in splits if split != "fit"]

    def targets(self) -> list[str]:
        """Return the names of the targets, `state` first."""
        names = {key.rsplit("/", 1)[1] for key in self._arrays} - {"tokens"}
        return sorted(names, key=lambda name: (name != "state", name))


def save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write the sets; arrays are copied, so that views are saved as they look."""
    save_file({key: np.ascontiguousarray(values) for key, values in arrays.items()}, path)
