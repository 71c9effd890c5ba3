"""Corpora: what is kept, what is counted as left out, and one file with the same bytes every time."""

import ast
import json
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rule_jobs
from corpus_sources import GOOD, LONG, data, library, read
from test_codesearchnet import ROW, json_lines

from stateatlas import canonical, code_depth
from stateatlas.corpora import SPLITS, Document, file, split
from stateatlas.job import InputError


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


def on_the_hub(folder: Path, **splits: list[str]) -> None:
    for name, texts in splits.items():
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"text": texts, "meta": [0] * len(texts)}), folder / f"{name}-00000-of-00001.parquet")


def test_wikitext_on_the_hub_is_lines_that_make_articles(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    lines = ["", " = One = \n", "", " text \n", " = = Part = = \n", " = Two = \n", " more \n"]
    others = {"validation": [" = Three = \n"], "test": [" = Four = \n", " end \n"]}
    on_the_hub(tmp_path / "hub" / "wikitext-2-raw-v1", train=lines, **others)
    on_the_hub(tmp_path / "hub" / "wikitext-103-raw-v1", train=["another part"])
    options = {"folder": "wikitext-2-raw-v1", "revision": "0" * 40, "rows": "lines"}
    found, _ = read("text", name=str(tmp_path / "hub"), **options)
    assert {(d.split, d.name) for d in found} == {
        ("train", "One"), ("train", "Two"), ("validation", "Three"), ("test", "Four"),
    }  # fmt: skip
    assert next(d.text for d in found if d.name == "One") == " = One = \n text \n = = Part = = \n"


def test_a_data_set_without_splits_is_split_by_document(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    on_the_hub(
        tmp_path / "hub" / "data",
        train=[f"document {i}\n\nof two parts" for i in range(40)] + ["document 0\n\nof two parts", " "],
    )
    found, skipped = read("text", name=str(tmp_path / "hub"), revision="0" * 40)
    assert len(found) == 40
    assert skipped["duplicate"] == 1
    assert {d.split for d in found} == {"train", "validation", "test"}
    with pytest.raises(InputError, match="its fields are content, none of text; choose"):
        pq.write_table(pa.table({"content": ["a"]}), tmp_path / "hub" / "data" / "train-00000-of-00001.parquet")
        read("text", name=str(tmp_path / "hub"), revision="1" * 40)


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
    options = {"source": "codesearchnet", "files": ["a.jsonl"]}
    snakemake = SimpleNamespace(
        params=SimpleNamespace(cfg=json.dumps({"rule": "corpus", "threads": 1, "options": options})),
        input=rule_jobs.Named({"files": "a.jsonl"}),
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
