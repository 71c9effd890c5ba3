"""`--sdm apptainer` runs every job in the image that the config names. apptainer itself is a test double."""

import os
import re
import sys
from pathlib import Path

import pytest
from workflow import NOTHING

APPTAINER = """#!/bin/sh
[ "$1" = --version ] && echo "apptainer version 1.3.0" && exit
echo "$@" >> "$TOLD"
while [ "$1" != -c ]; do shift; done
exec bash "$@"
"""


@pytest.fixture
def apptainer(tmp_path) -> dict[str, str]:
    """Environment variables with which there is an `apptainer` that runs what it is told on this machine."""
    program = tmp_path / "bin" / "apptainer"
    program.parent.mkdir()
    program.write_text(APPTAINER)
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"PATH": path, "TOLD": str(tmp_path / "told")}


def test_jobs_run_in_the_image_and_it_is_part_of_no_result(clone, apptainer):
    image = clone.work / "image.sif"
    image.touch()
    done = clone.snakemake("--sdm", "apptainer", "--config", "container=image.sif", "--", "sequences", **apptainer)
    assert done.returncode == 0, done.stdout
    told = Path(apptainer["TOLD"]).read_text()
    assert re.search(r"exec .*image\.sif bash -c .*sample\.py", told, flags=re.DOTALL), told
    assert NOTHING in clone.snakemake("--dry-run", "--", "sequences").stdout


def test_without_an_image_jobs_run_on_this_machine(clone, apptainer):
    done = clone.snakemake("--sdm", "apptainer", "--", "sequences", **apptainer)
    assert done.returncode == 0, done.stdout
    assert not Path(apptainer["TOLD"]).exists()


def test_the_image_is_made_of_the_versions_of_reproduce(root):
    text = (root / "envs" / "apptainer.def").read_text()
    copied = re.findall(r"^    (\S+) (\S+)$", text.split("%files")[1].split("%post")[0], flags=re.MULTILINE)
    assert [source for source, _ in copied] == ["envs/requirements.txt", "envs/constraints.txt"]
    assert all((root / source).is_file() and source in target for source, target in copied)
    assert f"--requirement {copied[0][1]}" in text and "==" not in text
    assert re.search(r"^From: python:3\.11-", text, flags=re.MULTILINE)
