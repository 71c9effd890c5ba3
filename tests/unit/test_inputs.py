"""Damaged inputs: one line that names the file and the remedy, the traceback in the log, nothing half-done."""

import json
import shutil
from pathlib import Path

import pytest
from rule_jobs import JOBS, folder, run

CHAIN = ("sample", "train", "record", "probe", "refit")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A folder with the results of a tiny cell."""
    place = tmp_path_factory.mktemp("it's finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr("stateatlas.job._end_with_driver", lambda: None)
        for rule in CHAIN:
            run(rule)
    return place


@pytest.fixture
def results(finished, tmp_path, monkeypatch) -> Path:
    """A copy of it to work in."""
    shutil.copytree(finished / "results", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("stateatlas.job._end_with_driver", lambda: None)
    return tmp_path / "results"


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def removed(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def overwritten(path: Path) -> None:
    path.write_text("not what it was\n")


def one_bit_off(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def made_a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("")


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def binary(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


def holding(content: object):
    def change(path: Path) -> None:
        path.write_text(json.dumps(content))

    return change


def with_a_stranger(path: Path) -> None:
    (path / "stranger.npy").write_bytes(b"1")


# The rule that reads, whose result it is, the file, what happened to it, and the file that the message names.
DAMAGED = [
    ("train", "sample", "sequences.safetensors", truncated),
    ("train", "sample", "sequences.safetensors", one_bit_off),
    ("base_probe", "sample", "sequences.safetensors", emptied),
    ("probe", "sample", "sequences.safetensors", removed),
    ("refit", "sample", "sequences.safetensors", made_a_folder),
    ("train", "sample", "manifest.json", overwritten),
    ("train", "sample", "manifest.json", emptied),
    ("train", "sample", "manifest.json", truncated),
    ("train", "sample", "manifest.json", binary),
    ("train", "sample", "manifest.json", removed),
    ("train", "sample", "manifest.json", holding([])),
    ("train", "sample", "manifest.json", holding("outputs")),
    ("train", "sample", "manifest.json", holding({"cfg": {}})),
    ("train", "sample", "manifest.json", holding({"outputs": None})),
    ("record", "train", "weights", removed),
    ("record", "train", "weights", made_a_file),
    ("record", "train", "weights", with_a_stranger),
    ("record", "train", "weights/trained/model.safetensors", removed),
    ("record", "train", "weights/trained/model.safetensors", truncated),
    ("record", "train", "weights/untrained/config.json", overwritten),
    ("ablate", "train", "weights/history.json", one_bit_off),
    ("probe", "record", "states/trained/test.site1.npy", truncated),
    ("probe", "record", "states/trained/test.site1.npy", removed),
    ("probe", "record", "states/untrained/fit.site0.npy", overwritten),
    ("refit", "record", "states", removed),
    ("refit", "probe", "probes.safetensors", removed),
    ("refit", "probe", "probes.safetensors", truncated),
    ("ablate", "probe", "probes.safetensors", overwritten),
    ("collect", "refit", "table.parquet", overwritten),
    ("collect", "refit", "table.parquet", truncated),
    ("collect", "refit", "table.parquet", emptied),
]


@pytest.mark.parametrize(("rule", "source", "name", "damage"), DAMAGED)
def test_a_damaged_input_is_named_with_its_remedy(results, rule, source, name, damage):
    damage(folder(source) / name)
    with pytest.raises(SystemExit) as ended:
        run(rule)
    line, pointer = str(ended.value.code).splitlines()
    # A folder's files are known by the folder, which is what the rule reads.
    named = folder(source) / name.split("/")[0]
    assert line.startswith(f"{rule}: {named}: ") and line.endswith(f"; delete {folder(source)} and run again")
    assert pointer == f"The traceback is in logs/{rule}.log"
    assert "Traceback (most recent call last)" in Path(f"logs/{rule}.log").read_text()
    assert not set(left(rule)) & {"manifest.json", *JOBS[rule][2]} or rule in CHAIN
    assert not [name for name in left(rule) if name.startswith(".part-")]


def left(rule: str) -> list[str]:
    return [path.name for path in folder(rule).iterdir()]


def test_the_cell_is_whole_before_it_is_damaged(results):
    for rule in ("record", "base_probe", "probe", "refit", "ablate", "collect"):
        run(rule)
        assert {"manifest.json", *JOBS[rule][2]} <= set(left(rule))


def test_a_table_of_another_kind_is_refused_even_when_its_manifest_fits(results):
    from stateatlas import manifest

    shutil.copy(folder("probe") / "table.parquet", folder("refit") / "table.parquet")
    path = folder("refit") / "manifest.json"
    content = json.loads(path.read_text())
    content["outputs"]["table.parquet"] = manifest.checksum(folder("refit") / "table.parquet")
    path.write_text(json.dumps(content))
    with pytest.raises(SystemExit, match=r"are not those of table refits; delete it and run again"):
        run("collect")
