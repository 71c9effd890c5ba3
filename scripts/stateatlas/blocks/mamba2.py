"""The Mamba-2 mixer (Dao & Gu 2024, arXiv 2405.21060), with the parameter names of `transformers`."""

import math

import torch
from torch import nn

from stateatlas.blocks.norm import RMSNorm
from stateatlas.blocks.step import inverse_softplus, log_uniform_step
from stateatlas.kernels import conv_silu, rms_norm, ssd, use


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
        inner = 2 * width
        heads = inner // self.head_size
        convolved = inner + 2 * self.state_size
        self.in_proj = nn.Linear(width, inner + convolved + heads, bias=False)
        self.conv1d = nn.Conv1d(convolved, convolved, self.conv_size, groups=convolved)
        self.dt_bias = nn.Parameter(inverse_softplus(log_uniform_step(heads)))
        self.A_log = nn.Parameter(torch.empty(heads).uniform_(1, 16).log())
        self.D = nn.Parameter(torch.ones(heads))
        self.norm = RMSNorm(inner, eps=1e-5)
        self.out_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return mix(self, x, self.norm.eps)


def mix(
    mixer: nn.Module, x: torch.Tensor, eps: float, groups: int = 1, limits: tuple[float, float] = (0.0, math.inf)
) -> torch.Tensor:
    """Return what a mixer makes of x, (batch, length, width), in the same shape.

    `mixer` holds the parameters, under the names that ours and `Mamba2Mixer` of `transformers` share; the other sizes
    are read off them. The heads of a group share B and C, and every group has a norm of its own, with `eps`. `limits`
    are the smallest and the largest Δ. The convolution and the two projections of the stream may have biases or not.
    """
    inner, convolved, heads = mixer.out_proj.in_features, mixer.conv1d.in_channels, len(mixer.A_log)
    gate, xbc, dt = mixer.in_proj(x).split([inner, convolved, heads], dim=-1)
    xbc = conv_silu(xbc, mixer.conv1d.weight, mixer.conv1d.bias)
    states = (convolved - inner) // 2  # of all groups
    u, b, c = xbc.split([inner, states, states], dim=-1)
    delta = nn.functional.softplus(dt + mixer.dt_bias).clamp(*limits)  # (batch, length, heads)
    a, skip = -torch.exp(mixer.A_log), mixer.D.repeat_interleave(inner // heads)
    # Everything that a group needs lies side by side.
    parts = [t.chunk(groups, dim=-1) for t in (u, delta, a, b, c, skip, gate, mixer.norm.weight)]
    outputs = [rms_norm(ssd(*inputs), weight, eps) for *inputs, weight in zip(*parts, strict=True)]
    return mixer.out_proj(torch.cat(outputs, dim=-1))
