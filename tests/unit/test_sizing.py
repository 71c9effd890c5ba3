"""What a run asks for, from the config alone, and what it took, from what its jobs wrote."""

import json

import pytest

from stateatlas import sizing, verify
from stateatlas.plan import RULES


@pytest.fixture(scope="module")
def paper(root):
    return verify.todays_plan(verify.read_config(root, entries=["scale=paper"]))


@pytest.mark.parametrize("scale", sizing.SCALES)
def test_every_rule_has_a_size_that_grows_with_the_scale(scale):
    now = sizing.sizes(scale)
    assert now.keys() == RULES.keys()
    smaller = sizing.sizes(sizing.SCALES[max(0, sizing.SCALES.index(scale) - 1)])
    for rule, size in now.items():
        assert size.memory >= smaller[rule].memory > 0 and size.minutes >= smaller[rule].minutes > 0
        assert size.disk >= smaller[rule].disk > 0


def test_the_plan_counts_every_job_once_and_adds_up_its_limits(paper):
    *rows, total = sizing.planned(paper)
    assert sum(row[2] for row in rows) == total[2] == len(paper.jobs())
    train = next(row for row in rows if row[1] == "train")
    size, jobs = sizing.sizes("paper")["train"], sum(rule == "train" for rule, _ in paper.jobs())
    hours = jobs * size.minutes / 60
    assert train == ("encoding", "train", jobs, hours, hours, size.memory, jobs * size.disk)
    assert total[4] == sum(row[4] for row in rows if sizing.sizes("paper")[row[1]].gpu)


def test_without_gpus_there_are_no_gpu_hours(root):
    plan = verify.todays_plan(verify.read_config(root, entries=["scale=paper", "gpu=False"]))
    *_, total = sizing.planned(plan)
    assert total[3] > 0 and total[4] == 0


def test_costs_are_those_that_jobs_wrote(root, tmp_path, capsys):
    for seed, (wall, peak) in enumerate([(3.0, 2e8), (5.0, 1e8)]):
        path = tmp_path / f"logs/smoke/train/encoding/models/dyck/lstm/seed{seed}.run.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"wall_s": wall, "peak_bytes": peak, "device": "cuda", "peak_gpu_bytes": peak / 2}))
    assert sizing.measured(tmp_path, "smoke") == [("train", 2, 8.0, 5.0, 200.0, 100.0)]
    arguments = ["--config", "scale=smoke", "--directory", str(tmp_path)]
    assert sizing.main("costs", arguments, root) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["train", "2", "8", "5", "200", "100"]


def test_a_run_that_was_not_made_and_a_wrong_config_are_said(root, tmp_path, capsys):
    assert sizing.main("costs", ["--directory", str(tmp_path)], root) == 2
    assert "no job of scale laptop has run" in capsys.readouterr().out
    assert sizing.main("plan", ["--config", "scale=huge"], root) == 2
    assert "scale" in capsys.readouterr().out
