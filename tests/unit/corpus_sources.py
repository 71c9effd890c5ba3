"""Documents of the sources for these tests, and the folder of real rows."""

import os
from collections import Counter
from pathlib import Path

import pytest

from stateatlas import corpora
from stateatlas.corpora import Document

LONG = '"""Say what it does."""\n    x = a + 1\n    return x\n'
GOOD = f"def good(a):\n    {LONG}"


def data(*parts: str) -> Path:
    if not (folder := os.environ.get("STATEATLAS_TEST_DATA")):
        pytest.skip("STATEATLAS_TEST_DATA is not set: it names the folder with real rows")
    return Path(folder, *parts)


def read(source: str, **options) -> tuple[list[Document], Counter]:
    skipped = Counter()
    return list(corpora.documents(source, skipped, **options)), skipped


def library(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root
