"""Corpora: each yields documents. A new source is one more file in this folder.

A source module `corpora/<source>.py` defines `documents(skipped, **options) -> Iterator[Document]`, which counts what
it leaves out in `skipped`, a Counter of reasons. Documents come in an order that depends on the source alone.
"""

import hashlib
import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Document:
    """A text, where it is from (a file, a repository), its name there, and the split that it belongs to.

    A source whose authors gave no splits leaves `split` empty for the function `split` to fill. `kinds` are the
    tokens of code as indices into `code_depth.KINDS`, one byte each; empty for prose.
    """

    split: str
    origin: str
    name: str
    text: str
    kinds: bytes = b""


def documents(source: str, skipped: Counter, **options) -> Iterator[Document]:
    """Yield the documents of a source, loaded by its name."""
    yield from importlib.import_module(f"stateatlas.corpora.{source}").documents(skipped, **options)


def split(documents: Iterable[Document], group: Callable[[Document], str], *shares: float) -> Iterator[Document]:
    """Yield documents with their split, so that no group of them (a package, an article) stands in two.

    The groups, in the order of their names' hashes, are cut where the characters before them reach a share. A hash
    alone would do for many small groups; here single packages hold a tenth of all text.

    shares: of the characters, for `train` and `validation`; the rest is for `test`.
    """
    listed = list(documents)
    sizes: Counter[str] = Counter()
    for document in listed:
        sizes[group(document)] += len(document.text)
    edges = [sum(shares[: i + 1]) * sizes.total() for i in range(len(shares))]
    splits, before = {}, 0
    for name in sorted(sizes, key=lambda name: hashlib.sha256(name.encode()).digest()):
        splits[name] = SPLITS[sum(before >= edge for edge in edges)]
        before += sizes[name]
    yield from (replace(document, split=splits[group(document)]) for document in listed)
