"""What figures and the page are made of: whole tables, the committed reference run and the papers' numbers."""

from pathlib import Path

import pandas as pd
import yaml

from stateatlas import tables
from stateatlas.canonical import ROOT
from stateatlas.sizes import per_task

REFERENCE = ROOT / "docs" / "reference" / "workstation" / "encoding" / "tables"


def read_tables(paths: list[Path]) -> dict[str, pd.DataFrame]:
    """Read whole-study tables, `.../<name>/table.parquet`, by name."""
    return {path.parent.name: tables.read(path, path.parent.name) for path in paths}


def reference_tables(folder: Path = REFERENCE) -> dict[str, pd.DataFrame]:
    """Return the tables of the committed reference run by name; empty where there is none."""
    return read_tables(sorted(folder.glob("*/table.parquet")))


def shown_settings(settings: dict) -> dict:
    """Return settings as figures and page take them: a length and a cap per task, reference run and papers beside."""
    tasks = settings["tasks"]
    lengths = {key: {task: per_task(settings[key], task) for task in tasks} for key in ("train_length", "steps")}
    published = yaml.safe_load((ROOT / "data" / "published.yaml").read_text())
    return settings | lengths | {"reference": reference_tables(), "published": published}
