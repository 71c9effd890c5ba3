"""Profile indices: at which block a model's state becomes readable.

The profile of a model is its probe accuracy after each block (sites 1..n; the embedding, site 0, is no
part of it), held against `base`, the accuracy of a probe that sees only position and token. All
accuracies are shares.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

SOLVED = 0.995  # token accuracy at the training length
SOLVED_ABOVE_BASE = 0.2  # of a task from a corpus: balanced accuracy above base
NEAR_BEST = 0.005  # sites this close to the best one count as best
MODELS = ("trained", "capped")
MEAN_SEED = -1  # the row of the mean over solved seeds
WHOLE = -1  # the site of an index of the whole profile
RUN = ["study", "task", "architecture", "model", "seed"]
COLUMNS = [*RUN, "length", "site", "metric", "value"]


def relative(accuracy: np.ndarray, base: float) -> np.ndarray:
    """r of each block: (accuracy - base) / (best accuracy - base), clipped to [0, 1].

    accuracy: (blocks,). NaN everywhere when no block beats `base`: there is then no profile to speak of.
    """
    accuracy = np.asarray(accuracy, dtype=float)
    reach = accuracy.max() - base
    if reach <= 0:
        return np.full(accuracy.shape, np.nan)
    return np.clip((accuracy - base) / reach, 0.0, 1.0)


def rises(r: np.ndarray) -> np.ndarray:
    """What each block adds to r; the first one starts from 0."""
    return np.diff(r, prepend=0.0)


def indices(r: np.ndarray) -> dict[str, float]:
    """The indices of a whole profile. r: (blocks,), without NaN.

    With a single block there is no other rise, and `late_rise_margin` is missing.
    """
    rise = rises(r)
    found = {
        "concentration": rise.max(),
        "centre": np.mean(1.0 - r),
        "largest_rise_site": rise.argmax() + 1,
        "first_readable": r[:2].max(),
    }
    if rise.size > 1:
        found["late_rise_margin"] = rise[-1] - rise[:-1].max()
    return {metric: float(value) for metric, value in found.items()}


def best_site(accuracy: np.ndarray) -> int:
    """The earliest block within half a percentage point of the best, as a site (block 0 is site 1).

    accuracy: (blocks,), measured on the half of the test sequences that is for choosing.
    """
    accuracy = np.asarray(accuracy, dtype=float)
    # The slack keeps .99 within .005 of .995 whatever the last bit says.
    return int(np.argmax(accuracy >= accuracy.max() - NEAR_BEST - 1e-12)) + 1


def derive(tables: dict[str, pd.DataFrame], cfg: dict) -> pd.DataFrame:
    """All indices at the training length of trained and capped models, one row each, sorted.

    tables: `probes` and `behaviour`, whole. cfg: `of_corpora`, the tasks that draw from a corpus. Rows of seed -1
    describe the mean profile of the solved seeds: the mean r for all indices, the mean accuracy for `best_site`. Where
    r is undefined its rows are missing. Raises ValueError when a run has probes but no base, no behaviour or no
    choosing half.
    """
    probes, behaviour = _at_training_length(tables["probes"]), tables["behaviour"]
    base = _bases(probes, "accuracy")
    solved = solved_runs(behaviour, _bases(probes, "balanced_accuracy"), cfg["of_corpora"])
    blocks = probes[
        (probes["control"] == "none")
        & (probes["target"] == "state")
        & (probes["metric"] == "accuracy")
        & (probes["site"] >= 1)
        & probes["model"].isin(MODELS)
    ]
    rows = []
    for cell, runs in blocks.groupby(RUN[:-1], sort=True):
        rows += _cell_rows(cell, runs, base, solved)
    return pd.DataFrame(rows, columns=COLUMNS)


def solved_runs(behaviour: pd.DataFrame, base: pd.Series, of_corpora: list[str]) -> pd.Series:
    """Whether each run is solved, by its identity columns.

    It has 99.5 % token accuracy at the training length, or on a task from a corpus, where classes differ in size by
    orders of magnitude, a balanced accuracy 20 pp above `base`, that of position and token.
    """
    rows = _at_training_length(behaviour)
    wide = rows.pivot_table(index=RUN, columns="metric", values="value")
    solved = wide["accuracy"] >= SOLVED
    for run in wide.index[wide.index.get_level_values("task").isin(of_corpora)]:
        solved[run] = wide.loc[run, "balanced_accuracy"] >= base[run[:2]] + SOLVED_ABOVE_BASE
    return solved


def _at_training_length(table: pd.DataFrame) -> pd.DataFrame:
    """Models are evaluated at their training length and beyond, so it is the smallest length of the task."""
    return table[table["length"] == table.groupby(["study", "task"])["length"].transform("min")]


def _bases(probes: pd.DataFrame, metric: str) -> pd.Series:
    """What the position + token probe reaches, by (study, task)."""
    rows = probes[
        (probes["control"] == "position_token")
        & (probes["target"] == "state")
        & (probes["half"] == "both")
        & (probes["metric"] == metric)
    ]
    return rows.set_index(["study", "task"])["value"]


def _cell_rows(cell: tuple, runs: pd.DataFrame, base: pd.Series, solved: pd.Series) -> list[tuple]:
    """Rows of one cell (study, task, architecture, model): each seed, then the mean of the solved ones."""
    study, task = cell[:2]
    if (study, task) not in base.index:
        raise ValueError(f"probes: no position_token accuracy of the state for {task}: it is the base")
    floor = float(base[study, task])
    length = int(runs["length"].iloc[0])
    accuracy = _by_site(runs, "both", cell)
    choosing = _by_site(runs, "selection", cell)
    flags = {seed: _is_solved((*cell, seed), solved) for seed in accuracy.index}
    r = accuracy.apply(lambda row: relative(row.to_numpy(), floor), axis=1, result_type="broadcast")
    rows = []
    for seed in accuracy.index:
        whole = {"base": floor, "best_site": best_site(choosing.loc[seed]), "solved": float(flags[seed])}
        rows += _run_rows((*cell, seed), length, r.loc[seed].to_numpy(), whole)
    kept = [seed for seed, flag in flags.items() if flag]
    if kept:
        whole = {"base": floor, "best_site": best_site(choosing.loc[kept].mean())}
        rows += _run_rows((*cell, MEAN_SEED), length, r.loc[kept].mean().to_numpy(), whole)
    return rows


def _by_site(runs: pd.DataFrame, half: str, cell: tuple) -> pd.DataFrame:
    """Accuracy of one cell: a row per seed, a column per block."""
    wide = runs[runs["half"] == half].set_index(["seed", "site"])["value"].unstack()  # noqa: PD010, refuses doubles
    if set(wide.index) != set(runs["seed"]) or wide.isna().to_numpy().any():
        raise ValueError(f"probes: {'/'.join(map(str, cell))} lacks sites or seeds on half {half}")
    return wide


def _is_solved(run: tuple, solved: pd.Series) -> bool:
    if run not in solved.index:
        raise ValueError(f"behaviour: no accuracy for {'/'.join(map(str, run))}, which has probes")
    return bool(solved[run])


def _run_rows(run: tuple, length: int, r: np.ndarray, whole: dict[str, float]) -> list[tuple]:
    found = {(WHOLE, metric): float(value) for metric, value in whole.items()}
    if not np.isnan(r).any():
        found |= {(WHOLE, metric): value for metric, value in indices(r).items()}
        found |= {(site, "r"): value for site, value in enumerate(r.tolist(), start=1)}
        found |= {(site, "rise"): value for site, value in enumerate(rises(r).tolist(), start=1)}
    return [(*run, length, site, metric, value) for (site, metric), value in sorted(found.items())]
