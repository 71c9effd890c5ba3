"""Reading a config file, and what lies outside it: folders that cannot be written."""

import os
from pathlib import Path

import pytest

from stateatlas import settings

FILES = [
    ("", "bad.yaml: it is empty"),
    ("# only a comment\n", "bad.yaml: it is empty"),
    ("- a\n- b\n", "bad.yaml: it holds no keys"),
    ("just text", "bad.yaml: it holds no keys"),
    ("scale: [a\nb: 2", "bad.yaml, line 2: not YAML"),
    ("scale: a\n\tb: 2", "bad.yaml, line 2: not YAML"),
    ("seeds: 1\nscale: a\nseeds: 2", "bad.yaml, line 3: not YAML (the key seeds stands twice)"),
    ("defaults: {width: 16, width: 32}", "bad.yaml, line 1: not YAML (the key width stands twice)"),
    ("seeds: !!python/name:os.system", "bad.yaml, line 1: not YAML"),
    (b"\x99\xff\x00", "bad.yaml: not YAML"),
    (None, "bad.yaml: cannot be read (No such file or directory); put it back"),
]


@pytest.mark.parametrize(("content", "told"), FILES, ids=lambda part: repr(part)[:30])
def test_a_broken_config_file_is_named_with_the_line(tmp_path, content, told):
    path = tmp_path / "bad.yaml"
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(settings.ConfigError) as caught:
        settings.read(path)
    assert told in str(caught.value) and str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


def test_yaml_anchors_and_merge_keys_still_work(tmp_path):
    (tmp_path / "config.yaml").write_text("a: &a {b: 1, c: 2}\nd: {<<: *a, c: 3}\n")
    assert settings.read(tmp_path / "config.yaml")["d"] == {"b": 1, "c": 3}


def test_a_folder_that_can_be_made_is_fine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings.check_writable([Path("results/smoke"), tmp_path / "logs"])
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_of_a_folder_is_named(tmp_path):
    (tmp_path / "results").write_text("")
    with pytest.raises(settings.ConfigError, match="results is in the way of a folder; move it"):
        settings.check_writable([tmp_path / "results" / "smoke"])


def test_a_link_to_nowhere_in_the_way_is_named(tmp_path):
    (tmp_path / "results").symlink_to(tmp_path / "gone")
    with pytest.raises(settings.ConfigError, match="results is in the way"):
        settings.check_writable([tmp_path / "results"])


def test_a_folder_without_permission_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path / "results")
    (tmp_path / "results").mkdir()
    with pytest.raises(settings.ConfigError, match="results cannot be written; make it writable, or work elsewhere"):
        settings.check_writable([tmp_path / "results" / "smoke"])
