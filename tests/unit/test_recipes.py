"""The recipe grid as a table, and which cells the experiments train."""

import pandas as pd

from stateatlas import experiments, recipes, tables

SETTINGS = {
    "tasks": ["parity"], "architectures": ["lstm", "mamba"], "seeds": 2, "extras": ["recipes", "attribution"],
    "recipes": {"tasks": ["parity"], "architectures": ["lstm"], "embedding_std": [1.0], "learning_rate": [2.0]},
    "attribution": {"tasks": ["parity"], "architectures": ["mamba", "mamba-noconv"], "seeds": 3},
}  # fmt: skip


def cells(rule: str, **change) -> list[tuple[str, str]]:
    return [(cell["architecture"], cell["seed"]) for cell in experiments.cells(SETTINGS | change, rule)]


def test_every_cell_is_trained_once_and_measured_as_its_experiments_ask():
    trained = cells("train")
    assert len(set(trained)) == len(trained)
    grid = {"lstm", "lstm-std1", "lstm-lr2", "lstm-std1-lr2"}
    assert {name for name, _ in trained} == grid | {"mamba", "mamba-noconv"}
    assert [seed for name, seed in trained if name == "mamba"] == ["0", "1", "2"]
    assert {name for name, _ in cells("ablate")} == {"lstm", "mamba"}
    assert set(cells("probe")) == {(name, seed) for name in grid | {"mamba"} for seed in ("0", "1")}
    assert set(cells("train", extras=[])) == {(name, seed) for name in ("lstm", "mamba") for seed in ("0", "1")}


def profile(architecture: str, seed: int, solved: float, value: float) -> list[dict]:
    run = {"study": "encoding", "task": "parity", "architecture": architecture, "model": "trained", "seed": seed}
    both = {"solved": solved, "concentration": value}
    return [run | {"length": 16, "site": -1, "metric": metric, "value": v} for metric, v in both.items()]


def test_the_grid_has_the_solved_seeds_of_its_architectures_with_their_recipe():
    rows = [
        *profile("lstm", 0, 1, 0.1),
        *profile("lstm-std1-lr2", 1, 1, 0.2),
        *profile("lstm-std1-lr2", 2, 0, 0.3),  # not solved
        *profile("mamba-noconv", 0, 1, 0.4),  # another model, no other recipe
        *profile("mini-mamba", 0, 1, 0.5),  # a tuned language model, whose name has no forms behind it
        *profile("gru-std1", 0, 1, 0.5),  # not in the grid
    ]
    cfg = {"recipes": {"tasks": ["parity"], "architectures": ["lstm", "mamba"]}, "training": {"embedding_std": 0.1}}
    found = tables.frame("recipes", recipes.derive({"profiles": pd.DataFrame(rows)}, cfg))
    columns = ["architecture", "seed", "embedding_std", "rate", "value"]
    assert found[columns].to_numpy().tolist() == [["lstm", 0, 0.1, 1.0, 0.1], ["lstm", 1, 1.0, 2.0, 0.2]]
