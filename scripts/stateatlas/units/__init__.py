"""Units: the channels of Mamba, the heads of Mamba-2 and of attention, and interventions on them (protocol C).

An intervention is an edit of parameters, not a hook: it acts on every kernel, also where one call does the whole
mixer. It holds inside `intervened` and is taken back exactly, bit for bit, also after an exception.

A family module `units/<family>.py`, named like the `model_type` of its checkpoints, defines

- `mixer(block)`: the part of a block that holds its units;
- `number(mixer)`: how many there are;
- `output(mixer)`: the linear map that reads their outputs;
- `observe(model, index, stream)`: what its units do in one block, an `Observed`;
- `remember(model, index, stream, memory=None)` and `advance(model, index, stream, memory)`: what a block knows after
  some tokens, and the block on tokens that come after others, which it does not run again;
- `REMEMBERS_CHEAPLY`: whether `remember` costs clearly less than the block;
- `INTERVENTIONS`: name -> function(mixer, units, means), which returns the changes of parameters.
"""

import contextlib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from stateatlas.interventions import NAMES

Units = dict[int, list[int]]  # block -> its units


class Observed(NamedTuple):
    """What the units of one block do, (batch, length, ...) each.

    signal: (units), Δ before its softplus, or the attention that a token receives; gate: (inner), SiLU(z), empty
    without a gate; delta: (units), Δ, empty without one; output: (inner), as the output projection reads it; stream:
    the stream after the block.
    """

    signal: torch.Tensor
    gate: torch.Tensor
    delta: torch.Tensor
    output: torch.Tensor
    stream: torch.Tensor


@dataclass(frozen=True)
class Change:
    """New values of `getattr(module, name)[index]`; a bias that is None is made, of zeros, first.

    With `add` the values are added to what is there.
    """

    module: nn.Module
    name: str
    index: object
    value: torch.Tensor | float
    add: bool = False


def family(name: str):
    """Return the module of a family, loaded by name, so that one family's code is not part of another's results."""
    return importlib.import_module(f"stateatlas.units.{name}")


def output_weights(model: nn.Module) -> list[np.ndarray]:
    """Return what reads the units of every block, (width, inner) float64 each."""
    kind = family(model.family)
    maps = (kind.output(kind.mixer(block)).weight for block in model.blocks)
    return [weight.detach().double().cpu().numpy() for weight in maps]


def applicable(name: str, intervention: str) -> bool:
    """Return whether an intervention has a meaning in a family."""
    if intervention not in NAMES:
        raise ValueError(f"intervention {intervention!r}: it must be one of {', '.join(NAMES)}")
    return intervention in family(name).INTERVENTIONS


@contextlib.contextmanager
def intervened(model: nn.Module, name: str, intervention: str, units: Units, means: dict) -> Iterator[None]:
    """Let an intervention on some units of a model hold inside the block. Interventions may be nested.

    model: anything with `blocks`; name: its family; means: block -> `Means` of the reference tokens, which the
    interventions with `mean` in their name read.

    Raises
    ------
    ValueError
        If the family has no such intervention, or a block no such unit.
    """
    if not applicable(name, intervention):
        raise ValueError(f"{intervention} is not applicable to {name}")
    kind = family(name)
    changes = []
    for block, chosen in units.items():
        mixer = kind.mixer(model.blocks[block])
        known = kind.number(mixer)
        if wrong := [unit for unit in chosen if not 0 <= unit < known]:
            raise ValueError(f"block {block} has the units 0 to {known - 1}, not {wrong}")
        if chosen:
            index = torch.tensor(sorted(set(chosen)))
            changes += kind.INTERVENTIONS[intervention](mixer, index, means.get(block))
    with changed(changes):
        yield


class Means(NamedTuple):
    """Means over the reference tokens of one block: SiLU(z) and the output of every channel (inner), Δ (units)."""

    gate: torch.Tensor
    delta: torch.Tensor
    output: torch.Tensor


@contextlib.contextmanager
def changed(changes: list[Change]) -> Iterator[None]:
    """Let changes of parameters hold inside the block, and take them back."""
    undo = []
    try:
        with torch.no_grad():
            for change in changes:
                parameter = getattr(change.module, change.name)
                if parameter is None:
                    weight = change.module.weight
                    parameter = nn.Parameter(weight.new_zeros(weight.shape[0]), requires_grad=False)
                    setattr(change.module, change.name, parameter)
                    undo.append((change, None))
                else:
                    undo.append((change, parameter[change.index].clone()))
                if change.add:
                    parameter[change.index] += change.value
                else:
                    parameter[change.index] = change.value
        yield
    finally:
        with torch.no_grad():
            for change, before in reversed(undo):
                if before is None:
                    setattr(change.module, change.name, None)
                else:
                    getattr(change.module, change.name)[change.index] = before
