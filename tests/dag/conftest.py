"""One finished tiny run for all tests; each works on a copy of it, in another place."""

import shutil
from pathlib import Path

import pytest
from workflow import Project, copied

KEPT = ("results", ".snakemake", "logs", "benchmarks")


@pytest.fixture(scope="session")
def finished(root, tmp_path_factory) -> Project:
    """A project whose tiny run has ended well. Tests do not change it."""
    project = copied(root, tmp_path_factory.mktemp("dag") / "it's a tiny run")
    done = project.snakemake("--quiet", "rules")
    assert done.returncode == 0, done.stdout
    assert (project.work / "results/smoke/report/index.html").exists()
    return project


@pytest.fixture
def project(finished, tmp_path) -> Project:
    """A copy of the finished project, moved to another folder with its results and Snakemake's records."""
    target = tmp_path / "it's moved"
    shutil.copytree(finished.root, target, symlinks=True)
    return Project(target, target)


@pytest.fixture
def clone(finished, tmp_path) -> Project:
    """A fresh clone: no results, no records."""
    target = tmp_path / "a clone"
    shutil.copytree(finished.root, target, ignore=lambda folder, names: names_to_leave(Path(folder), finished.root))
    return Project(target, target)


def names_to_leave(folder: Path, root: Path) -> set[str]:
    return set(KEPT) if folder == root else set()
