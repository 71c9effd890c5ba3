"""The Mamba-2 mixer (Dao & Gu 2024, arXiv 2405.21060), with the parameter names of `transformers`."""

import math

import torch
from torch import nn

from stateatlas.blocks.convolution import convolved, tail_of
from stateatlas.blocks.norm import RMSNorm
from stateatlas.blocks.state_space import Inputs, Memory, final_state, inverse_softplus, log_uniform_step, recalled
from stateatlas.kernels import rms_norm, ssd, use


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
        return mix(self, x, self.norm.eps)


def mix(
    mixer: nn.Module, x: torch.Tensor, eps: float, groups: int = 1, limits: tuple[float, float] = (0.0, math.inf)
) -> torch.Tensor:
    """Return what a mixer makes of x, (batch, length, width), in the same shape.

    `mixer` holds the parameters, under the names that ours and `Mamba2Mixer` of `transformers` share; the other sizes
    are read off them. The heads of a group share B and C, and every group has a norm of its own, with `eps`. `limits`
    are the smallest and the largest Δ. The convolution and the two projections of the stream may have biases or not.
    """
    return mixer.out_proj(scan(mixer, project(mixer, x), eps, groups, limits))


def project(mixer: nn.Module, x: torch.Tensor, tail: torch.Tensor | None = None) -> Inputs:
    """Return what the recurrence reads, given the stream after the norm; `tail` comes from an earlier `remember`."""
    inner, channels, heads = mixer.out_proj.in_features, mixer.conv1d.in_channels, len(mixer.A_log)
    gate, raw, dt = mixer.in_proj(x).split([inner, channels, heads], dim=-1)
    states = (channels - inner) // 2  # of all groups
    u, b, c = convolved(mixer.conv1d, raw, tail).split([inner, states, states], dim=-1)
    return Inputs(raw, u, dt + mixer.dt_bias, b, c, gate)


def scan(
    mixer: nn.Module,
    inputs: Inputs,
    eps: float,
    groups: int = 1,
    limits: tuple[float, float] = (0.0, math.inf),
    state: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the output of every channel after the gated norm, (batch, length, inner), as the output projection reads
    it; `state` is that of earlier tokens."""
    inner, heads = inputs.u.shape[-1], inputs.step.shape[-1]
    delta = nn.functional.softplus(inputs.step).clamp(*limits)  # (batch, length, heads)
    a, skip = -torch.exp(mixer.A_log), mixer.D.repeat_interleave(inner // heads)
    # Everything that a group needs lies side by side.
    parts = (inputs.u, delta, a, inputs.b, inputs.c, skip, inputs.gate)
    outputs = [ssd(*part) for part in zip(*(t.chunk(groups, dim=-1) for t in parts), strict=True)]
    if state is not None:
        shares = (state.chunk(groups, dim=1), *(t.chunk(groups, dim=-1) for t in (delta, a, inputs.c, inputs.gate)))
        outputs = [
            output + recalled(h, *_by_channel(d, a, h.shape[1]), c) * nn.functional.silu(gate)
            for output, h, d, a, c, gate in zip(outputs, *shares, strict=True)
        ]
    weights = mixer.norm.weight.chunk(groups)
    return torch.cat([rms_norm(y, weight, eps) for y, weight in zip(outputs, weights, strict=True)], dim=-1)


def remember(
    mixer: nn.Module,
    x: torch.Tensor,
    memory: Memory | None = None,
    groups: int = 1,
    limits: tuple[float, float] = (0.0, math.inf),
) -> Memory:
    """Return what the mixer knows after x, which comes after the tokens of `memory`."""
    tail, before = memory or (None, None)
    inputs = project(mixer, x, tail)
    delta = nn.functional.softplus(inputs.step).clamp(*limits)
    shares = (t.chunk(groups, dim=-1) for t in (inputs.u, delta, -torch.exp(mixer.A_log), inputs.b))
    earlier = [None] * groups if before is None else before.chunk(groups, dim=1)
    states = [
        final_state(u, *_by_channel(d, a, u.shape[2]), b, h) for u, d, a, b, h in zip(*shares, earlier, strict=True)
    ]
    return Memory(tail_of(mixer.conv1d, inputs.raw, tail), torch.cat(states, dim=1))


def advance(
    mixer: nn.Module,
    x: torch.Tensor,
    memory: Memory,
    eps: float,
    groups: int = 1,
    limits: tuple[float, float] = (0.0, math.inf),
) -> torch.Tensor:
    """Return what `mix` returns for tokens that come after those of `memory`."""
    return mixer.out_proj(scan(mixer, project(mixer, x, memory.tail), eps, groups, limits, memory.state))


def _by_channel(delta: torch.Tensor, a: torch.Tensor, inner: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return Δ, (batch, length, inner), and A, (inner, 1), of every channel, given those of the heads."""
    size = inner // len(a)
    return delta.repeat_interleave(size, dim=-1), a.repeat_interleave(size)[:, None]
