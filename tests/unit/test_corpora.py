"""Corpora: what is kept, what is counted as left out, and one file with the same bytes every time."""

import ast
import gzip
import json
import os
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rule_jobs
from stateatlas import canonical, code_depth, corpora
from stateatlas.corpora import SPLITS, Document, file, split
from stateatlas.job import InputError

LONG = '"""Say what it does."""\n    x = a + 1\n    return x\n'
GOOD = f"def good(a):\n    {LONG}"


def data(*parts: str) -> Path:
    if not (folder := os.environ.get("STATEATLAS_TEST_DATA")):
        pytest.skip("STATEATLAS_TEST_DATA is not set: it names the folder with real rows")
    return Path(folder, *parts)


def read(source: str, **options) -> tuple[list[Document], Counter]:
    skipped = Counter()
    return list(corpora.documents(source, skipped, **options)), skipped


def library(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def f(a):\n    x = 1\n    return x\n", "undocumented"),
        ("def f(a):\n    '''Two words.'''\n    x = 1\n    return x\n", "documented in under three words"),
        ("def f(a):\n    '''Three words here.'''\n    return 1\n", "under three lines"),
        (f"def run_tests(a):\n    {LONG}", "test"),
        (f"class A:\n  def __str__(a):\n    {LONG}", "special method"),
        (
            f"{GOOD}\nif 1:\n  def good(a):\n    '''Other words, same code.'''\n    x = a+1 # !\n    return x",
            "duplicate",
        ),
    ],
)
def test_functions_are_left_out_for_a_counted_reason(tmp_path, code, reason):
    found, skipped = read("stdlib", root=library(tmp_path, {"a.py": code, "b.py": GOOD.replace("a + 1", "2")}))
    assert skipped == {reason: 1}
    assert {document.name for document in found} == {"good"}


def test_a_function_begins_at_its_def_and_goes_on_as_in_its_file(tmp_path):
    source = (
        "class Outer:\n    class Inner:\n        @decorated(1)\n        async def method(self):\n"
        '            """Say what it does."""\n            def inside():\n                """Part of the other one."""\n'
        "                return 1\n            return inside  # not é\n        x = 1\n"
        f"try:\n    pass\nexcept E:\n    def fallback(a):\n        {LONG.replace(chr(10), chr(10) + '    ')}"
    )
    found, _ = read("stdlib", root=library(tmp_path, {"p/m.py": source}))
    assert [(d.origin, d.name) for d in found] == [("p/m.py", "Outer.Inner.method"), ("p/m.py", "fallback")]
    text = found[0].text
    assert text.startswith('async def method(self):\n            """Say')
    assert text.endswith("return inside")
    assert all(document.text in source for document in found)
    assert found[0].kinds == code_depth.kinds(text)


def test_tests_and_what_others_installed_are_no_part_of_the_library(tmp_path):
    places = ["test/a.py", "p/tests/a.py", "idlelib/idle_test/a.py", "p/test_a.py", "p/a_test.py", "site-packages/a.py"]
    found, skipped = read("stdlib", root=library(tmp_path, dict.fromkeys([*places, "doctest.py"], GOOD)))
    assert [document.origin for document in found] == ["doctest.py"]
    assert not skipped


def test_any_encoding_is_read_and_what_cannot_be_is_counted(tmp_path):
    files = {
        "latin.py": b"# coding: latin-1\n" + GOOD.replace("what", "wh\xe4t").encode("latin-1"),
        "bom.py": b"\xef\xbb\xbf" + GOOD.replace("+ 1", "+ 2").replace("\n", "\r\n").encode(),
        "wrong.py": GOOD.replace("what", "wh\xe4t").encode("latin-1"),
        "unknown.py": b"# coding: nonsense\n" + GOOD.encode(),
        "two.py": "def f():\n    print 'x'\n",
        "feed.py": "\f\n" + GOOD.replace("+ 1", "+ 3").replace("    ", "\t"),
    }
    found, skipped = read("stdlib", root=library(tmp_path, files))
    assert [document.origin for document in found] == ["bom.py", "feed.py", "latin.py"]
    assert "wh\xe4t" in found[2].text
    assert "\r" not in found[0].text
    assert skipped == {"module in an unknown encoding": 2, "module that is no Python of this interpreter": 1}


def test_groups_are_never_divided_and_every_split_gets_its_share():
    documents = [Document("", f"p{i % 97}", f"f{i}", "x" * (1 + i % 7)) for i in range(3000)]
    found = list(split(documents, lambda d: d.origin, 0.6, 0.2))
    assert [d.name for d in found] == [d.name for d in documents]
    groups = {s: {d.origin for d in found if d.split == s} for s in SPLITS}
    assert sum(map(len, groups.values())) == 97
    sizes = Counter()
    for d in found:
        sizes[d.split] += len(d.text) / sum(len(d.text) for d in documents)
    assert [sizes[s] for s in SPLITS] == pytest.approx([0.6, 0.2, 0.2], abs=2 / 97)
    assert list(split(documents[::-1], lambda d: d.origin, 0.6, 0.2)) == found[::-1]


def test_one_group_is_for_training():
    assert [d.split for d in split([Document("", "p", "f", "x")], lambda d: d.origin, 0.6, 0.2)] == ["train"]


def test_the_reference_of_this_interpreter():
    found, _ = read("reference")
    names = {document.name for document in found}
    assert {"lambda", "with", "strings"} <= names
    assert len({document.text for document in found}) == len(names) == len(found)
    assert {document.split for document in found} == set(SPLITS)


def test_modules_of_the_library_are_whole(tmp_path):
    found, _ = read("modules", root=library(tmp_path, {"p/m.py": GOOD, "empty.py": "\n", "test/t.py": GOOD}))
    assert [(d.name, d.text, d.kinds) for d in found] == [("p.m", GOOD, b"")]


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
    with pytest.raises(InputError, match=r"datasets is not installed; install it .*local JSON lines"):
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


def test_wikitext_is_split_into_articles():
    found, _ = read("text", files=[data("wikitext-2", "valid.txt")])
    assert len(found) == 60
    assert found[0].name == "Homarus gammarus"
    assert all(d.text.startswith(" = ") for d in found)
    whole = data("wikitext-2", "valid.txt").read_text(encoding="utf-8")
    assert whole.endswith("".join(d.text for d in found))


def test_other_text_is_split_at_headings_or_into_paragraphs(tmp_path):
    (tmp_path / "a.md").write_text("before\n\n# One\n\ntext\n\n## Under it\n\n# Two\n")
    (tmp_path / "b.txt").write_text("\nfirst\nline two\n \n\nsecond\n\nfirst\nline two\n")
    assert [d.text for d in read("text", files=[tmp_path / "a.md"])[0]] == [
        "before\n\n", "# One\n\ntext\n\n## Under it\n\n", "# Two\n",
    ]  # fmt: skip
    found, skipped = read("text", files=[tmp_path / "b.txt"])
    assert [d.text.strip() for d in found] == ["first\nline two", "second"]
    assert skipped == {"duplicate": 1}


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot be read"), (b"\n \n", "holds no text"), (b"ab\xff", "byte 2 is no UTF-8")]
)
def test_text_that_cannot_be_used_is_one_clear_error(tmp_path, content, message):
    if content is not None:
        (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(InputError, match=f"a.txt: .*{message}"):
        read("text", files=[tmp_path / "a.txt"])


def written(folder: Path, source: str, **options) -> tuple[Path, dict]:
    folder.mkdir()
    file.write(source, options, folder / "corpus.parquet", folder / "corpus.json")
    return folder / "corpus.parquet", json.loads((folder / "corpus.json").read_text())


def test_the_same_documents_are_the_same_bytes_and_other_ones_another_checksum(tmp_path):
    path = json_lines(
        tmp_path / "a.jsonl", [ROW, ROW | {"original_string": GOOD.replace("x", "y"), "partition": "test"}]
    )
    one, facts = written(tmp_path / "one", "codesearchnet", files=[path])
    two, again = written(tmp_path / "two", "codesearchnet", files=[path])
    assert one.read_bytes() == two.read_bytes()
    assert facts == again
    json_lines(path, [ROW])
    assert written(tmp_path / "three", "codesearchnet", files=[path])[1]["sha256"] != facts["sha256"]


def test_facts_tell_the_source_the_interpreter_and_every_count(tmp_path):
    copies = [ROW | {"original_string": code} for code in (GOOD, GOOD, "print 'x'")]
    path = json_lines(
        tmp_path / "a.jsonl", [*copies, ROW | {"original_string": GOOD.replace("x", "y"), "partition": "test"}]
    )
    table, facts = written(tmp_path / "out", "codesearchnet", files=[path])
    assert facts["source"] == "codesearchnet"
    assert [given["name"] for given in facts["options"]["files"]] == ["a.jsonl"]
    assert facts["interpreter"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["documents"] == {"train": 1, "validation": 0, "test": 1}
    assert facts["skipped"] == {"duplicate": 1, "no Python of this interpreter": 1}
    assert facts["characters"]["train"] == len(GOOD)
    assert facts["tokens"]["train"] == len(code_depth.kinds(GOOD))
    assert file.read(table, "train", "text") == [GOOD]
    assert file.read(table, "test", "kinds") == [code_depth.kinds(GOOD)]
    assert pq.read_table(table).column_names == ["split", "origin", "name", "text", "kinds"]


def test_the_script_writes_corpus_facts_and_manifest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    json_lines(tmp_path / "a.jsonl", [ROW])
    folder = Path("results/smoke/corpora/code")
    folder.mkdir(parents=True)
    names = {"manifest": "manifest.json", "corpus": "corpus.parquet", "facts": "corpus.json"}
    given = rule_jobs.Named({"files": "a.jsonl"})
    given._named["files"] = ["a.jsonl"]  # under one name Snakemake gives a list
    snakemake = SimpleNamespace(
        params=SimpleNamespace(cfg=json.dumps({"rule": "corpus", "threads": 1, "corpus": {"source": "codesearchnet"}})),
        input=given,
        output=rule_jobs.Named({key: str(folder / name) for key, name in names.items()}),
        wildcards={"corpus": "code"},
        log=["logs/corpus.log"],
        resources={},
    )
    script = canonical.PACKAGE.parent / "corpus.py"
    with rule_jobs.kept_logging():
        exec(compile(script.read_bytes(), str(script), "exec"), {"snakemake": snakemake})
    assert {path.name for path in folder.iterdir()} == set(names.values())
    assert set(json.loads((folder / "manifest.json").read_text())["outputs"]) == {"corpus.parquet", "corpus.json"}
    assert file.read(folder / "corpus.parquet", "train", "text") == [GOOD]


def test_a_source_without_documents_for_training_is_one_clear_error(tmp_path):
    path = json_lines(tmp_path / "a.jsonl", [ROW | {"original_string": "x = 1"}])
    with pytest.raises(
        InputError, match=r"codesearchnet: no document is left for training \(no single function 1\); give"
    ):
        written(tmp_path / "out", "codesearchnet", files=[path])


def test_a_damaged_corpus_is_one_clear_error(tmp_path):
    (tmp_path / "corpus.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="no readable corpus"):
        file.read(tmp_path / "corpus.parquet", "train", "text")


@pytest.mark.slow
def test_the_whole_standard_library_keeps_packages_apart(tmp_path):
    table, facts = written(tmp_path / "out", "stdlib")
    packages = {split: {origin.split("/")[0] for origin in file.read(table, split, "origin")} for split in SPLITS}
    assert all(packages.values())
    assert sum(map(len, packages.values())) == len(set.union(*packages.values()))
    assert sum(facts["documents"].values()) > 2000
    for text in file.read(table, "test", "text"):
        assert ast.get_docstring(ast.parse(text).body[0])
