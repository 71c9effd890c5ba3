"""CodeSearchNet: both naming schemes, all formats, the hub, and what is wrong with a file."""

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_sources import GOOD, data, read

from stateatlas.job import InputError


def rows() -> list[dict]:
    return [json.loads(line) for path in sorted(data("codesearchnet").glob("*.jsonl")) for line in path.open()]


def as_on_the_hub(row: dict) -> dict:
    return {
        "repository_name": row["repo"], "func_path_in_repository": row["path"], "func_name": row["func_name"],
        "whole_func_string": row["original_string"], "language": row["language"], "split_name": row["partition"],
    }  # fmt: skip


def json_lines(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_real_rows_of_codesearchnet_pass_its_own_filter():
    found, skipped = read("codesearchnet", files=sorted(data("codesearchnet").glob("*.jsonl")))
    assert not skipped
    assert Counter(d.split for d in found) == {"test": 3, "validation": 3}
    assert [d.text for d in found] == [row["original_string"] for row in rows()]
    assert found[0].origin == "soimort/you-get/src/you_get/extractors/youtube.py"
    assert found[0].name == "YouTube.get_vid_from_url"


def test_both_schemas_and_all_formats_give_the_same_documents(tmp_path):
    plain = json_lines(tmp_path / "a.jsonl", rows())
    hub = json_lines(tmp_path / "b.jsonl", [as_on_the_hub(row) for row in rows()])
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    pq.write_table(pa.Table.from_pylist([as_on_the_hub(row) for row in rows()]), tmp_path / "d.parquet")
    expected = read("codesearchnet", files=[plain])
    assert len(expected[0]) == 6
    for path in (hub, tmp_path / "c.jsonl.gz", tmp_path / "d.parquet"):
        assert read("codesearchnet", files=[path]) == expected


ROW = {
    "repo": "a/b",
    "path": "c.py",
    "func_name": "good",
    "original_string": GOOD,
    "language": "python",
    "partition": "train",
}


def test_rows_that_are_no_python_or_no_text_are_counted(tmp_path):
    path = tmp_path / "a.jsonl"
    others = [
        {"original_string": code} for code in ("def f():\n    print 'x'", "def f(): 'x", "x = '\ud800'", "x = 1", "")
    ]
    lines = [json.dumps(ROW | other).encode() for other in [{}, *others, {"language": "go"}]]
    path.write_bytes(b"\n".join([*lines, lines[0].replace(b"good", b"\xff"), b""]))
    found, skipped = read("codesearchnet", files=[path])
    assert [d.text for d in found] == [GOOD]
    assert skipped == {
        "no Python of this interpreter": 3, "no single function": 2, "other language": 1, "no UTF-8": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "a.jsonl, line 2: no JSON object"),
        ("[1]", "a.jsonl, line 2: no JSON object .list instead"),
        (json.dumps({"language": "python"}), "line 2: no text in the field partition"),
        (json.dumps(ROW | {"repo": None}), "line 2: no text in the field repo"),
        (json.dumps(ROW | {"partition": "dev"}), "line 2: partition is 'dev'; it must be one of train, valid"),
    ],
)
def test_a_bad_row_is_one_clear_error(tmp_path, line, message):
    (tmp_path / "a.jsonl").write_text(json.dumps(ROW) + "\n" + line + "\n")
    with pytest.raises(InputError, match=message):
        read("codesearchnet", files=[tmp_path / "a.jsonl"])


@pytest.mark.parametrize("name", ["missing.jsonl", "torn.jsonl.gz", "none.parquet"])
def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path, name):
    if name == "torn.jsonl.gz":
        (tmp_path / name).write_bytes(gzip.compress(b"{}" * 1000)[:-12])
    elif name == "none.parquet":
        (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(InputError, match=f"{name}: cannot be read"):
        read("codesearchnet", files=[tmp_path / name])


COMMIT = "0123456789abcdef" * 2 + "01234567"


def test_the_hub_needs_the_package_and_a_commit(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"datasets is not installed; install it .*local files"):
        read("codesearchnet", name="a/b", revision=COMMIT)
    with pytest.raises(InputError, match="revision 'main' is no commit; give all its 40"):
        read("codesearchnet", name="a/b", revision="main")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            RuntimeError("Dataset scripts are no longer supported, but found b.py"),
            "it is a script.*refs/convert/parquet",
        ),
        (ConnectionError("no network"), "no network; check name, revision and network"),
    ],
)
def test_what_the_hub_does_not_give_is_one_clear_error(monkeypatch, error, message):
    def load_dataset(*_, **__):
        raise error

    exceptions = SimpleNamespace(DatasetsError=KeyError)
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset, exceptions=exceptions))
    with pytest.raises(InputError, match=message):
        read("codesearchnet", name="a/b", revision=COMMIT)


def test_a_folder_laid_out_like_the_hubs_conversion_is_read_by_datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    pytest.importorskip("datasets", reason="the package datasets is not installed")
    for name in ("train", "test"):
        place = tmp_path / "hub" / "python" / name
        place.mkdir(parents=True)
        row = as_on_the_hub(ROW | {"partition": name, "original_string": GOOD.replace("x", name)})
        pq.write_table(pa.Table.from_pylist([row | {"func_code_tokens": ["def"]}]), place / "0000.parquet")
    found, _ = read("codesearchnet", name=str(tmp_path / "hub"), revision=COMMIT)
    assert [d.split for d in found] == ["train", "test"]
