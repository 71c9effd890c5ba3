"""The units of Mamba: its channels."""

import torch
from torch import nn

from stateatlas.blocks import mamba
from stateatlas.blocks.state_space import Memory
from stateatlas.units import Observed
from stateatlas.units.state_space import Places, interventions


def mixer(block: nn.Module) -> nn.Module:
    """Return the part of a block that holds its units."""
    return block.mixer


def number(mixer: nn.Module) -> int:
    """Return how many channels a mixer has."""
    return mixer.out_proj.in_features


def places(mixer: nn.Module, units: torch.Tensor) -> Places:
    """Return where some channels are."""
    gate = mixer.in_proj, number(mixer) + units  # z is the second half
    return Places(units, units, gate, (mixer.dt_proj, units), (mixer.dt_proj, "bias"))


def output(mixer: nn.Module) -> nn.Linear:
    """Return the map that reads the units' outputs."""
    return mixer.out_proj


INTERVENTIONS = interventions(places)
REMEMBERS_CHEAPLY = False  # 16 states a channel


def observe(model: nn.Module, index: int, stream: torch.Tensor) -> Observed:
    """Return what the channels of one block do, given the stream before it."""
    block = model.blocks[index]
    inputs = mamba.project(block.mixer, model.normed(index, stream))
    outputs = mamba.scan(block.mixer, inputs)
    gate, delta = nn.functional.silu(inputs.gate), nn.functional.softplus(inputs.step)
    return Observed(inputs.step, gate, delta, outputs, stream + block.mixer.out_proj(outputs))


def remember(model: nn.Module, index: int, stream: torch.Tensor, memory: Memory | None = None) -> Memory:
    """Return what a block knows after the tokens of `stream`, the stream before it, and those of `memory`."""
    return mamba.remember(model.blocks[index].mixer, model.normed(index, stream), memory)


def advance(model: nn.Module, index: int, stream: torch.Tensor, memory: Memory) -> torch.Tensor:
    """Return the stream after a block, given that before it, for tokens that come after those of `memory`."""
    mixed = mamba.advance(model.blocks[index].mixer, model.normed(index, stream), memory)
    return stream + mixed
