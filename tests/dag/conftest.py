"""One finished tiny run for all tests; each works on a copy of it, in another place."""

import shutil

import pytest
from workflow import Project, copied


@pytest.fixture(scope="session")
def unmade(root, tmp_path_factory) -> Project:
    """The project with the tiny config and nothing made. Tests do not change it."""
    return copied(root, tmp_path_factory.mktemp("dag") / "it's a clone")


@pytest.fixture(scope="session")
def finished(unmade, tmp_path_factory) -> Project:
    """A project whose tiny run has ended well. Tests do not change it."""
    target = tmp_path_factory.mktemp("dag") / "it's a tiny run"
    shutil.copytree(unmade.root, target, symlinks=True)
    project = Project(target, target)
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
def clone(unmade, tmp_path) -> Project:
    """A fresh clone: no results, no records."""
    target = tmp_path / "it's a clone"
    shutil.copytree(unmade.root, target, symlinks=True)
    return Project(target, target)
