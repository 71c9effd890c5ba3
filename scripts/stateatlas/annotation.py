"""Documents as token ids with their classes, and windows around a boundary token (protocol C)."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from stateatlas.job import InputError
from stateatlas.packing import BOS, cut, pack
from stateatlas.token_classes import CLASSES, classify

MEASURED = 8  # tokens after the boundary


def tokenizer(folder: Path) -> Tokenizer:
    """Return the tokenizer of a checkpoint.

    Raises
    ------
    InputError
        If the checkpoint has none.
    """
    file = folder / "tokenizer.json"
    try:
        found = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises no error of its own
        raise InputError(f"{file}: no tokenizer can be read there ({error}); fetch the checkpoint again") from error
    found.encode_special_tokens = True  # `<bos>` written out in a text is text
    return found


def annotate(tokenizer: Tokenizer, texts: Iterable[str]) -> list[np.ndarray]:
    """Return (tokens, 2) uint16 for every text: ids and classes, without `<bos>`."""
    found = []
    for text in texts:
        encoded = tokenizer.encode(text, add_special_tokens=False)
        ids = np.array(encoded.ids, np.uint16)
        found.append(np.stack([ids, classify(text, encoded.offsets).astype(np.uint16)], axis=1))
    return found


def groups(
    documents: Sequence[np.ndarray], number: int, most: int, length: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return groups of documents as training windows, (windows, length, 2) of ids and classes each.

    The documents are dealt out to `number` groups, of at most `most` windows together; a group that fills no window is
    left out.

    Raises
    ------
    InputError
        If fewer than two groups fill a window: there is nothing to resample.
    """
    found = []
    for first in range(number):
        cut_up = [part for document in documents[first::number] for part in cut(document, rng)]
        if sum(len(part) + 1 for part in cut_up) >= length:
            found.append(pack(cut_up, length)[: max(1, most // number)])
    if len(found) < 2:
        raise InputError(
            f"the corpus fills {len(found)} groups of windows of {length} tokens, 2 are needed: add text to it"
        )
    return found


def windows(
    documents: Sequence[np.ndarray], boundary: str, length: int, number: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw windows that end with a boundary token and 8 more, (windows, length) int64, and their documents (windows,).

    documents: as `annotate` gives them. A window lies in one document, which is cut into segments with `<bos>` before
    each, as in training; there is none among the last 8 tokens. Fewer than `number` where there are no more.
    """
    wanted, found = CLASSES.index(boundary), []
    for index, document in enumerate(documents):
        pieces = [piece for part in cut(document, rng) for piece in (np.full((1, 2), BOS, np.uint16), part)]
        packed = np.concatenate(pieces) if pieces else document[:0]
        begins = packed[:, 1] == CLASSES.index("bos")
        for place in np.flatnonzero(packed[:, 1] == wanted):
            first, last = place + MEASURED + 1 - length, place + MEASURED + 1
            if first >= 0 and last <= len(packed) and not begins[place + 1 : last].any():
                found.append((index, packed[first:last, 0]))
    chosen = [found[i] for i in rng.permutation(len(found))[:number]]
    if not chosen:
        return np.zeros((0, length), np.int64), np.zeros(0, np.int64)
    return np.stack([tokens for _, tokens in chosen]).astype(np.int64), np.array([index for index, _ in chosen])
