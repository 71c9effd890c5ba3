"""Which GPU of this machine a job computes on: a lease that a killed job gives back by itself.

Snakemake counts local GPUs and hands out none. A scheduler shows a job its own device alone: nothing to lease.
"""

import contextlib
import logging
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import filelock

log = logging.getLogger(__name__)
VISIBLE = "CUDA_VISIBLE_DEVICES"
# Set where GPUs are only counted, as in tests of schedulers: models run on the CPU.
FAKE = "STATEATLAS_FAKE_GPU"


def local_gpus() -> int:
    """Return how many NVIDIA GPUs this machine shows."""
    if shutil.which("nvidia-smi") is None:
        return 0
    listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False)
    return listed.stdout.count("GPU ") if listed.returncode == 0 else 0


def wanted(resources: dict) -> bool:
    """Say whether a job asks for a GPU, in either of Slurm's ways."""
    return bool(resources.get("gpu", 0)) or "gpu" in str(resources.get("gres", ""))


def device() -> str:
    """Return the device that a job with a GPU computes on, as torch names it."""
    return "cpu" if os.environ.get(FAKE) else "cuda"


def visible() -> list[str]:
    """Return the GPUs that this process may use."""
    given = os.environ.get(VISIBLE)
    if given is None:
        return [str(number) for number in range(local_gpus())]
    return [name for name in given.split(",") if name not in ("", "-1")]


@contextlib.contextmanager
def leased() -> Iterator[None]:
    """Show this process one of several visible GPUs alone; wait while others hold them all."""
    devices = visible()
    if len(devices) < 2:
        yield
        return
    folder = Path(tempfile.gettempdir(), f"stateatlas-gpus-{os.getuid()}")
    folder.mkdir(exist_ok=True)
    locks = {name: filelock.FileLock(folder / f"{name.replace('/', '_')}.lock") for name in devices}
    name = _first_free(locks)
    before = os.environ.get(VISIBLE)
    os.environ[VISIBLE] = name
    log.info("GPU %s", name)
    try:
        yield
    finally:
        locks[name].release()
        os.environ.pop(VISIBLE)
        if before is not None:
            os.environ[VISIBLE] = before


def _first_free(locks: dict[str, filelock.FileLock]) -> str:
    while True:
        for name, lock in locks.items():
            with contextlib.suppress(filelock.Timeout):
                lock.acquire(timeout=0)
                return name
        time.sleep(0.2)
