"""Study C through the whole workflow: a mini that is trained, taught and asked, and the grid of its units."""

import pandas as pd
import pytest
from workflow import Project, copied

from stateatlas import unit_cells

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ran(root, tmp_path_factory) -> Project:
    project = copied(root, tmp_path_factory.mktemp("sink") / "it's a clone")
    project.config = project.config | {"studies": ["encoding", "sink"], "architectures": ["lstm"], "extras": []}
    done = project.snakemake("--quiet", "rules", HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stdout
    assert "cells planned (the paper: 12,096, of which 6,060 evaluated)" in done.stdout
    return project


def table(project: Project, name: str) -> pd.DataFrame:
    return pd.read_parquet(project.work / f"results/smoke/tables/{name}/table.parquet")


def test_every_planned_cell_is_evaluated_or_says_why_not(ran):
    cells, sink = table(ran, "cells"), ran.config["scales"]["smoke"]["sink"]
    assert len(cells) == unit_cells.number(sink)
    assert ((cells["status"] == "evaluated") == cells["value"].notna()).all()
    assert set(cells["architecture"]) == {"mini-mamba", "mini-mamba2"}


def test_every_claim_of_the_study_has_a_verdict_and_every_figure_is_on_the_page(ran):
    claims = pd.read_parquet(ran.work / "results/smoke/claims/table.parquet")
    judged = claims[(claims["study"] == "sink") & (claims["atom"] == -1)]
    assert set(judged["claim"]) == {f"C{i}" for i in range(1, 10)}
    page = (ran.work / "results/smoke/report/index.html").read_text()
    for name in ("interventions", "needles", "surfaces", "scans", "units", "sets", "writes"):
        assert f'id="figure-{name}"' in page
    assert "Cells of study C" in page and "12,096" in page


def test_sets_of_a_taught_mini_stand_beside_its_base_model_s(ran):
    assert set(table(ran, "sets")["model"]) == {"trained", "untrained", "taught"}
    assert set(table(ran, "needles")["architecture"]) == {"mini-mamba2"}


def test_then_nothing_is_to_do(ran):
    assert ran.planned() == set()
