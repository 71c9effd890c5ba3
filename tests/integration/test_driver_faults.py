"""Runs that are killed, interrupted or in each other's way: a toy workflow in a folder named with care."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from stateatlas import driver

# Each job says that it runs (and counts its Ctrl-Cs), then waits until the test lets it go on.
TOY = """
rule all:
    input: "second.txt"
rule second:
    input: "first.txt"
    output: "second.txt"
    shell: "cp {input} {output}"
rule first:
    output: "first.txt"
    shell: "python job.py > {output}"
rule broken:
    output: "broken.txt"
    shell: "exit 3"
"""
JOB = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGINT, lambda *_: (open("interrupts", "a").write("x"), sys.exit(1)))
pathlib.Path("job.part").write_text(str(os.getpid()))
os.replace("job.part", "job")
for _ in range(600):
    if os.path.exists("go"):
        print("made by one job")
        sys.exit(0)
    time.sleep(0.1)
sys.exit(1)
"""
SNAKEMAKE = ("-q", "--rerun-incomplete")


@pytest.fixture
def toy(tmp_path) -> Path:
    folder = tmp_path / "it's a toy"
    folder.mkdir()
    (folder / "Snakefile").write_text(TOY)
    (folder / "job.py").write_text(JOB)
    return folder


def command(toy: Path, *arguments: str) -> list[str]:
    """Return `./reproduce ...` for the toy, without setting up .venv."""
    start = [sys.executable, "-P", driver.__file__, "-s", str(toy / "Snakefile"), "-d", str(toy)]
    return [*start, "-c2", *SNAKEMAKE, *arguments]


def start(line: list[str], toy: Path) -> subprocess.Popen:
    """Start a run in a process group of its own and wait until its job runs."""
    (toy / "job").unlink(missing_ok=True)
    log = (toy / "log").open("w")
    # A shell starts its background jobs with Ctrl-C ignored, and these tests may be one.
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)
    run = subprocess.Popen(line, cwd=toy, stdout=log, stderr=subprocess.STDOUT, process_group=0)
    signal.signal(signal.SIGINT, heard)
    wait_for(lambda: (toy / "job").exists() or run.poll() is not None)
    assert run.poll() is None, (toy / "log").read_text()
    return run


def wait_for(condition, seconds: float = 60) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def job(toy: Path) -> psutil.Process:
    """Return the running job."""
    return psutil.Process(int((toy / "job").read_text()))


def child(run: subprocess.Popen) -> psutil.Process:
    """Return the Snakemake of a driver."""
    return psutil.Process(run.pid).children()[0]


def finish(run: subprocess.Popen, toy: Path) -> str:
    """Let the job of a run go on, check that the run ends well, and return what it printed."""
    (toy / "go").touch()
    code, log = run.wait(timeout=60), (toy / "log").read_text()
    assert code == 0, log
    assert (toy / "second.txt").read_text() == "made by one job\n"
    return log


def test_after_kill_9_of_the_driver_the_same_command_goes_on(toy):
    run = start(command(toy), toy)
    snakemake, orphan = child(run), job(toy)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    wait_for(lambda: not snakemake.is_running())
    assert (toy / ".snakemake" / "locks").exists()
    assert orphan.is_running()
    again = start(command(toy), toy)
    assert not orphan.is_running()
    told = finish(again, toy)
    assert "left running by a killed run" in told
    assert f"no longer alive (process {run.pid}, " in told


def test_after_kill_9_of_snakemake_the_driver_ends_the_jobs_and_the_same_command_goes_on(toy):
    run = start(command(toy), toy)
    orphan = job(toy)
    child(run).kill()
    assert run.wait(timeout=90) == 128 + signal.SIGKILL
    assert "Snakemake was ended by SIGKILL; the same command goes on from there" in (toy / "log").read_text()
    assert not orphan.is_running()
    finish(start(command(toy), toy), toy)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_one_interrupt_reaches_every_process_once_and_ends_cleanly(toy, number):
    run = start(command(toy), toy)
    os.kill(run.pid, number)
    assert run.wait(timeout=90) == 1
    assert (toy / "interrupts").read_text() == "x"
    assert not (toy / ".snakemake" / "locks").exists()
    assert not (toy / ".reproduce.lock").read_text()
    finish(start(command(toy), toy), toy)


def test_sigterm_lets_running_jobs_finish_and_starts_no_more(toy):
    run = start(command(toy), toy)
    os.kill(run.pid, signal.SIGTERM)
    time.sleep(0.5)
    (toy / "go").touch()
    assert run.wait(timeout=90) == 1
    assert (toy / "first.txt").read_text() == "made by one job\n"
    assert not (toy / "second.txt").exists()


def test_a_second_run_is_refused_but_may_look(toy):
    run = start(command(toy), toy)
    second = subprocess.run(command(toy), capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert f"another ./reproduce runs in {toy}: process {run.pid} on " in second.stderr
    look = subprocess.run(command(toy, "-n"), capture_output=True, text=True, check=False)
    assert look.returncode == 0
    assert json.loads((toy / ".reproduce.lock").read_text())["pid"] == run.pid
    finish(run, toy)


def test_a_plain_snakemake_is_refused_while_it_lives_and_cleared_when_it_is_dead(toy):
    run = start([sys.executable, "-m", "snakemake", "-c1", *SNAKEMAKE], toy)
    second = subprocess.run(command(toy), capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert f"Snakemake started without ./reproduce runs in {toy}: process {run.pid} since " in second.stderr
    assert (toy / ".snakemake" / "locks").exists()
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    told = finish(start(command(toy), toy), toy)
    assert "cleared the lock of a Snakemake that is no longer alive." in told


def test_the_exit_code_is_snakemakes(toy):
    for target in ("broken", "no_such_target"):
        assert subprocess.run(command(toy, target), capture_output=True, check=False).returncode == 1
    assert not (toy / ".reproduce.lock").read_text()
