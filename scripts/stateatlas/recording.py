"""Recording: run a model and write its states at every site, in chunks, so memory does not grow with the number of
sequences."""

import contextlib
from pathlib import Path

import numpy as np
import torch
from numpy.lib.format import write_array_header_1_0

from stateatlas import states
from stateatlas.residual import Residual

CHUNK = 256  # sequences


@torch.inference_mode()
def record(model: Residual, tokens: np.ndarray, folder: Path, split: str) -> None:
    """Write the states of `tokens`, (sequences, length) int64, at every site."""
    folder.mkdir(parents=True, exist_ok=True)
    header = {"descr": "<f4", "fortran_order": False, "shape": (*tokens.shape, model.width)}
    device = next(model.parameters()).device
    # Written, not mapped: on a full disk a write is an error, a page of a mapped file that finds no place is a crash.
    with contextlib.ExitStack() as opened:
        files = [opened.enter_context(open(states.place(folder, split, k), "wb")) for k in range(model.sites)]
        for file in files:
            write_array_header_1_0(file, header)
        for start in range(0, len(tokens), CHUNK):
            chunk = torch.from_numpy(tokens[start : start + CHUNK]).to(device)
            for file, stream in zip(files, model.states(chunk), strict=True):
                file.write(np.ascontiguousarray(stream.cpu().numpy(), dtype="<f4").tobytes())
