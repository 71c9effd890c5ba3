"""The DAG on a real Grid Engine, through profiles/sge: results, GPUs, queues and errors."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from gridengine import GridEngine, missing
from workflow import Project, copied

PROFILE = "profiles/sge/profile.yaml"
FAKE = {"STATEATLAS_FAKE_GPU": "1"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=f"Grid Engine is not installed here: no {', '.join(missing())}"),
]


@pytest.fixture(scope="module")
def cluster():
    with tempfile.TemporaryDirectory(prefix="sge", ignore_cleanup_errors=True) as folder:
        cluster = GridEngine(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture(scope="module")
def executor(root, tmp_path_factory) -> Path:
    """The folder of the executor, which `./reproduce` does not install."""
    folder = tmp_path_factory.mktemp("executor")
    pin = next(line for line in (root / "envs/executors.txt").read_text().splitlines() if "plugin-sge" in line)
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, pin], check=True)
    return folder


def on(cluster: GridEngine, executor: Path, project: Project, *arguments: str) -> str:
    """Run Snakemake through the profile and return what it says."""
    environment = cluster.environment | FAKE | {"PYTHONPATH": str(executor)}
    done = project.snakemake("--workflow-profile", "profiles/sge", *arguments, **environment)
    return f"{done.stdout}\nexit code {done.returncode}\n"


def tiny(root: Path, folder: Path) -> Project:
    """A tiny config, with a profile that waits less and hands the variable of the counted GPUs to the jobs."""
    project = copied(root, folder)
    project.config |= {"gpu": True, "extras": []}
    project.edit(PROFILE, "latency-wait: 60", "latency-wait: 5")
    project.edit(PROFILE, "  sge_pe:", "  sge_export_env: true\n  sge_pe:")
    return project


@pytest.fixture(scope="module")
def unmade(root, tmp_path_factory) -> Project:
    return tiny(root, tmp_path_factory.mktemp("cluster") / "it's on a cluster")


@pytest.fixture(scope="module")
def ran(cluster, executor, unmade) -> str:
    said = on(cluster, executor, unmade, "--", "verdicts")
    assert "exit code 0" in said, said
    return said


def test_results_are_those_of_a_local_run(ran, unmade, root, tmp_path):
    local = copied(root, tmp_path / "local")
    local.config |= {"gpu": True, "extras": []}
    done = local.snakemake("--resources", "gpu=1", "--", "verdicts", **FAKE)
    assert done.returncode == 0, done.stdout
    tables = sorted(path.relative_to(local.work) for path in local.work.glob("results/**/*.parquet"))
    assert len(tables) > 10
    for table in tables:
        assert (unmade.work / table).read_bytes() == (local.work / table).read_bytes(), table


def test_gpu_jobs_get_one_gpu_each_and_others_the_cpu_queue(ran, cluster):
    jobs = cluster.jobs()
    assert {job["failed"] for job in jobs} == {"0"} and {job["exit_status"] for job in jobs} == {"0"}
    with_gpu = [job for job in jobs if "gpu=1" in job["category"]]
    assert len(with_gpu) == 2 and all((job["qname"] == "gpu.q") == (job in with_gpu) for job in jobs)
    assert {job["qname"] for job in jobs} == {"cpu.q", "gpu.q"}


def test_a_failing_job_ends_with_the_errors_of_its_rule(cluster, executor, root, tmp_path):
    project = tiny(root, tmp_path / "clone")
    project.append("scripts/sample.py", "    raise ValueError('no sequence is left')\n")
    said = on(cluster, executor, project, "--retries", "0", "--", "sequences")
    assert "exit code 1" in said and "ValueError: no sequence is left" in said, said
