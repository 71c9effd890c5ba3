"""The Mamba mixer (Gu & Dao 2023, arXiv 2312.00752), with the parameter names of `transformers`."""

import math

import torch
from torch import nn

from stateatlas.blocks.norm import RMSNorm
from stateatlas.blocks.step import inverse_softplus, log_uniform_step
from stateatlas.kernels import conv_silu, selective_scan, use


class Mixer(nn.Module):
    """Selective state space of 16 states a channel, twice as many channels as the stream is wide.

    Without `conv` the convolution alone is left out and its SiLU stays (protocol A, *Conv1D attribution*).
    """

    Norm = RMSNorm
    positions = False
    use_backend = staticmethod(use)
    state_size = 16
    conv_size = 4

    def __init__(self, width: int, conv: bool = True):
        super().__init__()
        inner, rank = 2 * width, math.ceil(width / 16)
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, self.conv_size, groups=inner) if conv else None
        self.x_proj = nn.Linear(inner, rank + 2 * self.state_size, bias=False)
        self.dt_proj = nn.Linear(rank, inner)
        states = torch.arange(1, self.state_size + 1, dtype=torch.float32)
        self.A_log = nn.Parameter(states.log().repeat(inner, 1))
        self.D = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, width, bias=False)
        nn.init.uniform_(self.dt_proj.weight, -(rank**-0.5), rank**-0.5)
        with torch.no_grad():
            self.dt_proj.bias.copy_(inverse_softplus(log_uniform_step(inner)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u, gate = self.in_proj(x).chunk(2, dim=-1)  # (batch, length, inner) each
        u = conv_silu(u, self.conv1d.weight, self.conv1d.bias) if self.conv1d else nn.functional.silu(u)
        rank = self.dt_proj.in_features
        dt, b, c = self.x_proj(u).split([rank, self.state_size, self.state_size], dim=-1)
        delta = nn.functional.softplus(self.dt_proj(dt))  # (batch, length, inner)
        return self.out_proj(selective_scan(u, delta, -torch.exp(self.A_log), b, c, self.D, gate))
