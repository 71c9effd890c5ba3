"""The profiles of clusters: which rules get a GPU, which share a job, and what the executors themselves say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from workflow import copied

from stateatlas import sizing

CLUSTERS = ("slurm", "lsf", "sge", "cluster-generic", "kubernetes")
QUEUED = ("slurm", "lsf", "sge", "cluster-generic")  # where jobs with a GPU go elsewhere


@pytest.fixture(scope="module")
def profiles(root) -> dict[str, dict]:
    return {name: yaml.safe_load((root / f"profiles/{name}/profile.yaml").read_text()) for name in CLUSTERS}


@pytest.fixture(scope="module")
def gpus() -> dict[str, bool]:
    """Which rules compute on a GPU."""
    return {rule: size.gpu for rule, size in sizing.sizes("paper").items()}


def test_no_other_profile_is_there(root):
    assert {path.name for path in (root / "profiles").iterdir()} == {"default", *CLUSTERS}


@pytest.mark.parametrize("name", QUEUED)
def test_jobs_with_a_gpu_go_where_the_gpus_are(profiles, gpus, name):
    assert set(profiles[name]["set-resources"]) == {rule for rule, gpu in gpus.items() if gpu}
    assert len({str(said) for said in profiles[name]["set-resources"].values()}) == 1


@pytest.mark.parametrize("name", CLUSTERS)
def test_jobs_that_share_one_have_no_gpu_and_few_cores(profiles, gpus, name):
    assert not any(gpus[rule] for rule in profiles[name]["groups"])
    assert profiles[name]["cores"] == 4 and profiles[name]["set-resource-scopes"] == ["_cores=local"]


@pytest.mark.parametrize("name", CLUSTERS)
def test_clusters_differ_in_their_scheduler_alone(profiles, name):
    shared = ("groups", "retries", "resources", "jobs", "keep-going", "rerun-incomplete", "show-failed-logs")
    assert {key: profiles[name][key] for key in shared} == {key: profiles["slurm"][key] for key in shared}


@pytest.fixture(scope="module")
def executors(root, tmp_path_factory) -> Path:
    """The folder of the executors that `./reproduce` does not install."""
    folder = tmp_path_factory.mktemp("executors")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "-r", "envs/executors.txt"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CLUSTERS if name != "slurm"])
def test_the_executor_takes_its_profile(root, executors, tmp_path, name):
    project = copied(root, tmp_path / "clone")
    arguments = ("--workflow-profile", f"profiles/{name}", "--dry-run", "--quiet", "all", "--config", "gpu=True")
    done = project.snakemake(*arguments, PYTHONPATH=str(executors))
    assert done.returncode == 0 and re.search(r"^train +2$", done.stdout, flags=re.MULTILINE), done.stdout
