"""What `./reproduce` passes to Snakemake and pytest, and when it refuses to start."""

import errno
import os
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

import pytest

from stateatlas import driver, runlock

DEFAULTS = ["--snakefile", str(driver.ROOT / "Snakefile"), "--directory", str(driver.ROOT)]


@pytest.fixture(autouse=True)
def profile(monkeypatch, tmp_path) -> Path:
    """A default profile that says nothing about cores."""
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    profile = tmp_path / "profile.yaml"
    profile.write_text("rerun-incomplete: true\n")
    monkeypatch.setattr(driver, "DEFAULT_PROFILE", profile)
    return profile


@pytest.mark.parametrize(
    "given",
    [[], ["figures"], ["-n"], ["--config", "scale=smoke"], ["--until", "train", "-k"], ["--config", "c=-c"]],
)
def test_defaults_go_before_the_callers_arguments_which_stay_as_they_are(given):
    assert driver.snakemake_options(given) == [*DEFAULTS, "--cores", "all", *given]


@pytest.mark.parametrize(
    "given",
    [["-c4"], ["-c", "4"], ["--cores=4"], ["--jobs", "4"], ["-j4"], ["-e", "slurm"], ["--profile=mine"],
     ["--workflow-profile", "slurm"], ["figures", "-c"]],
)  # fmt: skip
def test_who_says_how_many_cores_is_not_overruled(given):
    assert driver.snakemake_options(given) == [*DEFAULTS, *given]


@pytest.mark.parametrize("line", ["cores: 2\n", "jobs: 2\n"])
def test_cores_in_the_default_profile_hold(profile, line):
    profile.write_text(line)
    assert driver.snakemake_options(["-n"]) == [*DEFAULTS, "-n"]


def test_a_profile_of_the_users_brings_its_own_cores(monkeypatch):
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "mine")
    assert driver.snakemake_options([]) == DEFAULTS


@pytest.mark.parametrize("given", [["-d", "x"], ["-dx"], ["--directory", "x"], ["--directory=x"]])
def test_a_directory_of_the_users_holds(given):
    assert driver.snakemake_options(given) == [*DEFAULTS[:2], "--cores", "all", *given]
    assert driver.value_of(("-d", "--directory"), given) == "x"


@pytest.mark.parametrize(
    "given",
    [["-n"], ["--dry-run"], ["-np"], ["-pn"], ["--lint"], ["figures", "--summary"], ["--dag"], ["-l"], ["-v"],
     ["--report", "x.html"], ["--report=x.html"]],
)  # fmt: skip
def test_calls_that_only_show_something_take_no_lock(given):
    assert runlock.reads_only(given)


@pytest.mark.parametrize(
    "given",
    [[], ["figures"], ["-c4"], ["-k"], ["--config", "scale=smoke"], ["--touch"], ["--unlock"], ["-jn"],
     ["-R", "train"], ["--report-after-run"], ["--delete-all-output"], ["--notemp"]],
)  # fmt: skip
def test_calls_that_write_take_the_lock(given):
    assert not runlock.reads_only(given)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (["/x/python3.11", "-P", "-m", "snakemake", "-c1"], ["-c1"]),
        (["/x/python3.11", "/x/bin/snakemake", "-n"], ["-n"]),
        (["snakemake"], []),
        (["/Library/Python", "-m", "snakemake", "all"], ["all"]),
        (["/x/python", "/y/snakemake/__main__.py", "--mode", "subprocess"], ["--mode", "subprocess"]),
        (["/x/python", "train.py", "snakemake"], None),
        (["vim", "snakemake"], None),
        (["bash", "-c", "snakemake -c1"], None),
        ([], None),
    ],
)
def test_a_snakemake_is_known_by_its_program(command, arguments):
    assert runlock.snakemake_arguments(command) == arguments


def test_two_runs_in_one_folder_the_second_names_the_first(tmp_path, capsys):
    code = f"""if True:
        import sys
        from pathlib import Path
        sys.path.append({str(driver.ROOT / "scripts")!r})
        from stateatlas import runlock
        with runlock.hold(Path({str(tmp_path)!r}), "./reproduce figures"):
            print("held", flush=True)
            sys.stdin.read()
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as first:
        assert first.stdout.readline() == b"held\n"
        assert driver.main(["-s", "x", "-d", str(tmp_path)]) == 2
        told = capsys.readouterr().err
        assert f"process {first.pid} on " in told
        assert "(./reproduce figures)" in told
        assert f"kill -INT {first.pid}" in told
        first.stdin.close()
        assert first.wait() == 0
    assert runlock.read_record(tmp_path) == {}, "a run that ended by itself leaves no record"
    with runlock.hold(tmp_path, "./reproduce"):
        pass


@pytest.mark.parametrize("place", ["results", "logs", ".snakemake"])
def test_a_folder_that_cannot_be_written_is_named_before_the_start(tmp_path, capsys, place):
    (tmp_path / place).write_text("a file in the folder's place")
    assert driver.main(["-d", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert f"cannot write to {tmp_path / place}: " in told
    assert "--directory" in told


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_named(tmp_path):
    (tmp_path / "results").mkdir(mode=0o500)
    with pytest.raises(runlock.Refusal, match="results: Permission denied"):
        driver.check_writable(tmp_path)


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def full(**_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    with pytest.raises(runlock.Refusal, match=r"No space left on device\. Free some space"):
        driver.check_writable(tmp_path)


def test_the_check_leaves_nothing_behind(tmp_path):
    driver.check_writable(tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


@pytest.fixture
def disks(monkeypatch):
    Disk = namedtuple("Disk", "mountpoint fstype")
    mounts = [Disk("/home/me/local", "xfs"), Disk("/home", "nfs4"), Disk("/s", "fuse.x"), Disk("/", "ext4")]
    monkeypatch.setattr(runlock.psutil, "disk_partitions", lambda all: mounts)


@pytest.mark.parametrize(
    ("folder", "shared"),
    [("/tmp/x", False), ("/home/you", True), ("/home/me/local/x", False), ("/s/x", True), ("/homes", False)],
)
def test_network_file_systems_are_known(disks, folder, shared):
    assert runlock.on_network(Path(folder)) is shared


def test_a_lock_that_another_machine_may_hold_is_left_alone(tmp_path, monkeypatch):
    locks = tmp_path / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.input.lock").write_text("x\n")
    monkeypatch.setattr(runlock, "on_network", lambda folder: True)
    with pytest.raises(runlock.Refusal, match="network file system"):
        runlock.clear_leftovers(tmp_path, before={})
    assert locks.exists()
    runlock.clear_leftovers(tmp_path, before={"pid": 1, "since": "today"})  # one of our own runs left it
    assert not locks.exists()


@pytest.fixture
def started(monkeypatch):
    """The command that would have replaced this process."""
    calls = []
    monkeypatch.chdir(driver.ROOT / "tests")
    monkeypatch.setattr(driver.os, "execv", lambda program, command: calls.append(command))
    monkeypatch.setattr(driver.os, "chdir", calls.append)
    return calls


SIDE_BY_SIDE = ["-n", str(min(4, os.cpu_count())), "--dist", "loadfile", "--no-loadscope-reorder"]


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ([], ["-m", "not slow", *SIDE_BY_SIDE, "tests"]),
        (["--slow", "-x"], ["-x", "tests"]),
        (["-k", "unit"], ["-m", "not slow", *SIDE_BY_SIDE, "-k", "unit", "tests"]),
        (["unit/test_driver.py::a"], ["-m", "not slow", f"{driver.ROOT}/tests/unit/test_driver.py::a"]),
    ],
)
def test_tests_run_in_the_project_fast_ones_by_default(started, given, command):
    driver.test(given)
    assert started == [driver.ROOT, [sys.executable, "-P", "-m", "pytest", *command]]
