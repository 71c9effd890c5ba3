"""CodeSearchNet's Python functions: local JSON lines or Parquet, or the data set on the Hugging Face hub.

Rows are read in both of its schemas: that of the original files, and that of the hub. Rows are split by repository
by its authors.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stateatlas.corpora import Document, hub
from stateatlas.corpora.functions import kept
from stateatlas.job import InputError

# Ours: theirs, in the original files and on the hub.
SCHEMAS = (
    {"split": "partition", "origin": ("repo", "path"), "name": "func_name", "text": "original_string"},
    {
        "split": "split_name",
        "origin": ("repository_name", "func_path_in_repository"),
        "name": "func_name",
        "text": "whole_func_string",
    },
)
SPLITS = {"train": "train", "valid": "validation", "validation": "validation", "test": "test"}

FIELDS = {"language", "func_name"} | {
    "partition", "repo", "path", "original_string",
    "split_name", "repository_name", "func_path_in_repository", "whole_func_string",
}  # fmt: skip

Row = tuple[str, dict]  # where it stands, for messages, and its fields


def documents(
    skipped: Counter, files: list[Path] | None = None, name: str = "", revision: str = ""
) -> Iterator[Document]:
    """Yield the functions of `files`, or of the hub's data set `name` at `revision`, that the filter keeps.

    files: `.jsonl`, `.jsonl.gz` or `.parquet`. revision: a commit in full, so that the corpus stays the same.

    Raises
    ------
    InputError
        If a file cannot be read, a row lacks a field, or the hub does not give the data set.
    """
    rows = (row for path in files for row in _rows(Path(path), skipped)) if files else _of_hub(name, revision)
    yield from kept(_candidates(rows, skipped), skipped)


def _of_hub(name: str, revision: str) -> Iterator[Row]:
    for split, part in hub.parts(name, "python", revision, FIELDS).items():
        yield from ((f"{name}, {split}, row {number}", row) for number, row in enumerate(part))


def _candidates(rows: Iterable[Row], skipped: Counter) -> Iterator[Document]:
    for place, row in rows:
        if row.get("language", "python") != "python":
            skipped["other language"] += 1
            continue
        schema = next((s for s in SCHEMAS if s["text"] in row), SCHEMAS[0])
        split = _field(place, row, schema["split"])
        if split not in SPLITS:
            raise InputError(f"{place}: {schema['split']} is {split!r}; it must be one of {', '.join(SPLITS)}")
        origin = "/".join(_field(place, row, key) for key in schema["origin"])
        yield Document(SPLITS[split], origin, _field(place, row, schema["name"]), _field(place, row, schema["text"]))


def _field(place: str, row: dict, key: str) -> str:
    if not isinstance(row.get(key), str):
        names = " or ".join(f"{s['split']}, {s['text']}, ..." for s in SCHEMAS)
        raise InputError(f"{place}: no text in the field {key}; a row of CodeSearchNet has {names}")
    return row[key]


def _rows(path: Path, skipped: Counter) -> Iterator[Row]:
    try:
        yield from _parquet(path) if path.suffix == ".parquet" else _json_lines(path, skipped)
    except (OSError, EOFError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: cannot be read ({error}); give .jsonl, .jsonl.gz or .parquet") from error


def _parquet(path: Path) -> Iterator[Row]:
    for batch in pq.ParquetFile(path).iter_batches(batch_size=1000, columns=sorted(FIELDS)):
        yield from ((str(path), row) for row in batch.to_pylist())


def _json_lines(path: Path, skipped: Counter) -> Iterator[Row]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield f"{path}, line {number}", _object(line)
            except UnicodeDecodeError:
                skipped["no UTF-8"] += 1
            except ValueError as error:
                raise InputError(f"{path}, line {number}: no JSON object ({error}); get the file again") from error


def _object(line: bytes) -> dict:
    row = json.loads(line.decode("utf-8-sig"))
    if not isinstance(row, dict):
        raise ValueError(f"{type(row).__name__} instead")
    return row
