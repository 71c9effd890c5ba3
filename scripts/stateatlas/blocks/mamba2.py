"""The Mamba-2 mixer (Dao & Gu 2024, arXiv 2405.21060), with the parameter names of `transformers`."""

import torch
from torch import nn

from stateatlas.blocks.norm import RMSNorm
from stateatlas.blocks.step import inverse_softplus, log_uniform_step
from stateatlas.kernels import conv_silu, ssd, use


class Mixer(nn.Module):
    """Heads of 16 channels with a state of 32, one group, twice as many channels as the stream is wide."""

    Norm = RMSNorm
    positions = False
    use_backend = staticmethod(use)
    state_size = 32
    head_size = 16
    conv_size = 4

    def __init__(self, width: int):
        super().__init__()
        self.inner = 2 * width
        self.heads = self.inner // self.head_size
        convolved = self.inner + 2 * self.state_size
        self.in_proj = nn.Linear(width, self.inner + convolved + self.heads, bias=False)
        self.conv1d = nn.Conv1d(convolved, convolved, self.conv_size, groups=convolved)
        self.dt_bias = nn.Parameter(inverse_softplus(log_uniform_step(self.heads)))
        self.A_log = nn.Parameter(torch.empty(self.heads).uniform_(1, 16).log())
        self.D = nn.Parameter(torch.ones(self.heads))
        self.norm = RMSNorm(self.inner, eps=1e-5)
        self.out_proj = nn.Linear(self.inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        convolved = self.inner + 2 * self.state_size
        gate, xbc, dt = self.in_proj(x).split([self.inner, convolved, self.heads], dim=-1)
        xbc = conv_silu(xbc, self.conv1d.weight, self.conv1d.bias)
        u, b, c = xbc.split([self.inner, self.state_size, self.state_size], dim=-1)
        delta = nn.functional.softplus(dt + self.dt_bias)  # (batch, length, heads)
        skip = self.D.repeat_interleave(self.head_size)
        return self.out_proj(self.norm(ssd(u, delta, -torch.exp(self.A_log), b, c, skip, gate)))
