"""Profile indices are those of the protocol, on the numbers that the paper prints and on made-up runs."""

import numpy as np
import pandas as pd
import pytest

from stateatlas import profiles
from stateatlas.tables import SCHEMAS

# Probe accuracy by block and base, as printed for length 40.
PARITY = {"mamba": [0.55, 0.60, 0.71, 1.0], "transformer": [0.55, 0.76, 0.98, 1.0]}
DYCK = {"mamba": [0.73, 1.0, 1.0, 1.0], "transformer": [1.0, 1.0, 1.0, 1.0]}


@pytest.mark.parametrize(
    ("accuracy", "base", "concentration"),
    [
        (PARITY["mamba"], 0.5, 0.58),
        (PARITY["transformer"], 0.5, 0.44),
        (DYCK["mamba"], 0.41, 0.54),
        (DYCK["transformer"], 0.41, 1.0),
    ],
)
def test_concentration_of_the_printed_table(accuracy, base, concentration):
    found = profiles.indices(profiles.relative(accuracy, base))
    assert found["concentration"] == pytest.approx(concentration, abs=0.005)


def test_centre_stays_behind_on_both_tasks():
    for table, base in ((PARITY, 0.5), (DYCK, 0.41)):
        centre = {name: profiles.indices(profiles.relative(row, base))["centre"] for name, row in table.items()}
        assert centre["mamba"] > centre["transformer"]


def test_all_indices_of_one_profile():
    r = profiles.relative([0.55, 0.60, 0.71, 1.0], 0.5)
    assert r == pytest.approx([0.1, 0.2, 0.42, 1.0])
    assert profiles.rises(r) == pytest.approx([0.1, 0.1, 0.22, 0.58])
    assert profiles.indices(r) == pytest.approx(
        {
            "concentration": 0.58,
            "centre": (0.9 + 0.8 + 0.58) / 4,
            "largest_rise_site": 4,
            "first_readable": 0.2,
            "late_rise_margin": 0.58 - 0.22,
        }
    )


def test_r_is_clipped_below_base():
    assert profiles.relative([0.4, 0.6, 0.9], 0.5).tolist() == pytest.approx([0.0, 0.25, 1.0])


def test_no_profile_when_no_block_beats_base():
    assert np.isnan(profiles.relative([0.5, 0.45], 0.5)).all()


def test_first_readable_takes_the_better_of_two_blocks():
    assert profiles.indices(np.array([0.99, 0.5, 1.0]))["first_readable"] == 0.99


def test_a_single_block_has_no_margin():
    assert "late_rise_margin" not in profiles.indices(np.array([1.0]))


@pytest.mark.parametrize(
    ("accuracy", "site"),
    [
        ([0.5, 0.99, 0.995, 0.99], 2),  # exactly half a point below the best counts
        ([0.5, 0.9899, 0.995, 0.99], 3),
        ([1.0, 1.0, 1.0, 1.0], 1),
        ([0.1, 0.2, 0.3, 0.4], 4),
    ],
)
def test_best_site_is_the_earliest_within_half_a_point(accuracy, site):
    assert profiles.best_site(np.array(accuracy)) == site


def probe_rows(run, accuracy, length=16, half="both", **more):
    row = {
        "length": length,
        "target": "state",
        "control": "none",
        "half": half,
        "metric": "accuracy",
        "n": 100,
    }
    row |= {"low": np.nan, "high": np.nan, **dict(zip(profiles.RUN, run, strict=True)), **more}
    return [{**row, "site": site, "value": value} for site, value in enumerate(accuracy)]


def base_rows(task, value, length=16):
    rows = probe_rows(("encoding", task, "-", "-", -1), [value], length, control="position_token")
    return [{**row, "site": -1} for row in rows]


def tables(runs, base=0.5):
    """runs: (architecture, model, seed) -> (embedding and block accuracies, accuracy of the model)."""
    probes, behaviour = [*base_rows("parity", base), *base_rows("parity", 0.3, length=24)], []
    for (architecture, model, seed), (accuracy, own) in runs.items():
        run = ("encoding", "parity", architecture, model, seed)
        for half in ("both", "selection", "measurement"):
            probes += probe_rows(run, accuracy, half=half)
            probes += probe_rows(run, [0.9] * len(accuracy), length=24, half=half)
        probes += probe_rows(run, [0.9] * len(accuracy), control="shuffled_labels")
        probes += probe_rows(run, [0.9] * len(accuracy), target="stack_top")
        for length, value in ((16, own), (24, 0.6)):
            behaviour.append({**dict(zip(profiles.RUN, run, strict=True)), "length": length, "metric": "accuracy"})
            behaviour[-1] |= {"value": value, "n": 100, "low": np.nan, "high": np.nan}
    return pd.DataFrame(probes)[SCHEMAS["probes"]], pd.DataFrame(behaviour)[SCHEMAS["behaviour"]]


def derived(probes, behaviour):
    return profiles.derive({"probes": probes, "behaviour": behaviour}, {"of_corpora": []})


def value(table, metric, seed=0, site=-1, model="trained"):
    rows = table[(table["metric"] == metric) & (table["seed"] == seed) & (table["site"] == site)]
    return rows.loc[rows["model"] == model, "value"].item()


RUNS = {
    ("mamba", "trained", 0): ([0.99, 0.55, 0.60, 0.71, 1.0], 0.999),
    ("mamba", "trained", 1): ([0.99, 0.60, 0.70, 0.80, 1.0], 0.995),
    ("mamba", "trained", 2): ([0.99, 0.50, 0.50, 0.60, 0.7], 0.9949),
    ("mamba", "capped", 0): ([0.99, 0.75, 1.00, 1.00, 1.0], 1.0),
    ("mamba", "untrained", 0): ([0.99, 0.5, 0.5, 0.5, 0.52], 0.5),
}


def test_table_has_the_contract_columns_and_the_training_length_only():
    table = derived(*tables(RUNS))
    assert list(table.columns) == SCHEMAS["profiles"]
    assert set(table["length"]) == {16}
    assert set(table["model"]) == {"trained", "capped"}
    assert not table.duplicated(["architecture", "model", "seed", "site", "metric"]).any()


def test_table_leaves_the_embedding_out():
    table = derived(*tables(RUNS))
    assert value(table, "r", site=4) == 1
    assert value(table, "r", site=1) == pytest.approx(0.1)
    assert value(table, "late_rise_margin") == pytest.approx(0.36)
    assert value(table, "rise", site=4) == pytest.approx(0.58)
    assert value(table, "base") == 0.5
    assert value(table, "centre", model="capped") == pytest.approx(0.125)


def test_solved_is_99_5_per_cent_at_the_training_length():
    table = derived(*tables(RUNS))
    assert [value(table, "solved", seed) for seed in (0, 1, 2)] == [1, 1, 0]


def test_mean_profile_is_that_of_the_solved_seeds():
    table = derived(*tables(RUNS))
    assert [value(table, "r", -1, site) for site in (1, 2, 3, 4)] == pytest.approx([0.15, 0.30, 0.51, 1.0])
    assert value(table, "concentration", -1) == pytest.approx(0.49)
    assert value(table, "best_site", -1) == 4
    assert "solved" not in set(table.loc[table["seed"] == -1, "metric"])


def test_no_mean_profile_without_solved_seeds():
    runs = {run: (accuracy, 0.9) for run, (accuracy, _) in RUNS.items()}
    assert (derived(*tables(runs))["seed"] >= 0).all()


def test_best_site_is_chosen_on_the_selection_half():
    probes, behaviour = tables({("mamba", "trained", 0): ([0.9, 0.6, 1.0, 0.7], 1.0)})
    chosen = (probes["half"] == "selection") & (probes["site"] == 1) & (probes["control"] == "none")
    probes.loc[chosen & (probes["length"] == 16) & (probes["target"] == "state"), "value"] = 1.0
    table = derived(probes, behaviour)
    assert value(table, "best_site") == 1
    assert value(table, "largest_rise_site") == 2


def test_undefined_profiles_have_no_r_but_a_best_site():
    table = derived(*tables({("mamba", "trained", 0): ([0.9, 0.4, 0.45], 0.6)}))
    assert set(table["metric"]) == {"base", "best_site", "solved"}
    assert table["value"].notna().all()


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda p, b: (p[p["control"] != "position_token"], b), "no position_token accuracy"),
        (lambda p, b: (p, b[b["seed"] != 1]), "no accuracy for encoding/parity/mamba/trained/1"),
        (
            lambda p, b: (p[(p["half"] != "selection") | (p["seed"] != 1)], b),
            "lacks sites or seeds on half selection",
        ),
        (lambda p, b: (p[(p["site"] != 2) | (p["seed"] != 1)], b), "lacks sites or seeds on half both"),
    ],
)
def test_missing_rows_are_named(broken, message):
    with pytest.raises(ValueError, match=message):
        derived(*broken(*tables(RUNS)))
