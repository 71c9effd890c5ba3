"""The tables of all cells in one."""

import json
from pathlib import Path

import pandas as pd

from stateatlas import tables


def concatenate(paths: list[Path], name: str) -> pd.DataFrame:
    """Return the tables at `paths` below each other."""
    return pd.concat([tables.read(path, name) for path in paths], ignore_index=True)


def training(folders: list[Path]) -> list[dict]:
    """Return the training table from the cells' weights folders, `<task>/<architecture>/seed<k>/weights`.

    The model `trained` has the rows up to its stop, `capped` all of them.
    """
    rows = []
    for folder in folders:
        history = json.loads((folder / "history.json").read_text())
        task, architecture, seed, _ = folder.parts[-4:]
        cell = {
            "study": "encoding",
            "task": task,
            "architecture": architecture,
            "seed": int(seed.removeprefix("seed")),
        }
        ends = {"trained": history["stop_step"]}
        if (folder / "capped").exists():
            ends["capped"] = history["cap"]
        for model, end in ends.items():
            summary = [
                {"step": end, "metric": key, "value": history[key]}
                for key in ("stop_step", "cap", "stopped", "covered_prefix")
            ]
            measured = [row for row in history["rows"] if row["step"] <= end]
            rows += [cell | {"model": model, "n": 1} | row for row in measured + summary]
    return rows


def minis(folders: list[Path]) -> list[dict]:
    """Return the minis table from their weights folders, `<model>/weights`: curves, and the losses at the end."""
    rows = []
    for folder in folders:
        history = json.loads((folder / "history.json").read_text())
        model = {"model": folder.parent.name, "n": history["held_out_windows"]}
        ends = [key for key in history if key.endswith("_nats") or key in ("gain", "good_enough")]
        rows += [model | row for row in history["rows"]]
        last = {"step": history["steps"]}
        rows += [model | last | {"metric": f"final_{key}", "value": float(history[key])} for key in ends]
    return rows
