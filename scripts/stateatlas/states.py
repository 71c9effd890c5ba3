"""States: the stream of a model at every site, on disk as one float32 array per site.

Files are `<model>/<split>.site<k>.npy`, (sequences, length, width), read and written in chunks, so memory does not
grow with the number of sequences.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.lib.format import open_memmap

from stateatlas.residual import ResidualModel

CHUNK = 256  # sequences


@torch.inference_mode()
def record(model: ResidualModel, tokens: np.ndarray, folder: Path, split: str) -> None:
    """Write the states of `tokens`, (sequences, length) int64, at every site."""
    folder.mkdir(parents=True, exist_ok=True)
    shape = (*tokens.shape, model.shape.width)
    arrays = [
        open_memmap(folder / f"{split}.site{site}.npy", mode="w+", dtype=np.float32, shape=shape)
        for site in range(model.sites)
    ]
    device = next(model.parameters()).device
    for start in range(0, len(tokens), CHUNK):
        chunk = torch.from_numpy(tokens[start : start + CHUNK]).to(device)
        for array, stream in zip(arrays, model.states(chunk), strict=True):
            array[start : start + CHUNK] = stream.cpu().numpy()
    for array in arrays:
        array.flush()


def load(folder: Path, split: str, site: int) -> np.ndarray:
    """Return the states at a site, memory-mapped, (sequences, length, width) float32."""
    return np.load(folder / f"{split}.site{site}.npy", mmap_mode="r")


def sites(folder: Path) -> list[int]:
    """Return the recorded sites."""
    return list(range(len(list(folder.glob("test.site*.npy")))))
