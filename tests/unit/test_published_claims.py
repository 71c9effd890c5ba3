"""The claims of the formal half of study A on tables whose verdicts are known beforehand."""

import numpy as np
import pytest
from claim_tables import (
    ARCHITECTURES,
    AT_ONCE,
    GRADUAL,
    LATE,
    LENGTHS,
    MIDDLE,
    RECURRENT_AND_SSM,
    base_rows,
    behaviour_rows,
    frame,
    judge,
    noisy,
    profile_table,
    run,
)
from scipy import stats


@pytest.mark.parametrize(
    ("claim", "shapes", "verdict"),
    [
        ("A2", {("parity", "transformer"): noisy(GRADUAL)}, "reproduced"),
        ("A2", {("parity", "transformer"): noisy(LATE)}, "contradicted"),
        ("A2", {("parity", "transformer"): [[0.2, 0.4, 0.6, 1.0], LATE, GRADUAL]}, "inconclusive"),
        ("A3", {("dyck", "transformer"): [[0.99, 0.5, 1, 1], [0.5, 0.99, 1, 1]]}, "reproduced"),
        ("A3", {("dyck", "transformer"): [[0.5, 0.98, 1, 1]] * 2}, "contradicted"),
        ("A4", {("dyck", name): noisy(MIDDLE) for name in RECURRENT_AND_SSM}, "reproduced"),
        ("A4", {("dyck", name): [[0.9, 1, 1, 1]] * 3 for name in RECURRENT_AND_SSM}, "contradicted"),
    ],
)
def test_shape_of_one_cell(claim, shapes, verdict):
    assert judge(claim, profile_table(shapes))[0] == verdict


def reversal(parity, dyck):
    shapes = {("parity", "transformer"): noisy(GRADUAL), ("dyck", "transformer"): [AT_ONCE, AT_ONCE, AT_ONCE]}
    shapes |= {("parity", name): noisy(parity) for name in RECURRENT_AND_SSM}
    return profile_table(shapes | {("dyck", name): [dyck] * 3 for name in RECURRENT_AND_SSM})


@pytest.mark.parametrize(
    ("parity", "dyck", "verdict"),
    [
        (LATE, MIDDLE, "reproduced"),
        ([0.24, 0.49, 0.74, 1.0], AT_ONCE, "contradicted"),
        (LATE, AT_ONCE, "mixed (4 of 8)"),
    ],
)
def test_reversal_needs_both_signs(parity, dyck, verdict):
    assert judge("A5", reversal(parity, dyck))[0] == verdict


def test_reversal_is_welchs_difference_of_solved_seeds():
    _, _, atoms = judge("A5", reversal(LATE, MIDDLE))
    own = [0.7, 0.7 + 0.003, 0.7 + 0.006]
    transformer = [0.3, 0.297, 0.294]
    expected = stats.ttest_ind(own, transformer, equal_var=False).confidence_interval()
    row = atoms.loc["parity, lstm - transformer"]
    assert (row["low"], row["high"]) == pytest.approx(tuple(expected))


def grouped(s3):
    shapes = {}
    for task, r in (("parity", LATE), ("s3", s3), ("dyck", AT_ONCE)):
        shapes |= {(task, name): noisy(r) for name in ARCHITECTURES}
    return shapes


@pytest.mark.parametrize(
    ("s3", "verdict"), [([0.1, 0.2, 0.4, 1.0], "reproduced"), ([0.9, 1.0, 1.0, 1.0], "contradicted")]
)
def test_s3_is_grouped_by_profile_distance(s3, verdict):
    assert judge("A6", profile_table(grouped(s3)))[0] == verdict


def test_s3_distance_and_its_jackknife():
    shapes = {
        ("s3", "lstm"): [[0.1, 0.2, 0.3, 1.0], [0.2, 0.4, 0.6, 1.0], [0.3, 0.3, 0.3, 1.0]],
        ("parity", "lstm"): [[0.0, 0.0, 0.0, 1.0]] * 3,
        ("dyck", "lstm"): [AT_ONCE] * 3,
    }
    row = judge("A6", profile_table(shapes))[2].loc["s3, lstm"]
    # S3 lies between Parity (0) and Dyck (1) in three blocks: r - (1 - r) in each of them.
    per_seed = [(2 * sum(r[:3]) - 3) / 4 for r in shapes["s3", "lstm"]]
    expected = stats.ttest_1samp(per_seed, 0).confidence_interval()
    assert row["value"] == pytest.approx(np.mean(per_seed))
    assert (row["low"], row["high"]) == pytest.approx(tuple(expected))


def test_s3_is_judged_where_all_three_tasks_are_solved():
    shapes = grouped([0.1, 0.2, 0.4, 1.0])
    _, whole, atoms = judge("A6", profile_table(shapes, {("dyck", "gru"): [1, 0, 0], ("s3", "lstm"): [0, 1, 1]}))
    assert atoms.loc["s3, gru", "verdict"] == "not evaluable (dyck, gru: 1 of 3 seeds solved, needs 2)"
    assert atoms.loc["s3, lstm", "n"] == 2
    assert whole["verdict"] == "reproduced"


def lengths(task_falls, seeds=(1.0, 0.999, 0.998)):
    """Accuracy at longer lengths: (task, architecture) -> what is lost there."""
    rows = [row for (task, name), fall in task_falls.items() for row in behaviour_rows(task, name, seeds, fall)]
    rows += behaviour_rows("s3", "lstm", [0.0, 0.0, 0.0], model="untrained")
    return {"behaviour": frame("behaviour", rows)}


FALLS = {"lstm": 0.0, "gru": 0.0, "mamba": 0.2, "mamba2": 0.2, "transformer": 0.4}


def test_recurrent_models_generalise():
    falls = {(task, name): fall for task in ("parity", "s3", "dyck") for name, fall in FALLS.items()}
    verdict, _, atoms = judge("A7", lengths(falls))
    assert (verdict, len(atoms)) == ("reproduced", 10)
    assert atoms.loc["dyck, gru - transformer", "value"] == pytest.approx(0.4 * 4 / 5)
    falls[("s3", "gru")] = 0.05
    falls[("dyck", "mamba")] = 0.0
    verdict, _, atoms = judge("A7", lengths(falls))
    assert verdict == "mixed (7 of 10)"
    assert atoms.loc["s3, gru", "verdict"] == "contradicted"
    assert atoms.loc["dyck, lstm - mamba", "verdict"] == "inconclusive"


def test_order_on_s3_is_that_of_family_means():
    falls = {("s3", name): fall for name, fall in FALLS.items()}
    assert judge("A8", lengths(falls))[0] == "reproduced"
    upside_down = {("s3", name): 0.4 - fall for name, fall in FALLS.items()}
    assert judge("A8", lengths(upside_down))[0] == "contradicted"


def test_family_means_are_formed_per_seed_first():
    accuracy = {
        "lstm": (1.0, 0.9, 0.8),
        "gru": (0.8, 0.9, 1.0),
        "mamba": (0.5, 0.6, 0.7),
        "mamba2": (0.5, 0.8, 0.8),
    }
    rows = [row for name, seeds in accuracy.items() for row in behaviour_rows("s3", name, seeds)]
    _, _, atoms = judge("A8", {"behaviour": frame("behaviour", rows)})
    row = atoms.loc["s3, lstm+gru - mamba+mamba2"]
    # The recurrent family is .9 for each seed, a point; the other .5, .7, .75.
    ssm = stats.ttest_1samp([0.5, 0.7, 0.75], 0).confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx((0.9 - ssm.high, 0.9 - ssm.low))
    assert atoms.loc["s3, mamba+mamba2 - transformer", "verdict"].startswith("not evaluable (no accuracy in behaviour")


def test_a_family_without_one_of_its_members_is_no_family():
    rows = [row for name in ("lstm", "mamba", "mamba2") for row in behaviour_rows("s3", name, [0.9, 0.8])]
    rows += behaviour_rows("s3", "gru", [0.9])
    _, _, atoms = judge("A8", {"behaviour": frame("behaviour", rows)})
    assert atoms.loc["s3, lstm+gru - mamba+mamba2", "verdict"] == "not evaluable (fewer than 2 seeds)"
    rows = [row for row in rows if row["architecture"] != "gru"]
    _, _, atoms = judge("A8", {"behaviour": frame("behaviour", rows)})
    assert atoms.loc["s3, lstm+gru - mamba+mamba2", "verdict"] == "not evaluable (no accuracy in behaviour for s3, gru)"


def ablated(top, longer_clean=0.95, architectures=ARCHITECTURES):
    """At the best site (2) random directions cost nothing on average, the top one costs `top`."""
    rows, behaviour, base, shapes = [], [], [], {}
    for task in ("parity", "dyck"):
        base += base_rows(task, 0.5)
        for name in architectures:
            shapes[task, name] = [LATE] * 3
            behaviour += behaviour_rows(task, name, [0.95] * 3, 0.95 - longer_clean)
            rows += [
                {
                    **run(task, name, seed),
                    "length": length,
                    "site": site,
                    "method": "zero",
                    "half": half,
                    **edit,
                }
                for seed in range(3)
                for length in LENGTHS
                for site in (1, 2)
                for half in ("selection", "measurement")
                for edit in edits(0.9 - 0.1 * seed, top + 0.001 * seed if (site, half) == (2, "measurement") else 0.0)
            ]
    common = {"metric": "accuracy", "n": 9}
    return profile_table(shapes) | {
        "ablations": frame("ablations", [{**row, **common} for row in rows]),
        "behaviour": frame("behaviour", behaviour),
        "probes": frame("probes", base),
    }


def edits(clean, top):
    yield {"subspace": "top_direction", "k": 1, "draw": 0, "value": clean - top}
    for draw, noise in enumerate((-0.02, 0.0, 0.02)):
        yield {"subspace": "random", "k": 1, "draw": draw, "value": clean + noise}
        yield {"subspace": "random", "k": 8, "draw": draw, "value": 0.0}


@pytest.mark.parametrize(("top", "verdict"), [(0.2, "reproduced"), (0.04, "contradicted"), (0.0495, "inconclusive")])
def test_the_direction_is_needed(top, verdict):
    word, _, atoms = judge("A9", ablated(top))
    assert word == verdict
    assert len(atoms) == 2 * 5 * 5
    assert atoms["value"].to_numpy() == pytest.approx(top + 0.001)


def test_longer_lengths_count_only_well_above_base():
    verdict, whole, atoms = judge("A9", ablated(0.2, longer_clean=0.69))
    assert verdict == "reproduced"
    assert "10 reproduced" in whole["reason"]
    assert "40 of 50 not evaluable: clean model less than 20 pp above base" in whole["reason"]
    assert atoms.loc["parity, lstm", "verdict"] == "reproduced"
    assert atoms.loc["parity, lstm, length 24", "verdict"].startswith("not evaluable")


def test_cells_that_were_not_run_are_named():
    verdict, _, atoms = judge("A9", ablated(0.2, architectures=("lstm",)))
    assert verdict == "reproduced"
    assert atoms.loc["parity, gru", "verdict"] == "not evaluable (no accuracy in ablations for parity, gru)"
    assert atoms.loc["dyck, gru, longer", "verdict"].startswith("not evaluable (no accuracy in behaviour for dyck")


def test_the_direction_is_paired_inside_the_run():
    row = judge("A9", ablated(0.2))[2].loc["dyck, gru, length 48"]
    expected = stats.ttest_1samp([0.2, 0.201, 0.202], 0).confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx(tuple(expected))


def refitted(gap, original=0.9):
    rows, base = [], []
    for task in ("parity", "s3", "dyck"):
        base += base_rows(task, 0.5)
        for name in ARCHITECTURES:
            for seed, site, subspace in np.ndindex(3, 5, 3):
                kind = ("top_direction", "row_space", "random")[subspace]
                row = {
                    **run(task, name, seed),
                    "length": 16,
                    "site": site,
                    "subspace": kind,
                    "k": 1 + subspace,
                }
                row |= {"target": "state", "draw": 0, "half": "measurement", "n": 9}
                start = original if site else 0.55
                for metric, value in (
                    ("original", start),
                    ("ablated", 0.5),
                    ("refitted", start - gap - seed / 1000),
                ):
                    rows.append({**row, "metric": f"accuracy_{metric}", "value": value})
                    rows.append({**row, "metric": f"accuracy_{metric}", "value": 0.0, "target": "stack_top"})
    return {"refits": frame("refits", rows), "probes": frame("probes", base)}


@pytest.mark.parametrize(
    ("gap", "verdict"),
    [(0.0, "reproduced"), (0.03, "contradicted"), (0.018, "inconclusive"), (-0.1, "reproduced")],
)
def test_a_refitted_probe_recovers(gap, verdict):
    word, _, atoms = judge("A15", refitted(gap))
    assert word == verdict
    assert len(atoms) == 3 * 5 * 4 * 2
    assert atoms.loc["s3, mamba2, L3, row_space", "value"] == pytest.approx(-gap - 0.001)


def test_refits_of_probes_near_base_are_left_out():
    assert judge("A15", refitted(0.0, original=0.69))[0] == (
        "not evaluable (original probe less than 20 pp above base)"
    )
