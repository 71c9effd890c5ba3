"""Figures: they draw what the tables hold, whatever is missing, and the same data gives the same bytes."""

import importlib
from pathlib import Path

import numpy as np
import pytest
import yaml
from fake_runs import whole_run
from fake_tables import COLUMNS, FakeRun, fake_settings
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from stateatlas import scorecard, shown
from stateatlas.figures import style
from stateatlas.plan import FIGURES, figure_tables

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tables():
    return FakeRun(length=16).tables()


@pytest.fixture(scope="module")
def whole():
    """The tables of a run with held-out tasks, variants and the recipe grid in them."""
    return whole_run()


@pytest.fixture(scope="module")
def published():
    return yaml.safe_load((ROOT / "data" / "published.yaml").read_text())


def drawn(name, tables, settings) -> Figure:
    module = importlib.import_module(f"stateatlas.figures.{name}")
    return module.draw({table: tables[table] for table in module.TABLES}, settings)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for ax in figure.axes for text in ax.texts]


def dots(ax) -> int:
    return sum(len(collection.get_offsets()) for collection in markers(ax))


def markers(ax) -> list[PathCollection]:
    return [collection for collection in ax.collections if isinstance(collection, PathCollection)]


def test_the_figures_that_claims_name_exist():
    claims = yaml.safe_load((ROOT / "data" / "claims.yaml").read_text())
    assert {claim["figure"] for claim in claims} <= set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_names_known_tables_and_has_a_caption(name):
    assert set(figure_tables(name)) <= set(COLUMNS)
    assert (ROOT / "report" / f"{name}.rst").read_text().startswith("**")
    assert f'"{name}": ' in (ROOT / "report" / "figure.rst").read_text()
    assert name in scorecard._FIGURES


@pytest.mark.parametrize("name", FIGURES)
def test_same_tables_same_bytes(name, tmp_path):
    tables = FakeRun(seeds=2, tasks=("parity", "dyck"), architectures=("mamba",), unsolved=(), others=True).tables()
    settings = fake_settings(tasks=["parity", "dyck"], architectures=["mamba"])
    for copy in ("first", "second"):
        figure = drawn(name, tables, settings)
        style.save(figure, tmp_path / f"{copy}.png")
        style.save(figure, tmp_path / f"{copy}.svg")
    for kind in ("png", "svg"):
        assert (tmp_path / f"first.{kind}").read_bytes() == (tmp_path / f"second.{kind}").read_bytes()


def test_saving_twice_gives_the_same_file_in_either_order(tables, tmp_path):
    figure = drawn("lengths", tables, fake_settings())
    for name in ("a.svg", "b.png", "c.svg"):
        style.save(figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "c.svg").read_bytes()
    assert b"<dc:date>" not in (tmp_path / "a.svg").read_bytes()


def test_other_kinds_of_file_are_refused(tables, tmp_path):
    with pytest.raises(ValueError, match=r"\.png or \.svg"):
        style.save(drawn("lengths", tables, fake_settings()), tmp_path / "figure.pdf")


@pytest.mark.parametrize("name", FIGURES)
def test_a_run_of_one_cell_and_one_seed_is_drawn(name, tmp_path):
    run = FakeRun(length=12, seeds=1, tasks=("parity",), architectures=("lstm",), unsolved=(), others=True)
    settings = fake_settings(tasks=["parity"], architectures=["lstm"], seeds=1)
    style.save(drawn(name, run.tables(), settings), tmp_path / "figure.png")


@pytest.mark.parametrize("name", FIGURES)
def test_missing_cells_and_unknown_names_are_drawn(name, tmp_path):
    run = FakeRun(
        length=12, seeds=2, tasks=("parity", "queue"), architectures=("mamba-stock", "rwkv"), unsolved=(), others=True
    )
    run.base = lambda task, length: 0.5
    run.is_solved = lambda task, architecture, seed: task == "parity"
    run.shape = lambda task, architecture, seed: np.array([0, 0.2, 0.4, 0.6, 1.0])
    settings = fake_settings(tasks=["parity", "queue", "s3"], architectures=["mamba-stock", "rwkv", "gru"])
    style.save(drawn(name, run.tables(), settings), tmp_path / "figure.png")


@pytest.mark.parametrize("name", FIGURES)
def test_empty_tables_are_drawn(name, tables, tmp_path):
    empty = {table: frame.iloc[:0] for table, frame in (FakeRun(others=True).tables() | tables).items()}
    style.save(drawn(name, empty, fake_settings(architectures=["gru"])), tmp_path / "figure.png")


def test_strips_stand_beside_the_papers_numbers_and_the_reference(tables, published):
    reference = FakeRun(length=40, tasks=("parity",), architectures=("mamba",)).tables()
    figure = drawn("strips", tables, fake_settings(published=published, reference=reference))
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles == ["This run (laptop)", "Paper, v1", "Workstation"]
    paper = [text.get_text() for text in figure.axes[1].texts]
    assert paper == ["55", "60", "71", "100", "55", "76", "98", "100"]


def test_strips_show_every_seed_and_mark_unsolved_cells(tables):
    figure = drawn("strips", tables, fake_settings())
    assert dots(figure.axes[0]) == 5 * 4 * 3  # models x blocks x seeds
    assert sum("2/3" in text for text in texts(figure)) == 2


def test_strips_without_anything_to_compare_with_are_one_column(tables):
    assert len(drawn("strips", tables, fake_settings()).axes) == 3


def test_lengths_show_every_seed(tables):
    figure = drawn("lengths", tables, fake_settings())
    assert [dots(ax) for ax in figure.axes] == [5 * 5 * 3] * 3  # lengths x models x seeds


def test_training_writes_the_solve_rate_in_every_panel(tables):
    written = texts(drawn("training", tables, fake_settings()))
    assert written.count("3/3 solved") == 13
    assert written.count("2/3 solved") == 2


def test_profiles_print_the_papers_concentration(tables, published):
    written = texts(drawn("profiles", tables, fake_settings(published=published)))
    assert {"0.58", "0.44", "1.00"} <= set(written)


def test_a_drop_is_clean_minus_edited_in_points(tables):
    rows = shown.at_training_length(shown.drops(tables["ablations"], tables["profiles"]))
    row = rows[(rows["subspace"] == "row_space") & rows["best"]].iloc[0]
    assert row["drop"] == pytest.approx(100 * (row["clean"] - row["value"]))
    assert row["clean"] == pytest.approx(0.999)


def test_each_seed_has_one_best_site(tables):
    rows = shown.drops(tables["ablations"], tables["profiles"])
    best = rows[rows["best"]].groupby(["task", "architecture", "seed"])["site"].nunique()
    assert set(best) == {1}
    assert len(best) == 45


@pytest.mark.parametrize("name", ["strips", "profiles", "controls", "ablations", "directions", "damage", "refits"])
def test_what_stands_beside_the_papers_cells_does_not_change_their_figures(name, tables, whole, tmp_path):
    for copy, given in (("own", tables), ("whole", whole)):
        style.save(drawn(name, given, fake_settings()), tmp_path / f"{copy}.svg")
    assert (tmp_path / "own.svg").read_bytes() == (tmp_path / "whole.svg").read_bytes()


@pytest.mark.parametrize("name", ["lengths", "training"])
def test_panels_are_those_of_the_papers_cells_with_every_seed_of_them(name, tables, whole):
    own, beside = (drawn(name, given, fake_settings()) for given in (tables, whole))
    assert len(own.axes) == len(beside.axes)
    if name == "lengths":
        assert [dots(ax) for ax in beside.axes] == [5 * (4 * 3 + 6)] * 3  # Mamba has six
    else:
        assert texts(beside).count("6/6 solved") == 2


def test_conv1d_draws_the_difference_of_every_pair_of_seeds(whole):
    figure = drawn("conv1d", whole, fake_settings())
    assert [dots(ax) for ax in figure.axes] == [2 * 5 * 6, 2 * 6] * 3
    rows = whole["behaviour"].query("metric == 'accuracy' and model == 'trained' and task == 'parity' and length > 16")
    wide = rows.pivot_table(index="seed", columns="architecture", values="value")
    expected = 100 * (wide["mamba-noconv"] - wide["mamba"])
    drawn_gaps = np.asarray(markers(figure.axes[1])[1].get_offsets())
    assert drawn_gaps[:, 1] == pytest.approx(expected.to_numpy())


def test_conv1d_leaves_out_seeds_without_a_partner(whole):
    rows = whole["behaviour"]
    lone = rows[~((rows["architecture"] == "mamba") & (rows["seed"] >= 2))]
    figure = drawn("conv1d", {"behaviour": lone}, fake_settings())
    assert [dots(ax) for ax in figure.axes[1::2]] == [2 * 2] * 3


def test_inlp_marks_best_probe_and_largest_damage_of_every_seed(whole):
    figure = drawn("inlp", whole, fake_settings())
    marks = [sum(text.get_text().count("▼") for text in ax.texts) for ax in figure.axes]
    assert marks == [3] * (3 * 5 * 3)
    # On Parity the made-up Mamba is read best at its last block, and INLP damages block L1 of two seeds most.
    places = [{round(text.get_position()[0]) for text in ax.texts if "▼" in text.get_text()} for ax in figure.axes]
    assert places[:3] == [{4}, {4}, {2, 4}]


def test_inlp_counts_solved_seeds_where_not_all_are(whole):
    names = [ax.get_ylabel() for ax in drawn("inlp", whole, fake_settings()).axes[::3]]
    assert "S3 (2/3)\nMamba" in names
    assert "Parity\nMamba" in names


def test_erasure_draws_leace_and_every_step_of_every_seed(whole):
    figure = drawn("erasure", whole, fake_settings())
    assert dots(figure.axes[0]) == 3 * 2 * (7 + 1)  # seeds x metrics x (steps k = 0..6, LEACE)


def test_patches_hatch_what_holds_by_construction(whole):
    figure = drawn("patches", whole, fake_settings())
    for ax in figure.axes:
        hatched = sorted(patch.get_x() + 0.5 for patch in ax.patches if patch.get_hatch())
        assert hatched == [0, 4]


def test_patches_keep_values_beyond_the_axis_at_its_edge(whole):
    table = whole["patches"].assign(value=50.0, high=60.0)
    figure = drawn("patches", {**whole, "patches": table}, fake_settings())
    top = max(offset[1] for ax in figure.axes for c in markers(ax) for offset in c.get_offsets())
    assert top < figure.axes[0].get_ylim()[1]


def test_recipes_mark_cells_without_a_solved_seed(whole):
    rows = whole["recipes"]
    lacking = rows[~((rows["architecture"] == "lstm") & (rows["embedding_std"] == 1.0) & (rows["task"] == "parity"))]
    plain, crossed = (drawn("recipes", {"recipes": table}, fake_settings()) for table in (rows, lacking))
    assert dots(plain.axes[0]) == 3 * 3 * 3 - 1  # architectures x scales x seeds, one of them unsolved
    assert dots(crossed.axes[0]) == 3 * 3 * 3 - 3 + 1


def test_recipes_have_a_column_a_learning_rate(whole):
    grid = {**fake_settings()["recipes"], "learning_rate": [0.5, 2.0]}
    figure = drawn("recipes", whole, fake_settings(recipes=grid))
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles == ["learning rate × 0.5", "learning rate × 1", "learning rate × 2"]


def test_taxonomy_has_the_predicted_profile_thick(whole):
    figure = drawn("taxonomy", whole, fake_settings())
    thick = {"Mod-3\nlike Parity?": "parity", "Z6\nlike S3?": "s3", "Queue\nlike Dyck?": "dyck"}
    for ax in figure.axes:
        if ax.get_title() in thick:
            (line,) = [line for line in ax.lines if line.get_linewidth() > 3]
            assert line.get_color() == style.task_colour(thick[ax.get_title()])


def test_the_predictions_drawn_are_those_of_the_claims():
    from stateatlas.figures.taxonomy import _PREDICTED

    claims = {claim["id"]: claim for claim in yaml.safe_load((ROOT / "data" / "claims.yaml").read_text())}
    written = {atom["each"]["task"][0]: atom["nearer"]["to"]["task"] for atom in claims["A18"]["atoms"]}
    written[claims["A14"]["where"]["task"]] = claims["A14"]["atoms"][0]["nearer"]["to"]["task"]
    assert written == _PREDICTED


def test_the_look_leaves_matplotlib_as_it_was():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    with style.look():
        assert mpl.rcParams["svg.hashsalt"] == "state-atlas"
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("name", ["interventions", "surfaces", "scans", "units", "sets", "writes"])
def test_units_of_language_models_are_drawn(name, tmp_path):
    figure = drawn(name, FakeRun(others=True).tables(), fake_settings())
    assert len(figure.axes) == {"writes": 3, "units": 13}.get(name, 6)  # the map has a colour bar
    assert all(dots(ax) or ax.lines or ax.patches or ax.images for ax in figure.axes[:12])
    style.save(figure, tmp_path / "figure.png")


def test_an_intervention_that_has_no_meaning_has_no_mark():
    figure = drawn("surfaces", FakeRun(others=True).tables(), fake_settings())
    assert (dots(figure.axes[0]), dots(figure.axes[2])) == (2 * 7, 2 * 3)  # Mamba, attention
