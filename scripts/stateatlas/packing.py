"""From documents to training windows (protocol C): segments of 24 to 160 tokens, `<bos>` before each, packed.

Segments come in random order, so what stands before a `<bos>` says nothing about what comes after it. The packed
row of segments is then cut into windows of equal length: as in the published models' training, a window begins
anywhere in a segment.
"""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from stateatlas.job import InputError
from stateatlas.seeds import stream

BOS = 0  # the id of `<bos>`
SHORTEST, LONGEST = 24, 160  # tokens of a segment, `<bos>` not counted


class Documents:
    """The token ids of documents by split, in a file: `<split>/tokens` uint16 and `<split>/ends` int64."""

    def __init__(self, path: Path):
        self._arrays = load_file(path)

    def get(self, split: str) -> list[np.ndarray]:
        """Return the documents of a split, uint16 each, without `<bos>`."""
        tokens, ends = (self._arrays[f"{split}/{name}"] for name in ("tokens", "ends"))
        return np.split(tokens, ends[:-1])


def save(path: Path, documents: dict[str, Sequence[np.ndarray]]) -> None:
    """Write documents of uint16 ids, by split, for `Documents` to read.

    Raises
    ------
    InputError
        If a split has no documents.
    """
    arrays = {}
    for split, parts in documents.items():
        if not parts:
            raise InputError(f"the corpora have no documents in the split {split}: add text to them")
        arrays[f"{split}/tokens"] = np.concatenate(parts)
        arrays[f"{split}/ends"] = np.cumsum([len(part) for part in parts], dtype=np.int64)
    save_file(arrays, path)


def cut(document: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Cut a document into segments of 24 to 160 tokens (uniform).

    What remains after the last cut is a segment too where it has 24 tokens, else it is left out.
    """
    lengths = rng.integers(SHORTEST, LONGEST + 1, size=len(document) // SHORTEST + 1)
    ends = np.cumsum(lengths)
    return [part for part in np.split(document, ends[ends < len(document)]) if len(part) >= SHORTEST]


def segments(documents: Sequence[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Return the segments of all documents in random order."""
    found = [part for document in documents for part in cut(document, rng)]
    return [found[i] for i in rng.permutation(len(found))]


def windows(documents: Sequence[np.ndarray], length: int, rng: np.random.Generator) -> np.ndarray:
    """Return every window of one pass over the documents, (windows, length) uint16; the unfilled last is left out.

    Raises
    ------
    InputError
        If the documents do not fill one window.
    """
    found = pack(segments(documents, rng), length)
    if not len(found):
        raise InputError(
            f"the documents do not fill one window of {length} tokens: "
            "add text to the corpora or shorten the windows in config.yaml"
        )
    return found


def pack(parts: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Return segments in their order, `<bos>` before each, as windows; the unfilled last is left out.

    Segments may have columns beside the ids, (tokens, columns): then windows, (windows, length, columns), have them
    too, 0 at `<bos>`.
    """
    columns = parts[0].shape[1:] if parts else ()
    bos = np.full((1, *columns), BOS, np.uint16)
    packed = np.concatenate([bos[:0], *(piece for part in parts for piece in (bos, part))])
    return packed[: len(packed) // length * length].reshape(-1, length, *columns)


def passes(documents: Sequence[np.ndarray], length: int, root: int, names: tuple) -> Iterator[np.ndarray]:
    """Yield the windows of one pass over the documents after the other, without end; the same ones every time.

    Every pass cuts and orders the documents anew, from a stream of its own.
    """
    for number in itertools.count():
        yield windows(documents, length, stream(root, *names, "pass", number))


def batches(documents: Sequence[np.ndarray], batch: int, length: int, root: int, names: tuple) -> Iterator[np.ndarray]:
    """Yield training batches, (batch, length) uint16, from pass after pass; what fills no batch is left out.

    Raises
    ------
    InputError
        If the documents do not fill one batch.
    """
    for rows in passes(documents, length, root, names):
        if len(rows) < batch:
            raise InputError(
                f"the documents give {len(rows)} windows of {length} tokens, a batch needs {batch}: "
                "add text to the corpora or lower the batch in config.yaml"
            )
        for first in range(0, len(rows) - batch + 1, batch):
            yield rows[first : first + batch]
