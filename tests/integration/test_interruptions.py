"""Kill a run at any moment, give the same command again: the same bytes come out."""

import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow

TINY = (
    "{scale: smoke, studies: [encoding], tasks: [parity], architectures: [lstm], extras: [], steps: {default: 1500}}\n"
)


SMOKE = "{scale: smoke, studies: [encoding], extras: [edited]}\n"


def run(folder: Path) -> subprocess.Popen:
    """Start the driver on the verdicts of a tiny run, in the folder's copy of the project."""
    command = [sys.executable, "-P", str(folder / "scripts/stateatlas/driver.py"), "verdicts"]
    command += ["--configfile", str(folder / "tiny.yaml")]
    environment = os.environ | {"STATEATLAS_CHECKPOINT_SECONDS": "0.5"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def finish(folder: Path) -> str:
    process = run(folder)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    return output


def copy(root: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for name in ("Snakefile", "config.yaml", "rules", "scripts", "envs", "profiles", "data", "report", "docs"):
        source = root / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    (folder / "tiny.yaml").write_text(TINY)
    return folder


def tables(folder: Path) -> dict[str, str]:
    """The checksum of every table and manifest."""
    results = folder / "results"
    files = [p for p in sorted(results.rglob("*")) if p.suffix in (".parquet", ".safetensors", ".json")]
    return {str(p.relative_to(results)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def wait_for(condition, seconds: float = 120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def training_job(driver: subprocess.Popen) -> psutil.Process | None:
    for process in psutil.Process(driver.pid).children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if words and words[-1].endswith("train.py") and "python" in words[0]:
            return process
    return None


def checkpoint(folder: Path) -> Path | None:
    return next(iter((folder / "results/smoke/.work").glob("*/checkpoint.pt")), None)


@pytest.fixture(scope="module")
def undisturbed(root, tmp_path_factory) -> dict[str, str]:
    folder = copy(root, tmp_path_factory.mktemp("it's undisturbed"))
    finish(folder)
    return tables(folder)


@pytest.mark.parametrize("victim", ["driver", "job"])
def test_killed_run_goes_on_from_its_checkpoint_with_the_same_bytes(victim, undisturbed, root, tmp_path):
    folder = copy(root, tmp_path)
    driver = run(folder)
    wait_for(lambda: checkpoint(folder))
    job = training_job(driver)
    os.kill(driver.pid if victim == "driver" else job.pid, signal.SIGKILL)
    driver.wait(timeout=60)
    wait_for(lambda: not job.is_running(), 10)  # an orphan ends by itself
    assert checkpoint(folder), "the checkpoint outlives the kill"
    finish(folder)
    log = next((folder / "logs").rglob("train/**/seed0.log")).read_text()
    assert "going on from step" in log
    assert tables(folder) == undisturbed
    assert not checkpoint(folder), "a finished training leaves no checkpoint"


def test_checkpoint_of_another_config_is_never_resumed(root, tmp_path):
    folder = copy(root, tmp_path)
    driver = run(folder)
    wait_for(lambda: checkpoint(folder))
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait(timeout=60)
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("weight_decay: 0.1", "weight_decay: 0.05"))
    finish(folder)
    log = next((folder / "logs").rglob("train/**/seed0.log")).read_text()
    assert "going on from step" not in log


def test_a_training_that_is_asked_to_end_saves_where_it_is(undisturbed, root, tmp_path):
    folder = copy(root, tmp_path)
    driver = run(folder)
    saved = wait_for(lambda: checkpoint(folder))
    job, before = training_job(driver), saved.stat().st_mtime_ns
    asked = time.monotonic()
    job.terminate()
    wait_for(lambda: not job.is_running() or job.status() == psutil.STATUS_ZOMBIE, 5)
    assert time.monotonic() - asked < 5
    output, _ = driver.communicate(timeout=60)
    assert driver.returncode == 1 and "ended by SIGTERM at step" in output, output
    assert saved.stat().st_mtime_ns > before
    finish(folder)
    assert tables(folder) == undisturbed


@pytest.mark.parametrize("days", [-1, 1], ids=["back", "forward"])
def test_a_clock_that_jumps_makes_nothing_again_and_loses_nothing(days, undisturbed, root, tmp_path):
    """What was made before the jump is dated a day after what comes behind it, or long before."""
    folder = copy(root, tmp_path)
    driver = run(folder)
    wait_for(lambda: checkpoint(folder))
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait(timeout=60)
    for path in [p for top in ("results", "logs", ".snakemake") for p in (folder / top).rglob("*")]:
        if path.exists():
            then = path.stat().st_mtime - days * 86400
            os.utime(path, (then, then))
    (before,) = (folder / "results").rglob("sequences.safetensors")
    known = before.stat().st_ino
    finish(folder)
    assert before.stat().st_ino == known, "sequences were drawn again"
    assert "going on from step" in next((folder / "logs").rglob("train/**/seed0.log")).read_text()
    assert tables(folder) == undisturbed
    assert "Nothing to be done" in finish(folder)


def test_twenty_kills_at_any_moment_change_no_byte(root, tmp_path):
    undisturbed = copy(root, tmp_path / "undisturbed")
    (undisturbed / "tiny.yaml").write_text(SMOKE)
    finish(undisturbed)
    folder = copy(root, tmp_path / "killed")
    (folder / "tiny.yaml").write_text(SMOKE)
    chance = random.Random(0)
    for _ in range(20):
        driver = run(folder)
        time.sleep(chance.uniform(2, 7))
        running = psutil.Process(driver.pid).children(recursive=True)
        for victim in (chance.choice([driver.pid, *(job.pid for job in running)]), driver.pid):
            with contextlib.suppress(ProcessLookupError):  # it ended in this moment
                os.kill(victim, signal.SIGKILL)
            time.sleep(chance.uniform(0, 2))
        output, _ = driver.communicate(timeout=600)
        assert "Traceback" not in output, output
    finish(folder)
    assert tables(folder) == tables(undisturbed)
