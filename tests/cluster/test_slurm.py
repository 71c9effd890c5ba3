"""The DAG on a real Slurm, through profiles/slurm: results, GPUs, errors, and trainings that are cut off."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

import pytest
from cluster import Cluster, missing
from workflow import Project, copied

PROFILE = "profiles/slurm/profile.yaml"
TRAINED = "encoding/models/parity/transformer/seed0"
FAKE = {"STATEATLAS_FAKE_GPU": "1", "STATEATLAS_CHECKPOINT_SECONDS": "1"}

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"Slurm is not installed here: no {', '.join(missing())}")


@pytest.fixture(scope="module")
def cluster():
    # Not pytest's folder: the names of Slurm's sockets must be short, and its configuration has no quotes.
    with tempfile.TemporaryDirectory(prefix="slurm", ignore_cleanup_errors=True) as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture(scope="module")
def unmade(root, tmp_path_factory) -> Project:
    """A tiny config that asks for GPUs, and a profile that looks at its jobs more often. Tests do not change it."""
    project = copied(root, tmp_path_factory.mktemp("cluster") / "it's on a cluster")
    project.config |= {"gpu": True, "extras": []}
    project.edit(PROFILE, "status-checks: 20", "status-checks: 5")
    project.edit(PROFILE, "latency-wait: 60", "latency-wait: 5")
    return project


def copy(project: Project, target: Path) -> Project:
    shutil.copytree(project.root, target, symlinks=True)
    return Project(target, target)


@pytest.fixture
def project(unmade, tmp_path) -> Project:
    """One architecture."""
    project = copy(unmade, tmp_path / "it's one training")
    project.config |= {"architectures": ["transformer"]}
    return project


def through(cluster: Cluster) -> dict[str, str]:
    """What the environment of Snakemake must have."""
    return {name: cluster.environment[name] for name in ("SLURM_CONF", "PATH")} | FAKE


def on(cluster: Cluster, project: Project, *arguments: str) -> str:
    """Run Snakemake through the profile and return what it says."""
    done = project.snakemake("--workflow-profile", "profiles/slurm", *arguments, **through(cluster))
    return f"{done.stdout}\nexit code {done.returncode}\n"


def train_for(project: Project, steps: int) -> None:
    project.config |= {"steps": {"default": steps}}


def submitted(cluster: Cluster, before: int = 0) -> list[dict[str, str]]:
    """Return Slurm's jobs after the first `before` ones."""
    return sorted(cluster.jobs(), key=lambda job: int(job["JobId"]))[before:]


@pytest.fixture(scope="module")
def ran(cluster, unmade, tmp_path_factory) -> Project:
    project = copy(unmade, tmp_path_factory.mktemp("cluster") / "it's a finished run")
    said = on(cluster, project, "--", "verdicts")
    assert "exit code 0" in said, said
    return project


def test_results_are_those_of_a_local_run(ran, unmade, tmp_path):
    local = copy(unmade, tmp_path / "local")
    done = local.snakemake("--resources", "gpu=1", "--", "verdicts", **FAKE)
    assert done.returncode == 0, done.stdout
    tables = sorted(path.relative_to(local.work) for path in local.work.glob("results/**/*.parquet"))
    assert len(tables) > 10
    for table in tables:
        assert (ran.work / table).read_bytes() == (local.work / table).read_bytes(), table


def test_gpu_jobs_get_one_gpu_each_and_others_the_cpu_partition(ran, cluster):
    jobs = submitted(cluster)
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    with_gpu = [job for job in jobs if "TresPerJob" in job]
    assert len(with_gpu) == 2 and all(job["TresPerJob"] == "gres:gpu:1" for job in with_gpu)
    assert all((job["Partition"] == "gpu") == (job in with_gpu) for job in jobs)


def test_no_gpu_is_shared(ran):
    runs = [json.loads(path.read_text()) for path in ran.work.glob("logs/smoke/train/**/*.run.json")]
    assert len(runs) == 2 and all(run["gpu"] in ("0", "1") and run["node"] in ("g1", "g2") for run in runs)
    for one, other in combinations(runs, 2):
        apart = one["ended"] <= other["ended"] - other["wall_s"] or other["ended"] <= one["ended"] - one["wall_s"]
        assert apart or (one["node"], one["gpu"]) != (other["node"], other["gpu"])


def test_nothing_is_submitted_twice_and_short_jobs_share_one(ran, cluster):
    trained = [job for job in submitted(cluster) if job["Partition"] == "gpu"]
    manifests = list(ran.work.glob("results/smoke/encoding/models/**/manifest.json"))
    assert len(trained) == len(manifests)
    rules = list(ran.work.glob("logs/smoke/*/**/*.run.json"))
    assert len(submitted(cluster)) < len(rules) / 2


def test_a_failing_job_ends_with_the_errors_of_its_rule(cluster, project):
    before = len(cluster.jobs())
    project.append("scripts/sample.py", "    raise ValueError('no sequence is left')\n")
    said = on(cluster, project, "--retries", "0", "--", "sequences")
    assert "exit code 1" in said and "ValueError: no sequence is left" in said, said
    assert [job["JobState"] for job in submitted(cluster, before)] == ["FAILED"]


@pytest.fixture
def running(cluster, project):
    """A training with a checkpoint: its job, `finish()`, which waits and returns what was said, and the jobs before."""
    before = len(cluster.jobs())
    train_for(project, 4000)
    output = project.root / "said"
    with output.open("w") as out:
        driver = subprocess.Popen(
            [sys.executable, "-P", "-m", "snakemake", "--workflow-profile", "profiles/slurm", "--", "models"],
            cwd=project.work, env={**os.environ, **through(cluster)}, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 180
        while not list(project.work.glob("results/smoke/.work/*/checkpoint.pt")):
            assert driver.poll() is None and time.monotonic() < deadline, output.read_text()
            time.sleep(0.2)

        def finish() -> str:
            code = driver.wait(600)
            return f"{output.read_text()}\nexit code {code}\n"

        yield submitted(cluster, before)[-1], finish, before
    finally:
        if driver.poll() is None:
            driver.send_signal(signal.SIGINT)
            driver.wait(60)


def resumed_at(project: Project) -> int:
    log = (project.work / "logs/smoke/train" / f"{TRAINED}.log").read_text()
    found = re.search(r"going on from step (\d+)", log)
    return int(found[1]) if found else 0


@pytest.mark.slow
def test_a_cancelled_training_is_submitted_once_more_and_goes_on(cluster, project, running):
    job, finish, before = running
    cluster.run("scancel", job["JobId"])
    said = finish()
    assert "exit code 0" in said and resumed_at(project) > 0, said
    states = [job["JobState"] for job in submitted(cluster, before) if job["Partition"] == "gpu"]
    assert states == ["CANCELLED", "COMPLETED"]


@pytest.mark.slow
def test_a_requeued_training_goes_on_under_the_same_number(cluster, project, running):
    job, finish, before = running
    cluster.run("scontrol", "requeue", job["JobId"])
    said = finish()
    assert "exit code 0" in said and resumed_at(project) > 0, said
    states = [(j["JobId"], j["JobState"], j["Restarts"]) for j in submitted(cluster, before) if j["Partition"] == "gpu"]
    assert states == [(job["JobId"], "COMPLETED", "1")]


@pytest.mark.slow
def test_a_training_on_a_node_that_dies_goes_on_elsewhere(cluster, project, running):
    job, finish, _ = running
    cluster.stop_node(job["NodeList"])
    try:
        said = finish()
    finally:
        cluster.start_node(job["NodeList"])
        cluster.run("scontrol", "update", f"nodename={job['NodeList']}", "state=resume")
    assert "exit code 0" in said and resumed_at(project) > 0, said


@pytest.mark.slow
def test_a_time_limit_that_is_too_short_is_said_as_such(cluster, project):
    before = len(cluster.jobs())
    train_for(project, 100000)
    limit = ("--set-resources", "train:runtime=1", "train:slurm_partition=gpu", "--retries", "0")
    said = on(cluster, project, *limit, "--", "models")
    assert "exit code 1" in said and re.search("TIMEOUT|time limit", said, re.IGNORECASE), said
    assert submitted(cluster, before)[-1]["JobState"] == "TIMEOUT"
