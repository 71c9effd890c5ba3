"""The Mamba mixer (Gu & Dao 2023, arXiv 2312.00752), with the parameter names of `transformers`."""

import math

import torch
from torch import nn

from stateatlas.blocks.norm import RMSNorm
from stateatlas.blocks.step import inverse_softplus, log_uniform_step
from stateatlas.kernels import conv_silu, selective_scan, use


class Mixer(nn.Module):
    """Selective state space of 16 states a channel, twice as many channels as the stream is wide."""

    Norm = RMSNorm
    positions = False
    use_backend = staticmethod(use)
    state_size = 16
    conv_size = 4

    def __init__(self, width: int):
        super().__init__()
        inner, rank = 2 * width, math.ceil(width / 16)
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, self.conv_size, groups=inner)
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
        return mix(self, x)


def mix(mixer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return what a mixer makes of x, (batch, length, width), in the same shape.

    `mixer` holds the parameters, under the names that ours and `MambaMixer` of `transformers` share; all sizes are
    read off them. The convolution and the two projections of the stream may have biases or not.
    """
    u, gate = mixer.in_proj(x).chunk(2, dim=-1)  # (batch, length, inner) each
    u = conv_silu(u, mixer.conv1d.weight, mixer.conv1d.bias)
    rank, states = mixer.dt_proj.in_features, mixer.A_log.shape[1]
    dt, b, c = mixer.x_proj(u).split([rank, states, states], dim=-1)
    delta = nn.functional.softplus(mixer.dt_proj(dt))  # (batch, length, inner)
    return mixer.out_proj(selective_scan(u, delta, -torch.exp(mixer.A_log), b, c, mixer.D, gate))
