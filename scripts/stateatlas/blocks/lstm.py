"""One layer of `torch.nn.LSTM`."""

import torch
from torch import nn


class Mixer(nn.Module):
    """A LSTM as wide as the stream, started from a zero state."""

    Norm = nn.LayerNorm
    positions = False

    def __init__(self, width: int):
        super().__init__()
        self.rnn = nn.LSTM(width, width, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rnn(x)[0]
