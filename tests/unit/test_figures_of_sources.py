"""The figures of studies B and C draw what their tables hold."""

import pytest
from claim_tables import judge
from fake_tables import FakeRun, fake_settings
from test_figures import dots, drawn, markers

AXES = {  # figure -> axes for two models; the cones have a colour bar
    "linearity": 2, "superposition": 2, "prediction": 2, "propagation": 5, "composition": 2, "concentration": 2,
    "green": 2, "displacement": 4, "inverse": 2, "transfer": 2,
}  # fmt: skip


@pytest.mark.parametrize(("name", "axes"), AXES.items())
def test_sources_in_language_models_are_drawn(name, axes):
    figure = drawn(name, FakeRun(others=True).tables(), fake_settings())
    assert len(figure.axes) == axes
    assert all(dots(ax) or ax.lines or ax.images for ax in figure.axes[:4])


def test_what_holds_by_construction_is_hollow():
    panel = drawn("composition", FakeRun(others=True).tables(), fake_settings()).axes[0]
    faces = [tuple(mark.get_facecolors()[0][:3]) for mark in markers(panel)]
    assert faces.count((1, 1, 1)) == 1 and faces[-1] == (1, 1, 1)


def test_a_model_that_does_not_find_the_needle_is_at_the_floor_and_has_no_verdict():
    tables = FakeRun(others=True).tables()
    rows = tables["needles"]
    rows.loc[(rows["architecture"] == "mini-mamba") & (rows["metric"] == "baseline_accuracy"), "value"] = 0.5
    figure = drawn("needles", tables, fake_settings())
    marked = [ax.get_title() for ax in figure.axes if "floor" in [text.get_text() for text in ax.texts]]
    assert marked == ["mini Mamba\n450 tokens"]
    _, _, atoms = judge("C3", {"needles": rows})
    assert set(atoms.loc["mini-mamba, length 450", "verdict"]) == {"not evaluable (baseline below .9)"}
    assert not atoms.loc["mini-mamba2, length 450", "verdict"].str.startswith("not evaluable").any()
