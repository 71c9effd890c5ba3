"""A verdict follows from the interval and the bound, and that of a claim from its atoms."""

import pandas as pd
import pytest
from claim_tables import (
    ARCHITECTURES,
    AT_ONCE,
    GRADUAL,
    LATE,
    MIDDLE,
    RECURRENT_AND_SSM,
    frame,
    judge,
    judge_own,
    noisy,
    profile_table,
    run,
)

from stateatlas import bounds

WIDE = [[0.1, 0.2, 0.3, 1.0], [0.2, 0.9, 0.9, 1.0], [0.1, 0.5, 0.6, 1.0]]


@pytest.mark.parametrize(
    ("text", "low", "high", "says"),
    [
        ("> 0.5", 0.6, 0.7, "inside"),
        ("> 0.5", 0.5, 0.7, "open"),
        ("> 0.5", 0.4, 0.5, "outside"),
        (">= 0.5", 0.5, 0.7, "inside"),
        (">= 0.5", 0.4, 0.5, "open"),
        ("< 0.5", 0.5, 0.5, "outside"),
        ("< 0.5", 0.4, 0.49, "inside"),
        ("<= 0.5", 0.5, 0.5, "inside"),
        ("<= .5", 0.51, 0.6, "outside"),
        ("> -0.02", -0.01, 0.0, "inside"),
        ("in [0.8, 1.2]", 0.8, 1.2, "inside"),
        ("in (0.8, 1.2)", 0.8, 1.0, "open"),
        ("in (0.8, 1.2)", 0.7, 0.8, "outside"),
        ("in [0.8, 1.2]", 1.3, 1.4, "outside"),
        ("in [0.8, 1.2]", 0.7, 1.3, "open"),
    ],
)
def test_an_interval_is_inside_outside_or_open(text, low, high, says):
    bound = bounds.parse(text)
    assert (bound.inside(low, high), bound.outside(low, high)) == (says == "inside", says == "outside")


@pytest.mark.parametrize("text", ["0", "> zero", "=> 0", "> 1e-3", "in [2, 1]", "in [1 2]", "> 0 pp", ""])
def test_what_is_no_bound_is_refused(text):
    with pytest.raises(ValueError, match="not a bound"):
        bounds.parse(text)


@pytest.mark.parametrize(
    ("shapes", "verdict"),
    [
        (dict.fromkeys(RECURRENT_AND_SSM, noisy(LATE)), "reproduced"),
        (dict.fromkeys(RECURRENT_AND_SSM, noisy(GRADUAL)), "contradicted"),
        (dict.fromkeys(RECURRENT_AND_SSM, WIDE), "inconclusive"),
        ({**dict.fromkeys(RECURRENT_AND_SSM, noisy(LATE)), "gru": noisy(GRADUAL)}, "mixed (3 of 4)"),
        ({**dict.fromkeys(RECURRENT_AND_SSM, noisy(LATE)), "gru": WIDE}, "mixed (3 of 4)"),
        ({**dict.fromkeys(RECURRENT_AND_SSM, WIDE), "gru": noisy(GRADUAL)}, "mixed (0 of 4)"),
        (dict.fromkeys(RECURRENT_AND_SSM, [LATE] * 3), "reproduced"),
    ],
)
def test_a_claim_that_needs_all_its_atoms(shapes, verdict):
    tables = profile_table({("parity", name): seeds for name, seeds in shapes.items()})
    assert judge("A1", tables)[0] == verdict


def test_unsolved_cells_are_left_out_and_counted():
    shapes = {("parity", name): noisy(LATE) for name in RECURRENT_AND_SSM}
    verdict, whole, atoms = judge("A1", profile_table(shapes, {("parity", "gru"): [1, 0, 0]}))
    assert verdict == "reproduced"
    assert "3 reproduced" in whole["reason"]
    assert "1 of 4 not evaluable: parity, gru: 1 of 3 seeds solved, needs 2" in whole["reason"]
    assert atoms.loc["parity, gru", "verdict"] == "not evaluable (parity, gru: 1 of 3 seeds solved, needs 2)"


def test_a_mixed_claim_counts_the_atoms_that_are_judged():
    shapes = {("parity", name): noisy(LATE) for name in RECURRENT_AND_SSM} | {("parity", "gru"): noisy(GRADUAL)}
    verdict, _, _ = judge("A1", profile_table(shapes, {("parity", "lstm"): [0, 0, 0]}))
    assert verdict == "mixed (2 of 3)"


def test_shapes_are_judged_on_solved_seeds_only():
    shapes = {("parity", name): [*noisy(LATE, 2), GRADUAL] for name in RECURRENT_AND_SSM}
    solved = dict.fromkeys(shapes, (1, 1, 0))
    verdict, _, atoms = judge("A1", profile_table(shapes, solved))
    assert verdict == "reproduced"
    assert set(atoms["n"]) == {2}
    assert "2 of 3 seeds solved" in atoms["reason"].iloc[0]


def test_no_solved_cell_at_all():
    shapes = {("parity", name): noisy(LATE) for name in RECURRENT_AND_SSM}
    verdict, _, _ = judge("A1", profile_table(shapes, dict.fromkeys(shapes, (0, 0, 0))))
    assert verdict.startswith("not evaluable (parity, mamba: 0 of 3 seeds solved, needs 2; ")
    assert verdict.endswith("; and 1 more)")


def test_no_shape_is_judged_at_smoke():
    shapes = {("parity", name): noisy(LATE) for name in RECURRENT_AND_SSM}
    verdict, _, _ = judge("A1", profile_table(shapes), scale="smoke")
    assert verdict.startswith("not evaluable (shapes are not judged at smoke, parity, mamba: 3 of 3 seeds solved")


def test_missing_tables_and_cells_are_named():
    assert judge("A1", {})[0] == "not evaluable (table profiles not computed)"
    assert judge("A16", {})[0] == "not evaluable (table inlp not computed)"
    only_one = profile_table({("parity", "mamba"): noisy(LATE)})
    assert judge("A1", only_one)[2].loc["parity, lstm", "verdict"] == "not evaluable (parity, lstm not run)"
    assert judge("A14", only_one)[0] == "not evaluable (code not run)"


@pytest.mark.parametrize(("seeds", "word"), [(2, True), (4, True), (5, False)])
def test_few_seeds_are_descriptive(seeds, word):
    tables = profile_table({("parity", name): noisy(LATE, seeds) for name in RECURRENT_AND_SSM})
    _, whole, atoms = judge("A1", tables)
    assert ("descriptive" in whole["reason"]) == word
    assert atoms["reason"].str.contains("descriptive").eq(word).all()
    assert whole["n"] == seeds


def drops(values, half_width=0.0005):
    """A table of one model: a drop a task, with its interval inside the model."""
    rows = []
    for task, value in values.items():
        row = {**run(task, "mamba-lm", 0), "family": "mamba", "metric": "final_site_drop", "value": value}
        rows.append({**row, "n": 9, "low": value - half_width, "high": value + half_width})
    return {"drops": pd.DataFrame(rows)}


def test_one_model_has_the_interval_of_its_table():
    verdict, _, atoms = judge("A12", drops({"parity": 0.001, "dyck": 0.003, "s3": 0.002}))
    assert atoms["verdict"].tolist() == ["reproduced", "contradicted", "inconclusive"]
    assert verdict == "mixed (1 of 3)"
    assert atoms.loc["parity, mamba-lm", "high"] == 0.0015
    assert atoms.loc["parity, mamba-lm", "reason"] == "descriptive (1 seed); interval inside the model"


def test_one_model_without_an_interval():
    verdict, _, _ = judge("A12", drops({"parity": 0.001, "dyck": 0.001, "s3": 0.001}, half_width=float("nan")))
    assert verdict == "not evaluable (1 seed and no interval inside the model)"


def test_by_construction(tmp_path):
    atom = {"name": "final block", "by_construction": "an identity"}
    verdict, whole, atoms = judge_own(tmp_path, {}, atoms=[atom])
    assert verdict == "by construction"
    assert whole["reason"] == "1 by construction"
    assert atoms["reason"].tolist() == ["an identity"]


def test_what_holds_by_construction_is_no_evidence(tmp_path):
    other = {"table": "drops", "metric": "final_site_drop", "where": {"task": "parity"}, "bound": "< 0.002"}
    atoms = [{"by_construction": "an identity"}, other]
    assert judge_own(tmp_path, drops({"parity": 0.001}), atoms=atoms)[0] == "reproduced"
    assert judge_own(tmp_path, drops({"parity": 0.01}), atoms=atoms)[0] == "contradicted"


def any_of(folder, centre, **claim):
    """A claim on architectures whose concentration is `centre`, with standard error .05 / sqrt(3)."""
    seeds = {name: [value - 0.05, value, value + 0.05] for name, value in centre.items()}
    rows = [
        {**run("parity", name, seed), "length": 16, "site": -1, "metric": "concentration", "value": value}
        for name, values in seeds.items()
        for seed, value in enumerate(values)
    ]
    atoms = [
        {
            "table": "profiles",
            "metric": "concentration",
            "each": {"architecture": list(centre)},
            "bound": "> 0.5",
        }
    ]
    return judge_own(folder, {"profiles": frame("profiles", rows)}, atoms=atoms, **claim)


def test_one_atom_is_enough_where_any_is_asked(tmp_path):
    far = {"mamba": 0.9, "lstm": 0.2, "gru": 0.2}
    assert any_of(tmp_path, far)[0] == "mixed (1 of 3)"
    assert any_of(tmp_path, far, any=True)[0] == "reproduced"
    assert any_of(tmp_path, dict.fromkeys(far, 0.1), any=True)[0] == "contradicted"
    assert any_of(tmp_path, dict.fromkeys(far, 0.5), any=True)[0] == "inconclusive"
    assert any_of(tmp_path, {"mamba": 0.5, "lstm": 0.1, "gru": 0.1}, any=True)[0] == "mixed (0 of 3)"


def test_any_widens_the_intervals_after_holm(tmp_path):
    # At .64 the 95 % interval (half width .124) keeps the bound, the one at 1 - .05 / 3 does not.
    close = {"mamba": 0.64, "lstm": 0.5, "gru": 0.5}
    assert any_of(tmp_path, close)[2].loc["mamba", "verdict"] == "reproduced"
    verdict, _, atoms = any_of(tmp_path, close, any=True)
    assert verdict == "inconclusive"
    assert atoms["reason"].str.contains("98.33 % interval after Holm").all()
    assert atoms.loc["mamba", "high"] - atoms.loc["mamba", "value"] == pytest.approx(0.2208, abs=1e-4)


def test_partners_count_only_together():
    shapes = {("parity", name): noisy(LATE) for name in RECURRENT_AND_SSM}
    shapes |= {("dyck", name): noisy(MIDDLE) for name in RECURRENT_AND_SSM}
    shapes |= {("parity", "transformer"): noisy(GRADUAL), ("dyck", "transformer"): [AT_ONCE] * 3}
    verdict, whole, atoms = judge("A5", profile_table(shapes, {("parity", "gru"): [0, 0, 0]}))
    assert verdict == "reproduced"
    assert whole["reason"].startswith("6 reproduced; descriptive (3 seeds); 2 of 8 not evaluable")
    alone = atoms.loc["dyck, gru - transformer"]
    assert alone["verdict"] == "not evaluable (counts only with parity, gru - transformer)"
    assert alone["value"] == pytest.approx(-0.5, abs=0.02)


HELD_OUT = ("mod3", "z6", "queue")


def taxonomy(held_out, solved=None):
    """Profiles of the known tasks, and on all held-out ones those of `held_out` (architecture -> profile)."""
    known = {"parity": LATE, "s3": GRADUAL, "dyck": AT_ONCE}
    shapes = {(task, name): [r] * 3 for task, r in known.items() for name in ARCHITECTURES}
    shapes |= {(task, name): [r(task)] * 3 for task in HELD_OUT for name, r in held_out.items()}
    return profile_table(shapes, solved)


PREDICTED = dict(zip(HELD_OUT, (LATE, GRADUAL, AT_ONCE), strict=True)).get
OFF = dict(zip(HELD_OUT, (GRADUAL, GRADUAL, AT_ONCE), strict=True)).get


@pytest.mark.parametrize(
    ("off", "unsolved", "verdict"),
    [
        ((), (), "contradicted"),
        (("gru",), (), "contradicted"),
        (("gru", "lstm"), (), "reproduced"),
        ((), ("gru", "lstm"), "contradicted"),
        ((), ("gru", "lstm", "mamba"), "inconclusive"),
        (("gru",), ("gru", "lstm", "mamba"), "inconclusive"),
    ],
)
def test_the_taxonomy_fails_when_one_task_is_off_in_two_architectures(off, unsolved, verdict):
    held_out = {name: OFF if name in off else PREDICTED for name in ARCHITECTURES}
    tables = taxonomy(held_out, {("mod3", name): [0, 0, 0] for name in unsolved})
    assert judge("A18", tables)[0] == verdict
