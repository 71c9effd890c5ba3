"""A made-up laptop run with all that stands beside the paper's own cells."""

import pandas as pd
from fake_tables import COLUMNS, FakeRun, fake_settings

from stateatlas import recipes


class Probed(FakeRun):
    """Cells that are trained and probed only."""

    def edits(self, who):
        """None."""


class Trained(Probed):
    """Cells that are trained only."""

    def probes(self, who):
        """None."""

    profile = probes

    def mean_profile(self, task, architecture):
        """None."""


def whole_run(**more) -> dict[str, pd.DataFrame]:
    """The tables of a laptop run with all that stands beside the paper's own cells."""
    settings = fake_settings(**more)
    held_out, grid = settings["held_out"], settings["recipes"]
    changed = [f"{name}-std{std:g}" for name in grid["architectures"] for std in grid["embedding_std"]]
    runs = [
        FakeRun(),
        Probed(tasks=held_out["tasks"], architectures=held_out["architectures"]),
        Probed(tasks=grid["tasks"], architectures=changed, unsolved=[("parity", "lstm-std1", 0)]),
        Trained(architectures=["mamba-noconv"], seeds=6),
        Trained(architectures=["mamba"], seeds=6),
    ]
    runs[-1].seeds = range(3, 6)  # the first three are the paper's own cells
    parts = [run.tables() for run in runs]
    tables = {}
    for name in parts[0]:
        filled = [part[name] for part in parts if len(part[name])]  # empty ones have no types
        tables[name] = pd.concat(filled, ignore_index=True) if filled else parts[0][name]
    return tables | {"recipes": recipes.derive(tables, settings)[COLUMNS["recipes"]]}
