"""Figures: they draw what the tables hold, whatever is missing, and the same data gives the same bytes."""

import importlib
from pathlib import Path

import numpy as np
import pytest
import yaml
from fake_tables import COLUMNS, FakeRun, fake_settings
from matplotlib.figure import Figure

from stateatlas import shown
from stateatlas.figures import style
from stateatlas.plan import FIGURES, figure_tables

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tables():
    return FakeRun(length=16).tables()


@pytest.fixture(scope="module")
def published():
    return yaml.safe_load((ROOT / "data" / "published.yaml").read_text())


def drawn(name, tables, settings) -> Figure:
    module = importlib.import_module(f"stateatlas.figures.{name}")
    return module.draw({table: tables[table] for table in module.TABLES}, settings)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for ax in figure.axes for text in ax.texts]


def dots(ax) -> int:
    return sum(len(collection.get_offsets()) for collection in ax.collections if hasattr(collection, "get_sizes"))


def test_the_figures_that_claims_name_exist():
    assert {
        "strips",
        "lengths",
        "ablations",
        "directions",
        "refits",
        "training",
        "profiles",
        "controls",
    } <= set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_names_known_tables_and_has_a_caption(name):
    assert set(figure_tables(name)) <= set(COLUMNS)
    assert (ROOT / "report" / f"{name}.rst").read_text().startswith("**")


@pytest.mark.parametrize("name", FIGURES)
def test_same_tables_same_bytes(name, tmp_path):
    tables = FakeRun(seeds=2, tasks=("parity", "dyck"), architectures=("mamba",), unsolved=()).tables()
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
    run = FakeRun(length=12, seeds=1, tasks=("parity",), architectures=("lstm",), unsolved=())
    settings = fake_settings(tasks=["parity"], architectures=["lstm"], seeds=1)
    style.save(drawn(name, run.tables(), settings), tmp_path / "figure.png")


@pytest.mark.parametrize("name", FIGURES)
def test_missing_cells_and_unknown_names_are_drawn(name, tmp_path):
    run = FakeRun(length=12, seeds=2, tasks=("parity", "queue"), architectures=("mamba-stock", "rwkv"), unsolved=())
    run.base = lambda task, length: 0.5
    run.is_solved = lambda task, architecture, seed: task == "parity"
    run.shape = lambda task, architecture, seed: np.array([0, 0.2, 0.4, 0.6, 1.0])
    settings = fake_settings(tasks=["parity", "queue", "s3"], architectures=["mamba-stock", "rwkv", "gru"])
    style.save(drawn(name, run.tables(), settings), tmp_path / "figure.png")


@pytest.mark.parametrize("name", FIGURES)
def test_empty_tables_are_drawn(name, tables, tmp_path):
    empty = {table: frame.iloc[:0] for table, frame in tables.items()}
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


def test_the_look_leaves_matplotlib_as_it_was():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    with style.look():
        assert mpl.rcParams["svg.hashsalt"] == "state-atlas"
    assert dict(mpl.rcParams) == before
