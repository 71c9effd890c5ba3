"""Plain text, split by document: files of the user's, or a data set of the hub such as wikitext or Pile-10k.

A document of a file begins at a heading of the first level, in wikitext (` = Title = `) or Markdown (`# Title`). A file
without such headings has a document per paragraph. A row of a data set is a document, or, with `rows: lines`, a line of
a text that is cut up like a file.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from stateatlas.corpora import SPLITS, Document, hub, split
from stateatlas.job import InputError

_HEADING = re.compile(r"^(?: = (?!=)(?P<wiki>.*[^=\s]) = ?|# (?P<markdown>.*))$", re.MULTILINE)
_BLANK = re.compile(r"\n\s*\n")


SHARES = (0.8, 0.1)


def documents(
    skipped: Counter,
    files: list[Path] | None = None,
    name: str = "",
    folder: str = "",
    revision: str = "",
    rows: str = "documents",
) -> Iterator[Document]:
    """Yield the documents of UTF-8 text files, or of the hub's data set `name` at `revision`.

    folder: the data set's part; revision: a commit in full, so that the corpus stays the same; rows: `documents` or
    `lines`. Documents are named by their first line, which decides their split; where the data set has the three
    splits, its own are kept.

    Raises
    ------
    InputError
        If a file cannot be read, is no UTF-8 or holds no text, or the hub does not give the data set.
    """
    if files:
        parts = {"": itertools.chain.from_iterable(_of_file(path) for path in files)}
    else:
        parts = _of_hub(name, folder, revision, rows)
    found = _documents(skipped, parts)
    yield from found if set(parts) == set(SPLITS) else split(found, lambda document: document.name, *SHARES)


def _documents(skipped: Counter, parts: dict[str, Iterable[tuple[str, str]]]) -> Iterator[Document]:
    seen: set[str] = set()
    for own, texts in parts.items():
        for origin, text in texts:
            if (words := text.strip()) in seen:
                skipped["duplicate"] += 1
            else:
                seen.add(words)
                yield Document(own, origin, words.split("\n", 1)[0].strip(" =#")[:80], text)


def _of_file(path: Path) -> Iterator[tuple[str, str]]:
    parts = list(_parts(_read(path)))
    if not parts:
        raise InputError(f"{path}: it holds no text; name a file of text")
    yield from ((path.name, text) for text in parts)


def _of_hub(name: str, folder: str, revision: str, rows: str) -> dict[str, Iterator[tuple[str, str]]]:
    found = {}
    for own, part in hub.parts(name, folder, revision, {"text"}).items():
        texts = _texts(f"{name}, {own}", part)
        if rows == "lines":
            texts = _parts("".join(texts))
        found[own] = ((name, text) for text in texts if text.strip())
    return found


def _texts(place: str, rows: Iterable[dict]) -> Iterator[str]:
    for number, row in enumerate(rows):
        if not isinstance(row.get("text"), str):
            raise InputError(f"{place}, row {number}: no text in the field text; choose a data set of text")
        yield row["text"]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name a file of text") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is no UTF-8; convert the file to UTF-8") from error


def _parts(text: str) -> Iterator[str]:
    starts = [match.start() for match in _HEADING.finditer(text)]
    if starts:
        edges = [0, *starts, len(text)]
        parts = [text[a:b] for a, b in itertools.pairwise(edges)]
    else:
        parts = _BLANK.split(text)
    yield from (part for part in parts if part.strip())
