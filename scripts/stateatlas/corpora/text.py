"""Plain text files of the user's, such as wikitext, split by document.

A document begins at a heading of the first level, in wikitext (` = Title = `) or Markdown (`# Title`). A file
without such headings has a document per paragraph.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from stateatlas.corpora import Document, split
from stateatlas.job import InputError

_HEADING = re.compile(r"^(?: = (?!=)(?P<wiki>.*[^=\s]) = ?|# (?P<markdown>.*))$", re.MULTILINE)
_BLANK = re.compile(r"\n\s*\n")


SHARES = (0.8, 0.1)


def documents(skipped: Counter, files: list[Path]) -> Iterator[Document]:
    """Yield the documents of UTF-8 text files, named by their first line, which decides their split.

    Raises
    ------
    InputError
        If a file cannot be read, is no UTF-8 or holds no text.
    """
    yield from split(_documents(skipped, files), lambda document: document.name, *SHARES)


def _documents(skipped: Counter, files: list[Path]) -> Iterator[Document]:
    seen: set[str] = set()
    for path in files:
        parts = list(_parts(_read(path)))
        if not parts:
            raise InputError(f"{path}: it holds no text; name a file of text")
        for text in parts:
            if (words := text.strip()) in seen:
                skipped["duplicate"] += 1
            else:
                seen.add(words)
                yield Document("", path.name, words.split("\n", 1)[0].strip(" =#")[:80], text)


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
