"""Checkpoints of a training that may be killed: one file, written whole or not at all."""

import contextlib
import os
import shutil
from pathlib import Path

import torch


class Checkpoint:
    """A training's state in `folder`, which belongs to one cfg, one set of inputs and one torch version.

    The folder is named by the hash of all three (see `stateatlas.job`), so that a checkpoint which other code,
    other config or other data made is never found.
    """

    def __init__(self, folder: Path):
        self.folder = Path(folder)
        self.path = self.folder / "checkpoint.pt"

    def load(self) -> dict | None:
        """Return the saved state, or None where there is none or it cannot be read."""
        if not self.path.exists():
            return None
        try:
            return torch.load(self.path, weights_only=True)
        except Exception:  # a damaged file costs the time since the start, never the run
            self.path.unlink()
            return None

    def save(self, state: dict) -> None:
        """Replace the saved state: tensors, numbers, strings, lists and dicts."""
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        with open(temporary, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)

    def delete(self) -> None:
        """Remove the folder, after the results are in place."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.folder)
