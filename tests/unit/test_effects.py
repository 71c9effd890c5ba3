"""The grid of study C: every cell is planned, what has no meaning says so, and effects are those of single runs."""

import numpy as np
import pytest
import tiny_models
from test_units import means_of

from stateatlas import adapters, complements, effects, spans, unit_cells, units
from stateatlas.interventions import NAMES, OF_ATTENTION

BOUNDARY = 12
SIGNATURE = np.arange(12.0).reshape(3, 4)[::-1].copy()  # the largest in the first block
CONTROLLED = ["gate_zero", "output_zero"]


def plan(family, chosen, controlled=CONTROLLED):
    return unit_cells.plan(units.family(family).INTERVENTIONS, "bos", effects.sizes(chosen), controlled)


@pytest.fixture
def model(tmp_path):
    _, folder = tiny_models.save("mamba2", tmp_path)
    return adapters.load(folder).double()


@pytest.fixture
def chosen(model):
    rng = np.random.default_rng(0)
    sets = {name: np.zeros((3, 4), bool) for name in ("bos", "single_bos", "dual")}
    sets["single_bos"][0, 1] = sets["dual"][[0, 1, 2], [2, 0, 3]] = True
    sets["bos"] = sets["single_bos"] | sets["dual"]
    return effects.draw_sets(sets, "bos", SIGNATURE, rng.random((3, 4)), 3, rng)


def test_every_cell_is_planned_and_says_why_it_is_not_evaluated(chosen):
    cells = plan("mamba2", chosen)
    assert len(cells) == len(NAMES) * 2 * len(chosen) == len(set(cells))
    for cell in cells:
        if cell.intervention in OF_ATTENTION:
            assert cell.status == "not applicable"
        elif cell.set in (*unit_cells.DRAWN, *unit_cells.SCANS) and cell.intervention not in CONTROLLED:
            assert cell.status == "no controls at this scale"
        else:
            empty = chosen[cell.set, cell.draw] is None or not chosen[cell.set, cell.draw].any()
            assert (cell.status == "planned") != empty
    assert {c.status for c in plan("gpt_neox", chosen, []) if c.intervention == "gate_zero"} == {"not applicable"}


def test_the_sets_are_what_they_are_called(chosen):
    single, dual = chosen["single", 0], chosen["dual", 0]
    assert (chosen["class", 0] == (single | dual)).all()
    assert not (chosen["top_activation", 0] & single).any()
    assert chosen["top_activation", 0].sum() == single.sum()
    assert (chosen["single_and_top", 0] | chosen["single_minus_top", 0] == single).all()
    for draw in range(3):
        assert (chosen["complement", draw].sum(axis=1) == single.sum(axis=1)).all()
        assert not (chosen["complement", draw] & single).any()
        assert chosen["dual_subsample", draw].sum() == single.sum()
        assert not (chosen["dual_subsample", draw] & ~dual).any()
        assert not (chosen["dual_complement", draw] & dual).any()


def test_scans_go_by_the_signature(chosen):
    assert [chosen["ranked", place].sum() for place in range(8)] == [1, 1, 1, 1, 1, 2, 3, 6]
    assert np.flatnonzero(chosen["ranked", 6]).tolist() == [1, 2, 3]
    assert (chosen["single_unit", 0] == chosen["single", 0]).all()
    assert not chosen["single_unit", 1].any()


def test_a_corpus_without_the_class_has_nothing_to_scan():
    sets = {name: np.zeros((3, 4), bool) for name in ("bos", "single_bos", "dual")}
    found = effects.draw_sets(sets, "bos", np.full((3, 4), np.nan), np.ones((3, 4)), 2, np.random.default_rng(0))
    assert not any(found[name, 0].any() for name in unit_cells.SCANS)


def test_the_cells_are_counted_before_any_model_is_there(chosen):
    sink = {"models": ["a"], "corpora": ["b"], "boundaries": ["bos"], "draws": 3}
    assert unit_cells.number(sink) == len(plan("mamba2", chosen))
    assert unit_cells.number(sink | {"models": ["a", "b", "c"], "corpora": ["d", "e"]}) == 6 * unit_cells.number(sink)


def test_a_set_without_complement_keeps_its_cells(chosen):
    everything = {name: np.ones((2, 4), bool) for name in ("bos", "single_bos", "dual")}
    drawn = effects.draw_sets(everything, "bos", np.ones((2, 4)), np.ones((2, 4)), 2, np.random.default_rng(0))
    statuses = {c.set: c.status for c in plan("mamba2", drawn) if c.intervention == "gate_zero"}
    assert statuses["complement"] == statuses["norm_matched"] == "no complement"
    assert statuses["top_activation"] == "no units"
    assert statuses["single"] == "planned"


@pytest.fixture
def evaluated(model, chosen):
    windows = spans.Windows(model, tiny_models.tokens(batch=6).numpy(), BOUNDARY, means_of(model))
    cells = plan("mamba2", chosen)
    losses = np.full((len(cells), 6), np.nan)
    assert len(list(effects.evaluate(windows, cells, chosen, losses))) == sum(c.status == "planned" for c in cells)
    return windows, cells, losses


def test_a_cell_is_the_loss_of_its_set_beyond_the_clean_model(evaluated, chosen):
    windows, cells, losses = evaluated
    for index, cell in enumerate(cells):
        if cell.status != "planned":
            assert np.isnan(losses[index]).all()
        elif index % 5 == 0:
            units = complements.as_units(chosen[cell.set, cell.draw])
            expected = windows.loss(cell.intervention, units, cell.span) - windows.loss()
            np.testing.assert_array_equal(losses[index], expected)


def test_an_interrupted_grid_goes_on_at_the_cell(evaluated, chosen):
    windows, cells, losses = evaluated
    half = losses.copy()
    half[40:] = np.nan
    done = list(effects.evaluate(windows, cells, chosen, half))
    assert min(done) >= 40
    np.testing.assert_array_equal(half, losses)


def test_effects_and_their_differences_are_means_over_windows_and_draws(evaluated):
    _, cells, losses = evaluated
    documents = np.array([0, 0, 1, 1, 2, 3])
    rows = {
        (row["intervention"], row["span"], row["metric"]): row
        for row in effects.summary(cells, losses, documents, np.random.default_rng(0), 200)
    }

    def mean(name):
        return losses[[i for i, c in enumerate(cells)
                       if (c.intervention, c.span, c.set) == ("gate_zero", "all", name)]].mean()  # fmt: skip

    found = {metric: row["value"] for (name, span, metric), row in rows.items() if (name, span) == ("gate_zero", "all")}
    assert found["specialist"] == pytest.approx(mean("single"))
    assert found["complement"] == pytest.approx(mean("complement"))
    assert found["specialist_minus_complement"] == pytest.approx(mean("single") - mean("complement"))
    assert found["dual_minus_half_specialist"] == pytest.approx(mean("dual_subsample") - 0.5 * mean("single"))
    top = mean("top_activation") - 0.8 * mean("single")
    assert found["top_activation_minus_four_fifths_specialist"] == pytest.approx(top)
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows.values())
    assert ("delta_shift", "all", "complement") not in rows
    assert not any(name in OF_ATTENTION for name, *_ in rows)


def test_intervals_resample_whole_documents():
    cells = [unit_cells.Cell("bos", "single", "gate_zero", "all", 0, "planned")]
    values = np.repeat([0.0, 1.0, 0.0, 1.0, 0.5], 20)[None]
    clustered, single = (
        next(effects.summary(cells, values, documents, np.random.default_rng(0), 2000))
        for documents in (np.repeat(np.arange(5), 20), np.arange(100))
    )
    assert clustered["high"] - clustered["low"] > 2 * (single["high"] - single["low"])


def test_the_table_of_cells_has_every_one_of_them(evaluated, chosen):
    _, cells, losses = evaluated
    rows = list(effects.planned(cells, chosen, losses))
    assert all(row["units"] == 1 for row in rows if (row["set"], row["status"]) == ("single_unit", "evaluated"))
    assert len(rows) == len(cells)
    assert {row["status"] for row in rows} == {
        "evaluated",
        "not applicable",
        "no controls at this scale",
        "no units",
    } & {row["status"] for row in rows} | {"evaluated", "not applicable", "no controls at this scale"}
    assert all(np.isnan(row["value"]) == (row["status"] != "evaluated") for row in rows)
