"""The units of Mamba-2: its heads."""

import torch
from torch import nn

from stateatlas.blocks import mamba2
from stateatlas.blocks.state_space import Memory
from stateatlas.units import Observed
from stateatlas.units.state_space import Places, interventions


def mixer(block: nn.Module) -> nn.Module:
    """Return the part of a block that holds its units."""
    return block.mixer


def number(mixer: nn.Module) -> int:
    """Return how many heads a mixer has."""
    return len(mixer.A_log)


def places(mixer: nn.Module, units: torch.Tensor) -> Places:
    """Return where some heads are."""
    inner, convolved = mixer.out_proj.in_features, mixer.conv1d.in_channels
    size = inner // number(mixer)
    channels = (units[:, None] * size + torch.arange(size)).flatten()
    gate, step = (mixer.in_proj, channels), (mixer.in_proj, inner + convolved + units)  # z first, Δ last
    return Places(units, channels, gate, step, (mixer, "dt_bias"))


def output(mixer: nn.Module) -> nn.Linear:
    """Return the map that reads the units' outputs."""
    return mixer.out_proj


INTERVENTIONS = interventions(places)
REMEMBERS_CHEAPLY = True  # decays are those of a head


def observe(model: nn.Module, index: int, stream: torch.Tensor) -> Observed:
    """Return what the heads of one block do, given the stream before it."""
    block = model.blocks[index]
    inputs = mamba2.project(block.mixer, model.normed(index, stream))
    outputs = mamba2.scan(block.mixer, inputs, *model.options)
    gate = nn.functional.silu(inputs.gate)
    delta = nn.functional.softplus(inputs.step).clamp(*model.options[2])
    return Observed(inputs.step, gate, delta, outputs, stream + block.mixer.out_proj(outputs))


def remember(model: nn.Module, index: int, stream: torch.Tensor, memory: Memory | None = None) -> Memory:
    """Return what a block knows after the tokens of `stream`, the stream before it, and those of `memory`."""
    return mamba2.remember(model.blocks[index].mixer, model.normed(index, stream), memory, *model.options[1:])


def advance(model: nn.Module, index: int, stream: torch.Tensor, memory: Memory) -> torch.Tensor:
    """Return the stream after a block, given that before it, for tokens that come after those of `memory`."""
    mixed = mamba2.advance(model.blocks[index].mixer, model.normed(index, stream), memory, *model.options)
    return stream + mixed
