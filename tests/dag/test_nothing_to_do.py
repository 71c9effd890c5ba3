"""After a finished run there is nothing to do, whatever happens that changes no meaning."""

import os
import random
import shutil
import time

from workflow import Project


def test_nothing_is_to_do_in_a_moved_folder(project):
    assert project.planned() == set()


def test_nothing_is_to_do_after_a_touch_on_everything(project):
    paths = [path for path in project.root.rglob("*") if ".snakemake" not in path.parts]
    random.Random(0).shuffle(paths)
    now = time.time()
    for i, path in enumerate(paths):
        os.utime(path, (now - 5000 + i, now - 5000 + i))
    assert project.planned() == set()


def test_nothing_is_to_do_in_a_clone_with_the_results_copied_in(finished, clone):
    """Copied file by file in any order, so that the times say nothing, and without Snakemake's records."""
    files = [path.relative_to(finished.work) for path in (finished.work / "results").rglob("*") if path.is_file()]
    random.Random(1).shuffle(files)
    now = time.time()
    for i, file in enumerate(files):
        (clone.work / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(finished.work / file, clone.work / file)
        os.utime(clone.work / file, (now - 1000 + i, now - 1000 + i))
    assert clone.planned() == set()


def test_a_clone_with_results_of_other_code_says_so(finished, clone):
    shutil.copytree(finished.work / "results", clone.work / "results")
    clone.append("scripts/stateatlas/behaviour.py", "\nEDITED = 1\n")
    done = clone.snakemake("--dry-run")
    assert done.returncode == 0 and "made by other code or config" in done.stdout and "verify" in done.stdout


def test_nothing_is_to_do_with_the_results_in_another_directory(project, tmp_path):
    work = tmp_path / "it's the results' place"
    work.mkdir()
    for name in ("results", ".snakemake"):
        (project.root / name).rename(work / name)
    assert project.planned("--directory", str(work)) == set()
    outside = Project(project.root, tmp_path)
    snakefile = str(project.root / "Snakefile")
    assert outside.planned("--snakefile", snakefile, "--directory", str(work), cwd=tmp_path) == set()


def test_nothing_is_to_do_in_another_environment_and_with_other_cores(project):
    environment = {"PYTHONHASHSEED": "77", "LC_ALL": "C", "TZ": "Asia/Kathmandu", "CC": "cc -g"}
    assert project.planned("--cores", "1", **environment) == set()


def test_nothing_is_to_do_after_an_edit_without_meaning(project):
    """Comments, docstrings and layout of code; comments and the order of keys in the config and the environments."""
    for path in (project.root / "scripts").rglob("*.py"):
        path.write_text("# a comment\n" + path.read_text().replace('"""', '"""Edited. ', 1) + "\n\n# another\n")
    config = project.config
    project.config = {key: reordered(config[key]) for key in reversed(config)}
    project.edit("config.yaml", "scale: smoke", "# a comment\nscale: smoke")
    for path in (project.root / "envs").glob("*.yaml"):
        path.write_text("# a comment\n" + path.read_text())
    assert project.planned() == set()


def reordered(value):
    return {key: reordered(value[key]) for key in reversed(value)} if isinstance(value, dict) else value


def test_a_run_with_nothing_to_do_changes_no_result(project):
    before = {path: path.read_bytes() for path in (project.work / "results").rglob("*") if path.is_file()}
    done = project.snakemake("--quiet", "rules")
    assert done.returncode == 0
    assert before == {path: path.read_bytes() for path in (project.work / "results").rglob("*") if path.is_file()}


def test_deleting_what_only_lies_in_between_makes_nothing_again(project):
    shutil.rmtree(project.work / "results/smoke/encoding/states")
    assert project.planned() == set()
