"""What every script runs inside: whole results or none, one clear line where it fails, one writer at a time."""

import errno
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import filelock
import pytest
import rule_jobs
from rule_jobs import described, folder, kept_logging, run

from stateatlas import canonical, job, manifest

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Path:
    """An empty working directory; jobs in it do not end with the driver of these tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(job, "_end_with_driver", lambda: None)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))
    folder("sample").mkdir(parents=True)
    return tmp_path


def attempt(body, rule: str = "sample", **change) -> str:
    """Run `body` as the script of a rule; return what it says when it fails."""
    with kept_logging(), pytest.raises(SystemExit) as ended, job.job(described(rule, **change)) as running:
        body(running)
    return str(ended.value.code)


def raising(error: Exception):
    def body(running):
        running.output.sequences.write_text("half")
        raise error

    return body


def test_a_finished_job_leaves_its_results_a_manifest_and_what_it_took(place):
    run("sample")
    assert {path.name for path in folder("sample").iterdir()} == {"manifest.json", "sequences.safetensors"}
    told = json.loads((folder("sample") / "manifest.json").read_text())
    checksum = canonical.sha256_file(folder("sample") / "sequences.safetensors")
    assert told["rule"] == "sample" and told["wildcards"] == {"task": "parity"} and told["cfg"]["task"] == "parity"
    assert told["outputs"] == {"sequences.safetensors": checksum}
    assert "numpy" in told["versions"]
    took = json.loads(Path("logs/sample.run.json").read_text())
    assert took["wall_s"] > 0 and took["peak_bytes"] > 1e6 and took["device"] == "cpu"
    assert "done in" in Path("logs/sample.log").read_text()


def test_two_runs_give_the_same_bytes(place):
    run("sample")
    first = {path.name: path.read_bytes() for path in folder("sample").iterdir()}
    run("sample")
    assert {path.name: path.read_bytes() for path in folder("sample").iterdir()} == first


def test_a_manifest_knows_the_inputs_from_its_own_folder(place):
    run("sample")
    run("base_probe")
    told = json.loads((folder("base_probe") / "manifest.json").read_text())
    name = "../../sequences/parity/manifest.json"
    assert told["inputs"] == {name: manifest.checksum(folder("sample") / "manifest.json")}
    assert (folder("base_probe") / name).resolve() == (folder("sample") / "manifest.json").resolve()


def test_threads_come_from_the_cfg_and_not_from_the_scheduler(place):
    snakemake = described("sample")
    assert snakemake.threads == 7
    with kept_logging(), job.job(snakemake) as running:
        assert os.environ["OMP_NUM_THREADS"] == "1"
        running.output.sequences.write_text("x")


@pytest.mark.parametrize(
    ("gpu", "backend", "device"), [(1, "torch", "cuda"), (1, None, "cuda"), (0, "torch", "cpu"), (1, "compiled", "cpu")]
)
def test_a_gpu_is_used_where_one_is_given_and_the_kernels_can(place, gpu, backend, device):
    snakemake = described("record")
    cfg = json.loads(snakemake.params.cfg) | ({"backend": backend} if backend else {})
    snakemake.params.cfg, snakemake.input, snakemake.resources = json.dumps(cfg), rule_jobs.Named({}), {"gpu": gpu}
    folder("record").mkdir(parents=True)
    with kept_logging(), job.job(snakemake) as running:
        assert running.device == device
        running.output.states.mkdir()
        running.output.behaviour.touch()


@pytest.mark.parametrize(("rule", "offline"), [("record", "1"), ("fetch", None)])
def test_only_what_fetches_may_ask_the_hub(place, monkeypatch, rule, offline):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    snakemake = described("record")
    snakemake.params.cfg = json.dumps(json.loads(snakemake.params.cfg) | {"rule": rule})
    snakemake.input = rule_jobs.Named({})
    folder("record").mkdir(parents=True)
    with kept_logging(), job.job(snakemake) as running:
        assert os.environ.get("HF_HUB_OFFLINE") == offline
        running.output.states.mkdir()
        running.output.behaviour.touch()
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


FAILURES = [
    (OSError(errno.ENOSPC, "No space left on device", "results/x"), "the disk is full (results/x); free some space"),
    (OSError(errno.EDQUOT, "Disk quota exceeded"), "the disk is full ("),
    (RuntimeError("Error while serializing: IoError(Os { code: 28, kind: StorageFull })"), "the disk is full"),
    (ValueError("[Errno 28] Error writing bytes to file. Detail: No space left on device"), "the disk is full"),
    (PermissionError(errno.EACCES, "Permission denied", "results/y"), "no permission for results/y; make it writable"),
    (OSError(errno.EROFS, "Read-only file system", "results/y"), "no permission for results/y; make it writable"),
    (FileExistsError(errno.EEXIST, "File exists", "results/z"), "results/z is in the way; remove it"),
    (job.InputError("a.csv: damaged; delete it and run again"), "a.csv: damaged; delete it and run again"),
    (ValueError("all wrong"), "ValueError: all wrong"),
]


@pytest.mark.parametrize(("error", "told"), FAILURES, ids=lambda part: str(part)[:40])
def test_a_failure_is_told_in_one_line_and_leaves_nothing(place, error, told):
    line, pointer = attempt(raising(error)).splitlines()
    assert line.startswith("sample: ") and told in line and pointer == "The traceback is in logs/sample.log"
    log = Path("logs/sample.log").read_text()
    assert "Traceback (most recent call last)" in log and type(error).__name__ in log
    assert list(folder("sample").iterdir()) == []


def test_a_failure_keeps_the_checkpoints_and_success_removes_them(place):
    def leave(running):
        running.work.mkdir()
        (running.work / "checkpoint").write_text("step 7")
        running.output.sequences.write_text("x")

    works = []
    attempt(lambda running: (leave(running), works.append(running.work), 1 / 0))
    assert (works[0] / "checkpoint").read_text() == "step 7"
    with kept_logging(), job.job(described("sample")) as running:
        assert running.work == works[0]
        running.output.sequences.write_text("x")
    assert not works[0].exists()


def test_checkpoints_belong_to_one_cfg_and_one_set_of_inputs(place):
    run("sample")
    found = []
    for change in ({}, {"steps": {"default": 3}}, {}):
        attempt(lambda running: (found.append(running.work), 1 / 0), "train", **change)
    path = folder("sample") / "manifest.json"
    path.write_text(path.read_text() + "\n")
    attempt(lambda running: (found.append(running.work), 1 / 0), "train")
    assert found[0] == found[2] and len(set(found)) == 3
    assert all(work.parent == Path("results/smoke/.work") for work in found)


def test_the_place_for_checkpoints_is_found_in_any_folder():
    inside = Path("results/smoke/encoding/models/parity/lstm/seed0/manifest.json")
    assert job._work_root(inside) == Path("results/smoke/.work")
    assert job._work_root(Path("/my results/sub") / inside) == Path("/my results/sub/results/smoke/.work")


@pytest.mark.parametrize("place_of", ["results/smoke/.work", "logs"])
def test_a_file_in_the_way_is_named(place, place_of):
    Path(place_of).write_text("")
    assert f"{place_of} is in the way; remove it" in attempt(raising(ValueError("not reached")))


def test_warnings_go_to_the_log(place, capfd):
    with kept_logging(), job.job(described("sample")) as running:
        warnings.warn("beware", stacklevel=1)
        running.output.sequences.write_text("x")
    assert "beware" in Path("logs/sample.log").read_text() and "beware" not in capfd.readouterr().err


def other_writer() -> filelock.FileLock:
    output = Path(described("sample").output.manifest)
    name = f"{canonical.sha256(output.as_posix())[:16]}.lock"
    lock = filelock.FileLock(job._work_root(output) / name, thread_local=False)
    Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
    lock.acquire()
    return lock


def test_another_writer_is_named_and_what_it_writes_is_left_alone(place, monkeypatch):
    lock, acquire = other_writer(), filelock.FileLock.acquire
    monkeypatch.setattr(filelock.FileLock, "acquire", lambda self, timeout: acquire(self, timeout=0.1))
    theirs = folder("sample") / ".part-sequences.safetensors"
    theirs.write_text("theirs")
    told = attempt(raising(ValueError("not reached")))
    lock.release()
    assert f"another process writes {folder('sample')}; end it" in told and theirs.read_text() == "theirs"


def test_a_job_waits_for_another_writer_to_end(place):
    lock = other_writer()
    threading.Timer(0.5, lock.release).start()
    started = time.monotonic()
    run("sample")
    assert time.monotonic() - started > 0.3


def in_a_process(program: str, **options) -> subprocess.CompletedProcess:
    paths = os.pathsep.join(map(str, (canonical.PACKAGE.parent, HERE)))
    start = "import os, sys; from pathlib import Path; from rule_jobs import *; from stateatlas import job\n"
    start += "job._end_with_driver = lambda: None\n"
    command = [sys.executable, "-c", start + program]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False, **options
    )


def test_a_killed_job_leaves_nothing_that_looks_finished_and_the_next_one_cleans_up(place):
    program = "with job.job(described('sample')) as running:\n"
    program += "    running.output.sequences.write_text('half'); os._exit(9)"
    assert in_a_process(program).returncode == 9
    assert [path.name for path in folder("sample").iterdir()] == [".part-sequences.safetensors"]
    run("sample")
    assert {path.name for path in folder("sample").iterdir()} == {"manifest.json", "sequences.safetensors"}


@pytest.fixture
def mounted(place):
    """Mount something on a folder, if this system lets us."""
    done = []

    def mount(target: Path, *options: str) -> None:
        target.mkdir(parents=True, exist_ok=True)
        if subprocess.run(["mount", *options, target], capture_output=True, check=False).returncode:
            pytest.skip("no right to mount here")
        done.append(target)

    yield mount
    for target in reversed(done):
        subprocess.run(["umount", "--lazy", target], check=True)


def test_a_full_disk_is_told_by_every_rule(place, mounted):
    """A real full disk: every library has its own way to fail on it, and a mapped file would crash."""
    mounted(place / "disk", "-t", "tmpfs", "-o", "size=2m", "tmpfs")
    program = """
import torch
from stateatlas.checkpoint import Checkpoint

def fill(spare=0):
    with open("fill", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)) == 4096: pass
        except OSError: pass
        file.truncate(file.tell() - spare)

RULES = ("sample", "train", "record", "probe", "refit", "collect", "ablate", "base_probe")
for rule in RULES:
    folder(rule).mkdir(parents=True, exist_ok=True)
    Path("logs").mkdir(exist_ok=True)
    fill()
    try: run(rule); print(rule, "finished")
    except SystemExit as ended: print(str(ended.code).splitlines()[0])
    os.remove("fill")
    if rule == "record":
        fill(spare=24576)  # room for the first of the files
        try: run(rule); print(rule, "finished")
        except SystemExit as ended: print(str(ended.code).splitlines()[0])
        os.remove("fill")
    if rule in RULES[:5]: run(rule)
Path("work").mkdir()
fill()
try: Checkpoint(Path("work")).save({"weights": torch.zeros(10000)})
except Exception as error: print("checkpoint:", job._say(error))
"""
    done = in_a_process(program, cwd=place / "disk")
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == 10 and all(": the disk is full (" in line for line in told), done.stdout
    assert "Traceback" not in done.stderr and "Logging error" not in done.stderr


def test_a_folder_without_write_permission_is_named(place, mounted):
    run("sample")
    mounted(place / "results", "--bind", place / "results")
    subprocess.run(["mount", "-o", "remount,ro,bind", place / "results"], check=True)
    told = attempt(raising(ValueError("not reached")))
    assert "sample: no permission for " in told and "results/smoke/.work" in told
    assert "make it writable and run the same command again" in told
