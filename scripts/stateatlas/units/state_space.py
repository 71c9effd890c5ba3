"""The seven interventions of protocol C on mixers with a gate and a Δ, said once for Mamba and Mamba-2.

A unit has rows of the input projection that make its gate, parameters that make its Δ, and columns of the output
projection that read it. A family says which (`Places`).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize.elementwise import find_root
from torch import nn

from stateatlas.blocks.state_space import inverse_softplus
from stateatlas.units import Change, Means

OFF = -1e4  # Δ before its softplus: softplus(OFF) is exactly 0, in half precision too
LOWEST = -1.2784645427610738  # where SiLU is smallest, -.2785; it rises to the right of it


class Places(NamedTuple):
    """Where some units of a mixer are.

    units: their indices; channels: those of their channels among the inner ones; gate, step: rows of a linear map that
    make the gate and Δ; bias: the parameter that is added to Δ before its softplus, by module and name.
    """

    units: torch.Tensor
    channels: torch.Tensor
    gate: tuple[nn.Linear, torch.Tensor]
    step: tuple[nn.Linear, torch.Tensor]
    bias: tuple[nn.Module, str]


def inverse_silu(y: torch.Tensor) -> torch.Tensor:
    """Return the larger z with SiLU(z) = y, in float64; y at least -.278."""
    y = y.double().cpu().numpy()
    bracket = np.full_like(y, LOWEST), np.maximum(y, 0) + 1
    found = find_root(lambda z, y: z / (1 + np.exp(-z)) - y, bracket, args=(y,))
    return torch.from_numpy(np.asarray(found.x))


def interventions(places: Callable[[nn.Module, torch.Tensor], Places]) -> dict[str, Callable]:
    """Return the interventions of a family, given where its units are; see `units`."""

    def gate_zero(mixer: nn.Module, units: torch.Tensor, means: Means | None) -> list[Change]:
        return _constant(*places(mixer, units).gate, 0.0)

    def gate_one(mixer: nn.Module, units: torch.Tensor, means: Means | None) -> list[Change]:
        return _constant(*places(mixer, units).gate, inverse_silu(torch.ones(())).item())

    def gate_mean(mixer: nn.Module, units: torch.Tensor, means: Means | None) -> list[Change]:
        place = places(mixer, units)
        return _constant(*place.gate, _like(inverse_silu(means.gate[place.channels]), mixer))

    def delta_zero(mixer: nn.Module, units: torch.Tensor, means: Means | None) -> list[Change]:
        place = places(mixer, units)
        return [*_constant(*place.step, 0.0), Change(*place.bias, place.units, OFF)]

    def delta_mean(mixer: nn.Module, units: torch.Tensor, means: Means | None) -> list[Change]:
        place = places(mixer, units)
        value = _like(inverse_softplus(means.delta[place.units].double()), mixer)
        return [*_constant(*place.step, 0.0), Change(*place.bias, place.units, value)]

    def delta_shift(mixer: nn.Module, units: torch.Tensor, means: Means | None) -> list[Change]:
        place = places(mixer, units)
        return [Change(*place.bias, place.units, -math.log(2), add=True)]

    def output_zero(mixer: nn.Module, units: torch.Tensor, means: Means | None) -> list[Change]:
        return [Change(mixer.out_proj, "weight", (slice(None), places(mixer, units).channels), 0.0)]

    made = (gate_zero, gate_one, gate_mean, delta_zero, delta_mean, delta_shift, output_zero)
    return {function.__name__: function for function in made}


def _constant(module: nn.Linear, rows: torch.Tensor, value: torch.Tensor | float) -> list[Change]:
    """Make rows of a linear map give `value` whatever comes in."""
    changes = [Change(module, "weight", rows, 0.0)]
    if module.bias is not None or not (isinstance(value, float) and value == 0):
        changes.append(Change(module, "bias", rows, value))
    return changes


def _like(values: torch.Tensor, mixer: nn.Module) -> torch.Tensor:
    return values.to(mixer.out_proj.weight)
