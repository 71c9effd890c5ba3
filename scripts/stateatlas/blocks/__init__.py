"""Blocks of the residual model: one mixer class per file. A new architecture is one more file in this folder.

A mixer module `blocks/<name>.py` defines a class `Mixer(nn.Module)` with

- `Mixer(width)`, Mamba's also `Mixer(width, conv=False)`: maps (batch, length, width) to the same shape, causally;
- `Norm`: the norm in front of the mixer, of the MLP and of the read-out (`nn.LayerNorm` or `blocks.norm.RMSNorm`);
- `positions`: whether the embedding adds a learned position;
- `use_backend(backend)`, only where there is a choice: `kernels.use`.
"""

import importlib

import torch
from torch import nn


def load(name: str) -> type[nn.Module]:
    """Return the mixer class of the architecture `name`."""
    # Loaded by name, so that the code of one architecture is not part of another's results.
    return importlib.import_module(f"stateatlas.blocks.{name}").Mixer


def use_backend(name: str, backend: str | None) -> None:
    """Choose the form of the architecture's recurrences, "compiled" or "torch", for this process."""
    if (choose := getattr(load(name), "use_backend", None)) is not None:
        choose(backend)


class Block(nn.Module):
    """A pre-norm residual block: mixer, then MLP (left out when `mlp_width` is 0).

    Maps the stream, (batch, length, width), to the stream one site later, of the same shape.
    """

    def __init__(self, mixer: nn.Module, width: int, mlp_width: int):
        super().__init__()
        self.norm = mixer.Norm(width, eps=1e-5)
        self.mixer = mixer
        self.mlp_norm = mixer.Norm(width, eps=1e-5) if mlp_width else None
        self.mlp = MLP(width, mlp_width) if mlp_width else None

    def forward(self, stream: torch.Tensor) -> torch.Tensor:
        stream = stream + self.mixer(self.norm(stream))
        return stream if self.mlp is None else stream + self.mlp(self.mlp_norm(stream))


class MLP(nn.Module):
    """Two linear maps with GELU (tanh form, as in GPT-2) between them."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.gelu(self.up(x), approximate="tanh"))
