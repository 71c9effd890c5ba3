"""The Mamba mixer (Gu & Dao 2023, arXiv 2312.00752), with the parameter names of `transformers`."""

import math

import torch
from torch import nn

from stateatlas.blocks.convolution import convolved, tail_of
from stateatlas.blocks.norm import RMSNorm
from stateatlas.blocks.state_space import Inputs, Memory, final_state, inverse_softplus, log_uniform_step, recalled
from stateatlas.kernels import selective_scan, use


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
        return mix(self, x)


def mix(mixer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return what a mixer makes of x, (batch, length, width), in the same shape.

    `mixer` holds the parameters, under the names that ours and `MambaMixer` of `transformers` share; all sizes are
    read off them. The convolution and the two projections of the stream may have biases or not.
    """
    return mixer.out_proj(scan(mixer, project(mixer, x)))


def project(mixer: nn.Module, x: torch.Tensor, tail: torch.Tensor | None = None) -> Inputs:
    """Return what the recurrence reads, given the stream after the norm; `tail` comes from an earlier `remember`."""
    raw, gate = mixer.in_proj(x).chunk(2, dim=-1)  # (batch, length, inner) each
    u = convolved(mixer.conv1d, raw, tail)
    rank, states = mixer.dt_proj.in_features, mixer.A_log.shape[1]
    dt, b, c = mixer.x_proj(u).split([rank, states, states], dim=-1)
    return Inputs(raw, u, mixer.dt_proj(dt), b, c, gate)


def scan(mixer: nn.Module, inputs: Inputs) -> torch.Tensor:
    """Return the output of every channel, (batch, length, inner), as the output projection reads it."""
    u, delta, b, c, gate = inputs.u, nn.functional.softplus(inputs.step), inputs.b, inputs.c, inputs.gate
    return selective_scan(u, delta, -torch.exp(mixer.A_log), b, c, mixer.D, gate)


def remember(mixer: nn.Module, x: torch.Tensor, memory: Memory | None = None) -> Memory:
    """Return what the mixer knows after x, which comes after the tokens of `memory`."""
    tail, before = memory or (None, None)
    inputs = project(mixer, x, tail)
    delta, a = nn.functional.softplus(inputs.step), -torch.exp(mixer.A_log)
    return Memory(tail_of(mixer.conv1d, inputs.raw, tail), final_state(inputs.u, delta, a, inputs.b, before))


def advance(mixer: nn.Module, x: torch.Tensor, memory: Memory) -> torch.Tensor:
    """Return what `mix` returns for tokens that come after those of `memory`."""
    inputs = project(mixer, x, memory.tail)
    delta, a = nn.functional.softplus(inputs.step), -torch.exp(mixer.A_log)
    before = recalled(memory.state, delta, a, inputs.c) * nn.functional.silu(inputs.gate)
    return mixer.out_proj(scan(mixer, inputs) + before)
