"""Modules of the running interpreter's standard library, whole, split by package: code for language models."""

import sysconfig
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from stateatlas.corpora import Document, split

INSTALLED = {"site-packages", "dist-packages"}  # by others, inside the same folder
TESTS = {"test", "tests", "idle_test"}
SHARES = (0.8, 0.1)


def documents(skipped: Counter, root: str | Path = "") -> Iterator[Document]:
    """Yield every module but those of tests; `root` is the folder of the library's modules."""
    yield from split(files(skipped, root), package, *SHARES)


def package(document: Document) -> str:
    """Return the package, or the module outside packages, that a document is from."""
    return document.origin.split("/")[0].removesuffix(".py")


def files(skipped: Counter, root: str | Path = "") -> Iterator[Document]:
    """Yield the modules in the order of their paths, line ends as `\\n`, whatever encoding they declare.

    A module that is not in the encoding that it declares is counted in `skipped`.
    """
    root = Path(root or sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).parts):
        inside = path.relative_to(root)
        if not INSTALLED.isdisjoint(inside.parts) or _is_test(inside):
            continue
        try:
            with tokenize.open(path) as file:
                text = file.read()
        except (SyntaxError, UnicodeDecodeError):
            skipped["module in an unknown encoding"] += 1
            continue
        if text.strip():
            yield Document("", inside.as_posix(), ".".join(inside.with_suffix("").parts), text)


def _is_test(inside: Path) -> bool:
    return not TESTS.isdisjoint(inside.parts[:-1]) or inside.stem.startswith("test_") or inside.stem.endswith("_test")
