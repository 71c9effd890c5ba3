"""Around a training: its device, and the loop that resumes, saves checkpoints and says how far it is."""

import ctypes
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator

import torch

from stateatlas.checkpoint import Checkpoint
from stateatlas.job import InputError, leaving

log = logging.getLogger(__name__)
# Seconds between checkpoints. Not a setting: it changes no result.
EVERY = float(os.environ.get("STATEATLAS_CHECKPOINT_SECONDS", "20"))
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)


def use_device(device: str, threads: int) -> None:
    """Make torch compute with `threads` threads, after checking that it can use the device.

    Raises
    ------
    InputError
        If the device is a GPU that this torch cannot use.
    """
    torch.set_num_threads(threads)
    _keep_memory()
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"a GPU is here, but torch {torch.__version__} cannot use it: install a CUDA build into this environment, "
            "or add `--resources gpu=0` to run on the CPU"
        )


def _keep_memory() -> None:
    """Let the C library keep memory that was freed, where it is GNU's.

    It gives the memory of large tensors back to the system and asks for it again at the next operation, page by page:
    a third of the time of a Mamba on some windows.
    """
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_MMAP_THRESHOLD, 1 << 30)
        mallopt(_TRIM_THRESHOLD, (1 << 31) - 1)


def resume(trainer, checkpoint: Checkpoint) -> None:
    """Put `trainer` where the checkpoint left it, if there is one."""
    if (state := checkpoint.load()) is not None:
        trainer.restore(state)
        log.info("going on from step %d", trainer.step)


def train(trainer, updates: Iterator[None], checkpoint: Checkpoint, every: float = EVERY) -> None:
    """Run `updates`, the steps of `trainer`, to their end.

    `trainer` has `step`, `recipe.steps` (the most there can be), `state()` for the checkpoint and `progress()`, what
    the log says beside the step. SIGTERM, which schedulers send before they kill, ends it after the step at hand, with
    a checkpoint.
    """
    saved = told = started = time.monotonic()
    first = trainer.step
    before = signal.signal(signal.SIGTERM, lambda *_: leaving.set())
    for _ in updates:
        now = time.monotonic()
        if now - saved > every or leaving.is_set():
            checkpoint.save(trainer.state())
            saved = now
        if leaving.is_set():
            sys.exit(f"ended by SIGTERM at step {trainer.step}, with a checkpoint: the same command goes on from there")
        if now - told > 10 or trainer.step == trainer.recipe.steps:
            rate = (now - started) / (trainer.step - first)
            log.info(
                "step %d of at most %d, %s, at most %.0f s left",
                trainer.step, trainer.recipe.steps, trainer.progress(), rate * (trainer.recipe.steps - trainer.step),
            )  # fmt: skip
            told = now
    signal.signal(signal.SIGTERM, before)
