"""States: the stream of a model at every site, on disk as one float32 array per site.

Files are `<model>/<split>.site<k>.npy`, (sequences, length, width). Reading them takes no torch: what only reads
starts a second sooner.
"""

from pathlib import Path

import numpy as np


def place(folder: Path, split: str, site: int) -> Path:
    """Return the file of a site."""
    return folder / f"{split}.site{site}.npy"


def load(folder: Path, split: str, site: int) -> np.ndarray:
    """Return the states at a site, memory-mapped, (sequences, length, width) float32."""
    return np.load(place(folder, split, site), mmap_mode="r")


def sites(folder: Path) -> list[int]:
    """Return the recorded sites."""
    return list(range(len(list(folder.glob("test.site*.npy")))))
