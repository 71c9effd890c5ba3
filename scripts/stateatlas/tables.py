"""Parquet tables: tidy, one row a measurement, one schema a table, checked on write."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

_WHOLE = (
    "seed",
    "step",
    "length",
    "site",
    "k",
    "draw",
    "n",
    "atom",
    "units",
    "block",
    "unit",
    "prompt",
    "case",
    "offset",
    "sources",
    "anchors",
)
_REAL = ("embedding_std", "rate", "tau", "eps", "share", "scale", "value", "low", "high")
_NUMBERS = dict.fromkeys(_WHOLE, "int64") | dict.fromkeys(_REAL, "float64")
_UNITS = ["study", "architecture", "family", "model", "seed", "corpus"]
_EFFECT = ["study", "architecture", "family", "seed", "corpus", "class"]
_FIELD = ["study", "architecture", "family", "model", "seed"]
_CELL = ["study", "task", "architecture", "model", "seed"]

SCHEMAS = {
    "training": [*_CELL, "step", "metric", "value", "n"],
    "behaviour": [*_CELL, "length", "metric", "value", "n", "low", "high"],
    "probes": [*_CELL, "length", "site", "target", "control", "half", "metric", "value", "n", "low", "high"],
    "ablations": [*_CELL, "length", "site", "method", "subspace", "k", "draw", "half", "metric", "value", "n", "low",
                  "high"],
    "refits": [*_CELL, "length", "site", "target", "subspace", "k", "draw", "half", "metric", "value", "n", "low",
               "high"],
    "erasures": [*_CELL, "length", "site", "eraser", "k", "draw", "half", "metric", "value", "n", "low", "high"],
    "inlp": [*_CELL, "family", "length", "site", "metric", "value", "n", "low", "high"],
    "patches": [*_CELL, "family", "length", "site", "direction", "read", "half", "status", "metric", "value", "n",
                "low", "high"],
    "drops": [*_CELL, "family", "length", "site", "metric", "value", "n", "low", "high"],
    "minis": ["model", "step", "metric", "value", "n"],
    "sets": [*_UNITS, "class", "metric", "value", "n", "low", "high"],
    "writes": [*_UNITS, "class", "metric", "value", "n", "low", "high"],
    "thresholds": [*_UNITS, "form", "tau", "metric", "value", "n"],
    "signatures": [*_UNITS, "class", "block", "unit", "set", "value"],
    "interventions": [*_EFFECT, "intervention", "span", "metric", "value", "n", "low", "high"],
    "cells": [*_EFFECT, "intervention", "span", "set", "draw", "units", "status", "metric", "value", "n"],
    "needles": [*_EFFECT, "intervention", "span", "length", "depth", "draw", "metric", "value", "n", "low",
                "high"],
    "linearity": [*_FIELD, "eps", "direction", "metric", "value", "n", "low", "high"],
    "superposition": [*_FIELD, "eps", "pair", "metric", "value", "n", "low", "high"],
    "prediction": [*_FIELD, "eps", "direction", "site", "metric", "value", "n", "low", "high"],
    "effects": [*_FIELD, "prompt", "case", "site", "direction", "metric", "value"],
    "propagation": [*_FIELD, "site", "offset", "metric", "value", "n", "low", "high"],
    "composition": [*_FIELD, "eps", "tokens", "status", "metric", "value", "n", "low", "high"],
    "concentration": [*_FIELD, "sites", "share", "metric", "value", "n", "low", "high"],
    "green": [*_FIELD, "token", "k", "metric", "value", "n", "low", "high"],
    "displacement": [*_FIELD, "token", "scale", "site", "control", "metric", "value", "n", "low", "high"],
    "prompts": [*_FIELD, "set", "metric", "value", "n"],
    "inverse": [*_FIELD, "method", "sources", "metric", "value", "n", "low", "high"],
    "transfer": [*_FIELD, "source", "anchors", "predictor", "metric", "value", "n", "low", "high"],
    "profiles": [*_CELL, "length", "site", "metric", "value"],
    "recipes": [*_CELL, "embedding_std", "rate", "metric", "value"],
    "claims": ["claim", "study", "atom", "cell", "metric", "bound", "value", "low", "high", "n", "verdict", "reason"],
}  # fmt: skip


def frame(name: str, rows: list[dict] | pd.DataFrame) -> pd.DataFrame:
    """Return `rows` as the table `name`: its columns in order, its dtypes, sorted by identity.

    Raises
    ------
    ValueError
        If a column is unknown or missing or holds a value of another kind, or if a row stands twice.
    """
    columns = SCHEMAS[name]
    table = pd.DataFrame(rows) if len(rows) else pd.DataFrame(columns=columns)
    unknown, missing = set(table.columns) - set(columns), set(columns) - set(table.columns)
    if unknown or missing:
        raise ValueError(f"table {name}: unknown columns {sorted(unknown)}, missing columns {sorted(missing)}")
    table = pd.DataFrame({column: _typed(name, table[column]) for column in columns})
    identity = [column for column in columns if column not in ("value", "n", "low", "high")]
    if (twice := table.duplicated(identity)).any():
        raise ValueError(f"table {name}: two rows for {table.loc[twice, identity].iloc[0].to_dict()}")
    return table.sort_values(identity, kind="stable", ignore_index=True)


def _typed(name: str, values: pd.Series) -> pd.Series:
    """Return a column in its dtype; one that holds anything else is refused, never converted."""
    kind = _NUMBERS.get(values.name, "str")
    wrong = [value for value in values if isinstance(value, str) != (kind == "str")]
    if kind == "int64":
        wrong += [value for value in values if pd.isna(value) or value != int(value)]
    if wrong:
        raise ValueError(f"table {name}: column {values.name} holds {wrong[0]!r}, which is no {kind}")
    return values.astype(kind)


def write(path: Path, name: str, rows: list[dict] | pd.DataFrame) -> None:
    """Write `rows` as the table `name`; the same rows give the same bytes."""
    columns = pa.Table.from_pandas(frame(name, rows), preserve_index=False).replace_schema_metadata({"table": name})
    pq.write_table(columns, path, compression="zstd")


def read(path: Path, name: str) -> pd.DataFrame:
    """Read the table `name`.

    Raises
    ------
    ValueError
        If the file is no Parquet file or does not hold this table.
    """
    try:
        columns = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path}: not a readable table ({error}); delete it and run again") from error
    if columns.column_names != SCHEMAS[name]:
        raise ValueError(
            f"{path}: columns {columns.column_names} are not those of table {name}; delete it and run again"
        )
    return columns.to_pandas()
