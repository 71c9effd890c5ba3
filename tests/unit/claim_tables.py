"""Small made-up tables with known verdicts, and the claims of the repository judged on them."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from stateatlas import profiles
from stateatlas.claims import load_claims
from stateatlas.tables import SCHEMAS
from stateatlas.verdicts import evaluate

ROOT = Path(__file__).parents[2]
DATA = ROOT / "data" / "claims.yaml"
SCHEMA = ROOT / "rules" / "schemas" / "claims.schema.yaml"
ARCHITECTURES = ("transformer", "mamba", "mamba2", "lstm", "gru")
RECURRENT_AND_SSM = ARCHITECTURES[1:]
LENGTHS = (16, 24, 32, 40, 48)
LATE, GRADUAL, AT_ONCE = [0.1, 0.2, 0.3, 1.0], [0.2, 0.5, 0.8, 1.0], [1.0, 1.0, 1.0, 1.0]
MIDDLE = [0.5, 1.0, 1.0, 1.0]


@cache
def published():
    return load_claims(DATA, SCHEMA, SCHEMAS)


def judge(name, tables, scale="laptop"):
    """The verdict on one claim of the repository, its row, and the rows of its atoms by cell."""
    return judged([claim for claim in published() if claim["id"] == name], tables, scale)


def judge_own(folder, tables, scale="laptop", **claim):
    """The same for a claim made up for the test."""
    path = folder / "claims.yaml"
    common = {"id": "A1", "study": "encoding", "title": "t", "statement": "s", "needs": "n", "figure": "f"}
    common |= {"published": {"value": None, "text": "none"}, "margin": None, "bound": "> 0"}
    path.write_text(yaml.safe_dump([{**common, **claim}]))
    return judged(load_claims(path, SCHEMA, SCHEMAS), tables, scale)


def judged(claims, tables, scale):
    table = evaluate(claims, tables, scale)
    assert list(table.columns) == SCHEMAS["claims"]
    assert table["atom"].tolist() == list(range(-1, len(table) - 1))
    whole, atoms = table.iloc[0], table.iloc[1:]
    return whole["verdict"], whole, atoms.set_index("cell")


def frame(name, rows):
    return pd.DataFrame(rows).reindex(columns=SCHEMAS[name])


def run(task, architecture, seed, model="trained"):
    return {"study": "encoding", "task": task, "architecture": architecture, "model": model, "seed": seed}


def profile_rows(task, architecture, seeds, solved=None, length=16):
    """seeds: one r profile a seed; solved: a flag for each, all by default."""
    rows = []
    for seed, r in enumerate(seeds):
        who = {**run(task, architecture, seed), "length": length}
        whole = profiles.indices(np.array(r)) | {
            "solved": 1.0 if solved is None else solved[seed],
            "best_site": 2,
        }
        rows += [{**who, "site": -1, "metric": metric, "value": value} for metric, value in whole.items()]
        rows += [{**who, "site": site, "metric": "r", "value": value} for site, value in enumerate(r, start=1)]
    # What must not be counted: the mean profile and the model that was trained on to the cap.
    rows += [{**row, "seed": -1, "value": 9.0} for row in rows if row["seed"] == 0 and row["metric"] != "solved"]
    rows += [{**row, "model": "capped", "value": -9.0} for row in rows if row["seed"] == 0]
    return rows


def profile_table(shapes, solved=None):
    """shapes: (task, architecture) -> r profiles, a seed each; solved: the same keys -> flags."""
    rows = [row for cell, seeds in shapes.items() for row in profile_rows(*cell, seeds, (solved or {}).get(cell))]
    return {"profiles": frame("profiles", rows)}


def noisy(r, seeds=3):
    """The same profile with a little less before its last block, seed by seed."""
    return [[*(value * (1 - 0.01 * seed) for value in r[:-1]), r[-1]] for seed in range(seeds)]


def behaviour_rows(task, architecture, seeds, fall=0.0, model="trained"):
    """seeds: the accuracy of each at the training length; `fall` is taken off at every longer one."""
    rows = []
    for seed, accuracy in enumerate(seeds):
        for length in LENGTHS:
            value = accuracy - fall * (length != LENGTHS[0])
            row = {
                **run(task, architecture, seed, model),
                "length": length,
                "metric": "accuracy",
                "value": value,
            }
            rows += [
                {**row, "n": 9, "low": value - 0.01, "high": value + 0.01},
                {**row, "metric": "solved_prefix"},
            ]
    return rows


def base_rows(task, value):
    row = {
        **run(task, "-", -1, "-"),
        "site": -1,
        "target": "state",
        "control": "position_token",
        "half": "both",
    }
    return [{**row, "length": length, "metric": "accuracy", "value": value, "n": 9} for length in LENGTHS]
