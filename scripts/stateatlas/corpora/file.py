"""The corpus file: one Parquet table, a document a row, and beside it the facts that say where it is from."""

import dataclasses
import hashlib
import json
import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stateatlas import corpora
from stateatlas.canonical import canonical, sha256_file
from stateatlas.corpora import SPLITS, Document
from stateatlas.job import InputError

SCHEMA = pa.schema(
    {"split": pa.string(), "origin": pa.string(), "name": pa.string(), "text": pa.string(), "kinds": pa.binary()}
)
BATCH = 4096  # documents in memory at a time


def write(source: str, options: dict, table: Path, facts: Path) -> None:
    """Write the documents of a source to `table`, and to `facts`, a JSON file, what they are.

    options: of the source's `documents`. The facts: source and options (files by name and checksum), interpreter,
    documents kept by split and left out by reason, characters and tokens of code by split, and `sha256` of the
    documents, which does not depend on how Parquet lays them out. The same documents give the same bytes.

    Raises
    ------
    InputError
        If the source gives no document.
    """
    skipped, sizes, content = Counter(), Counter(), hashlib.sha256()
    documents = corpora.documents(source, skipped, **options)
    with pq.ParquetWriter(table, SCHEMA, compression="zstd") as writer:
        for batch in _batches(_counted(documents, sizes, content)):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=SCHEMA))
    if not sizes["documents", SPLITS[0]]:
        reasons = ", ".join(f"{reason} {n}" for reason, n in sorted(skipped.items())) or "there was none"
        raise InputError(f"corpus {source}: no document is left for training ({reasons}); give a larger one")
    given = {key: _told(value) for key, value in options.items()}
    told = {
        "source": source,
        "options": given,
        "interpreter": platform.python_version(),
        "skipped": dict(skipped),
        "sha256": content.hexdigest(),
    } | {size: {split: sizes[size, split] for split in SPLITS} for size in ("documents", "characters", "tokens")}
    facts.write_text(json.dumps(told, indent=2, sort_keys=True) + "\n")


def read(table: Path, split: str, column: str) -> list:
    """Return a column of a split's documents, in the file's order: `text`, or `kinds` as bytes.

    Raises
    ------
    InputError
        If the file is no corpus.
    """
    try:
        found = pq.read_table(table, columns=["split", column])
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{table}: no readable corpus ({error}); delete it and run again") from error
    return found.filter(pc.equal(found["split"], split))[column].to_pylist()


def _counted(documents: Iterable[Document], sizes: Counter, content) -> Iterator[dict]:
    for document in documents:
        sizes["documents", document.split] += 1
        sizes["characters", document.split] += len(document.text)
        sizes["tokens", document.split] += len(document.kinds)
        row = dataclasses.asdict(document)
        content.update(canonical(row | {"kinds": document.kinds.hex()}).encode() + b"\n")
        yield row


def _batches(rows: Iterable[dict]) -> Iterator[list[dict]]:
    batch: list[dict] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _told(option: object) -> object:
    if isinstance(option, list):
        return [{"name": Path(path).name, "sha256": sha256_file(path)} for path in option]
    return option
