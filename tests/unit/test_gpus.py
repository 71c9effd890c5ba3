"""The GPUs of this machine are shared out: every job has one for itself, and a killed job gives it back."""

import os
import signal
import subprocess
import sys
from itertools import combinations

import pytest

from stateatlas import gpus

HOLD = """
import os, sys, time
from stateatlas import gpus
with gpus.leased():
    started = time.monotonic()
    print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    time.sleep(float(sys.argv[1]))
    print(started, time.monotonic(), flush=True)
"""


@pytest.fixture
def holder(root, tmp_path):
    """Start a job that holds a GPU for some seconds."""

    def start(seconds: float, devices: str = "0,1,2,3") -> subprocess.Popen:
        environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(root / "scripts")}
        return subprocess.Popen(
            [sys.executable, "-P", "-c", HOLD, str(seconds)],
            env=environment | {gpus.VISIBLE: devices}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    return start


def test_eight_jobs_on_four_gpus_never_share_one(holder):
    said = [job.communicate(timeout=60)[0].split() for job in [holder(0.5) for _ in range(8)]]
    held = [(gpu, float(start), float(end)) for gpu, start, end in said]
    assert {gpu for gpu, _, _ in held} == {"0", "1", "2", "3"}
    for (gpu, start, end), (other, starts, ends) in combinations(held, 2):
        assert gpu != other or end <= starts or ends <= start


def test_a_killed_job_gives_its_gpu_back(holder):
    first, second = holder(60, "4,5"), holder(60, "4,5")
    taken = {first.stdout.readline().strip(), second.stdout.readline().strip()}
    assert taken == {"4", "5"}
    waiting = holder(0, "4,5")
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1)
    first.send_signal(signal.SIGKILL)
    assert waiting.communicate(timeout=30)[0].split()[0] in taken
    second.kill()
    for job in (first, second):
        job.communicate()


@pytest.mark.parametrize(("given", "count"), [("3", 1), ("", 1), (None, 0)])
def test_one_gpu_or_none_is_not_leased(monkeypatch, tmp_path, given, count):
    """A scheduler shows a job its own alone, on every node under the same number."""
    monkeypatch.setattr(gpus, "local_gpus", lambda: count)
    monkeypatch.setattr(gpus.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.delenv(gpus.VISIBLE, raising=False)
    if given is not None:
        monkeypatch.setenv(gpus.VISIBLE, given)
    with gpus.leased():
        assert os.environ.get(gpus.VISIBLE) == given
    assert not list(tmp_path.iterdir())


def test_gpus_are_counted_from_what_the_driver_lists(monkeypatch, tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: H200 (UUID: GPU-1)'\necho 'GPU 1: H200 (UUID: GPU-2)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv(gpus.VISIBLE, raising=False)
    assert gpus.local_gpus() == 2 and gpus.visible() == ["0", "1"]
    monkeypatch.setenv(gpus.VISIBLE, "")
    assert gpus.visible() == []


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [({"gpu": 1}, True), ({"gpu": 0}, False), ({}, False), ({"gpu": 0, "gres": "gpu:1"}, True), ({"gres": ""}, False)],
)
def test_a_gpu_is_asked_for_in_either_of_slurms_ways(resources, wanted):
    assert gpus.wanted(resources) is wanted
