"""`./reproduce verify` against a small plan of three rules and results written by hand."""

import json
from pathlib import Path

import pytest

from stateatlas import manifest, verify


class Plan:
    """sample -> train (seeds 0 and 1) -> record (temporary) -> probe."""

    def __init__(self):
        self.steps, self.seeds = 100, (0, 1)

    def cfg(self, rule: str, wildcards: dict) -> str:
        code = f"hash of {rule}"
        return json.dumps({"rule": rule, **wildcards, "code": code, "recipe": {"steps": self.steps}})

    def expected(self) -> list:
        jobs = [("sample", {})]
        jobs += [(rule, {"seed": seed}) for rule in ("train", "record", "probe") for seed in self.seeds]
        return [(rule, w, self.folder(rule, w) / "manifest.json") for rule, w in jobs]

    def folder(self, rule: str, wildcards: dict) -> Path:
        return Path("results", "smoke", rule, *(f"seed{seed}" for seed in wildcards.values()))


BEFORE = {"train": "sample", "record": "train", "probe": "record"}


@pytest.fixture
def plan() -> Plan:
    return Plan()


@pytest.fixture
def done(tmp_path, plan) -> Path:
    """A working directory where the plan was carried out."""
    for rule, wildcards, _ in plan.expected():
        make(tmp_path, plan, rule, wildcards)
    return tmp_path


def make(workdir: Path, plan: Plan, rule: str, wildcards: dict, text: str = "made") -> None:
    """Write one result and its manifest as a job does."""
    folder = workdir / plan.folder(rule, wildcards)
    (folder / "weights").mkdir(parents=True, exist_ok=True)
    outputs = [folder / "table.txt", folder / "weights"]
    for file in (outputs[0], outputs[1] / "a.bin"):
        file.write_text(f"{text} by {rule}")
    inputs = []
    if before := BEFORE.get(rule):
        source = plan.folder(before, {} if before == "sample" else wildcards)
        inputs = [workdir / source / "manifest.json"]
    cfg = json.loads(plan.cfg(rule, wildcards))
    content = manifest.describe(cfg, wildcards, inputs, outputs, set(), folder)
    manifest.write(folder / "manifest.json", content)


def states(plan: Plan, workdir: Path) -> dict:
    """Return what is not ok: folder -> (state, why)."""
    wrong = [finding for finding in verify.compare(plan, workdir) if finding.state != "ok"]
    return {str(f.folder).removeprefix("results/smoke/"): (f.state, f.why) for f in wrong}


def test_results_of_today_are_ok(plan, done):
    assert states(plan, done) == {}
    told = verify.describe(verify.compare(plan, done), [], [])
    assert "All 7 results belong to today's code and config." in told
    assert ["train", "2", "0", "0", "0"] in [line.split() for line in told.splitlines()]


def test_a_changed_value_is_named_with_both_its_values(plan, done):
    plan.steps = 200
    found = states(plan, done)
    assert len(found) == 7
    assert found["train/seed0"] == ("stale", "recipe.steps (100 -> 200)")


def test_changed_code_is_named_without_its_hashes(plan, done, monkeypatch):
    today = plan.cfg
    monkeypatch.setattr(plan, "cfg", lambda rule, w: today(rule, w).replace("hash of train", "f" * 64))
    assert states(plan, done) == {f"train/seed{k}": ("stale", "code") for k in (0, 1)}


def test_what_was_never_made_is_missing(plan, done):
    plan.seeds = (0, 1, 2)
    assert states(plan, done) == {"train/seed2": ("missing", ""), "probe/seed2": ("missing", "")}


def test_in_an_empty_folder_the_advice_is_to_run(plan, tmp_path):
    told = verify.describe(verify.compare(plan, tmp_path), [], ["--config", "scale=smoke"])
    assert told.endswith("Nothing has been made yet. To make it: ./reproduce --config scale=smoke")


def test_a_missing_temporary_result_is_fine_and_so_are_its_missing_files(plan, done):
    (done / "results/smoke/record/seed0/manifest.json").unlink()
    (done / "results/smoke/record/seed1/table.txt").unlink()
    assert states(plan, done) == {}


@pytest.mark.parametrize("name", ["table.txt", "weights/a.bin"])
def test_a_changed_file_is_damaged(plan, done, name):
    (done / "results/smoke/train/seed1" / name).write_text("tampered with")
    assert states(plan, done) == {"train/seed1": ("damaged", f"{name.split('/')[0]} is not what was written")}


def test_a_file_that_is_gone_is_missing(plan, done):
    (done / "results/smoke/probe/seed1/table.txt").unlink()
    assert states(plan, done) == {"probe/seed1": ("missing", "table.txt is gone")}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cfg": {}}', '{"cfg": 1, "outputs": {}, "inputs": {}}'])
def test_a_manifest_that_cannot_be_read_is_damaged(plan, done, text):
    (done / "results/smoke/probe/seed0/manifest.json").write_text(text)
    found = states(plan, done)
    assert found.keys() == {"probe/seed0"}
    assert found["probe/seed0"][0] == "damaged"


def test_a_result_made_from_another_model_is_stale(plan, done):
    make(done, plan, "train", {"seed": 1}, text="made again")
    assert states(plan, done) == {"record/seed1": ("stale", "built on another results/smoke/train/seed1/manifest.json")}


def test_the_advice_forces_what_is_not_todays_by_name(plan, done):
    (done / "results/smoke/probe/seed0/table.txt").unlink()
    told = verify.describe(verify.compare(plan, done), [], ["-d", "it's"])
    assert told.endswith("./reproduce -d 'it'\"'\"'s' --forcerun results/smoke/probe/seed0/manifest.json")


def test_results_of_another_config_are_counted_apart(plan, done):
    plan.seeds = (0,)
    assert states(plan, done) == {}
    others = verify.unexpected(plan, done)
    assert [path.relative_to(done / "results/smoke").as_posix() for path in others] == [
        "probe/seed1", "record/seed1", "train/seed1"
    ]  # fmt: skip
    assert "3 more belong to another config" in verify.describe(verify.compare(plan, done), others, [])


def test_the_exit_code_says_whether_all_is_well(plan, done, monkeypatch, capsys):
    monkeypatch.setattr(verify, "read_config", lambda *_: {})
    monkeypatch.setattr(verify, "todays_plan", lambda config: plan)
    assert verify.main(["--directory", str(done)], done) == 0
    plan.steps = 5
    assert verify.main([], done) == 1
    assert capsys.readouterr().out.count("recipe.steps (100 -> 5)") == 7


def test_config_is_read_as_snakemake_reads_it(tmp_path):
    (tmp_path / "config.yaml").write_text("scale: laptop\ntrain: {steps: 5, batch: 8}\n")
    more = tmp_path / "more.yaml"
    more.write_text("train: {steps: 7}\n")
    read = verify.read_config(tmp_path, [more], ["scale=smoke", "seeds=2"])
    assert read == {"scale": "smoke", "seeds": 2, "train": {"steps": 7, "batch": 8}}


def test_a_config_that_cannot_be_read_gets_one_message(tmp_path, capsys):
    (tmp_path / "config.yaml").write_text("scale: smoke\n")
    assert verify.main(["--configfile", str(tmp_path / "none.yaml")], tmp_path) == 2
    assert "none.yaml: No such file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"b": 1}, ["a (1 -> null)", "b (null -> 1)"]),
        ({"a": {"b": [1], "c": 2}}, {"a": {"b": [1, 2], "c": 2}}, ["a.b ([1] -> [1, 2])"]),
        ({"code": "0" * 64}, {"code": "1" * 64}, ["code"]),
        ({"a": 1}, {"a": 1.0}, []),
    ],
)
def test_differences_name_the_keys(then, now, told):
    assert verify.differences(then, now) == told
