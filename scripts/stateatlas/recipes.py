"""The profile indices over the recipe grid (A20): does the published shape belong to the recipe?

An architecture's name says how its recipe differs, `lstm-std1-lr2`; here it is split into columns.
"""

import pandas as pd

from stateatlas.sizes import recipe_changes, unvaried

METRICS = ("concentration", "centre", "late_rise_margin", "first_readable", "largest_rise_site")


def derive(tables: dict[str, pd.DataFrame], cfg: dict) -> pd.DataFrame:
    """Return the indices of the trained, solved seeds of every cell of the grid.

    tables: `profiles`, whole. cfg: `recipes` (tasks, architectures) and `training`, whose `embedding_std` is that of
    the cells whose name does not say. `rate` is the learning rate in units of the chosen one.
    """
    profiles, grid = tables["profiles"], cfg["recipes"]
    runs = profiles[(profiles["model"] == "trained") & (profiles["seed"] >= 0) & profiles["task"].isin(grid["tasks"])]
    solved = runs[(runs["metric"] == "solved") & (runs["value"] == 1)][["task", "architecture", "seed"]]
    rows = runs[runs["metric"].isin(METRICS)].merge(solved, on=["task", "architecture", "seed"])
    changes = rows["architecture"].map(recipe_changes)
    rows = rows.assign(
        architecture=rows["architecture"].map(unvaried),
        embedding_std=[float(change.get("embedding_std", cfg["training"]["embedding_std"])) for change in changes],
        rate=[float(change.get("learning_rate", 1.0)) for change in changes],
    )
    return rows[rows["architecture"].isin(grid["architectures"])].drop(columns=["length", "site"])
