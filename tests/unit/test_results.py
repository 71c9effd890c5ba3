"""The small tables of the page on study C: the cells of its grid, and what a scale takes fewer of."""

from pathlib import Path

import yaml
from fake_tables import FakeRun

from stateatlas import results
from stateatlas.settings import resolve

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())
PUBLISHED = yaml.safe_load((ROOT / "data" / "published.yaml").read_text())


def test_the_cells_that_were_planned_stand_beside_the_paper_s():
    cells = FakeRun(others=True).tables()["cells"]
    table = results.unit_cells(cells, PUBLISHED)
    assert table["header"][:3] == ["", "planned", "evaluated"]
    mamba, mamba2, neox, paper = ([row[0], *(cell["main"] for cell in row[1:])] for row in table["rows"])
    assert [row[0] for row in (mamba, mamba2, neox, paper)] == ["mini Mamba", "mini Mamba-2", "mini GPT-NeoX", "paper"]
    assert paper[1:3] == ["12,096", "6,060"]
    for name, row in (("mini-mamba", mamba), ("mini-gpt-neox", neox)):
        numbers = [int(text.replace(",", "")) for text in row[1:]]
        assert numbers[0] == (cells["architecture"] == name).sum() == sum(numbers[1:])


def test_what_a_scale_takes_fewer_of_in_the_other_studies_is_said():
    def said(scale: str, *studies: str) -> dict:
        studies = ["encoding", *studies]
        found = results.smaller(resolve(CONFIG | {"scale": scale, "studies": studies}))
        return {row["name"]: (row["protocol"], row["ours"]) for row in found}

    assert said("laptop", "sink")["study C: control sets of each kind"] == (30, 8)
    assert said("laptop", "sink")["study C: boundaries"] == (2, 1)
    assert said("laptop", "response") == {
        "study B: random directions at a place": (16, 4),
        "study B: prompts": (32, 24),
    }
    assert said("laptop") == said("paper", "response", "sink") == {}
