"""Which rows of the tables a figure shows. Tables have the columns that `stateatlas.tables` lists."""

import pandas as pd

from stateatlas.profiles import SOLVED

CELL = ["task", "architecture", "model", "seed"]


def at_training_length(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows at the training length. Nothing is evaluated below it, so it is the shortest length of a task."""
    return frame[frame["length"] == frame.groupby("task")["length"].transform("min")]


def one_half(frame: pd.DataFrame, *wanted: str) -> pd.DataFrame:
    """Rows of the first half of the test sequences in `wanted` that the table has at all."""
    for half in wanted:
        rows = frame[frame["half"] == half]
        if len(rows):
            return rows
    return frame.iloc[:0]


def trained(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of models that stopped early or at the cap, single seeds only."""
    return frame[(frame["model"] == "trained") & (frame["seed"] >= 0)]


def of(frame: pd.DataFrame, **columns) -> pd.DataFrame:
    """Rows in which every named column has the given value."""
    for column, value in columns.items():
        frame = frame[frame[column] == value]
    return frame


def solved_seeds(profiles: pd.DataFrame) -> dict[tuple[str, str], list[bool]]:
    """(task, architecture) -> solved or not, by seed, at the training length."""
    rows = at_training_length(trained(of(profiles, metric="solved"))).sort_values("seed")
    return {key: [value >= 0.5 for value in group["value"]] for key, group in rows.groupby(["task", "architecture"])}


def solved_runs(behaviour: pd.DataFrame, profiles: pd.DataFrame | None = None) -> dict[tuple[str, str], list[bool]]:
    """The same for every trained cell, also for those that no probe was fitted on; `profiles`, where given, decides."""
    rows = at_training_length(trained(of(behaviour, metric="accuracy"))).sort_values("seed")
    found = {key: list(group["value"] >= SOLVED) for key, group in rows.groupby(["task", "architecture"])}
    return found if profiles is None else found | solved_seeds(profiles)


def base_lines(probes: pd.DataFrame, target: str = "state") -> dict[str, pd.Series]:
    """task -> accuracy of the position + token probe, a share, indexed by length."""
    rows = one_half(of(probes, control="position_token", target=target, metric="accuracy"), "both", "measurement")
    return {task: group.groupby("length")["value"].mean() for task, group in rows.groupby("task")}


def random_ks(group: pd.DataFrame) -> tuple[int, int]:
    """The sizes of the random subspaces that stand beside the top direction and beside the row space."""
    rank = group.loc[group["subspace"] == "row_space", "k"]
    return 1, int(rank.max()) if len(rank) else 1


def drops(ablations: pd.DataFrame, profiles: pd.DataFrame) -> pd.DataFrame:
    """Edited rows of trained models with what the edit cost.

    Adds `clean` (accuracy of the unedited model, a share, same seed, length and half), `drop` (percentage
    points, positive when the edit hurts) and `best` (the row's site is the model's best-probe site).
    """
    rows = one_half(trained(of(ablations, metric="accuracy")), "measurement", "both")
    clean = rows[rows["method"] == "clean"].groupby([*CELL, "length"])["value"].mean().rename("clean")
    best = (
        at_training_length(trained(of(profiles, metric="best_site"))).groupby(CELL)["value"].first().rename("best_site")
    )
    edited = rows[rows["method"] != "clean"].join(clean, on=[*CELL, "length"]).join(best, on=CELL)
    return edited.assign(drop=100 * (edited["clean"] - edited["value"]), best=edited["site"] == edited["best_site"])
