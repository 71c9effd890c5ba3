"""What Mamba and Mamba-2 share: the inputs of their recurrences, and the initial step sizes Δ."""

import math
from typing import NamedTuple

import torch


class Inputs(NamedTuple):
    """What the recurrence of a mixer reads, (batch, length, ...) each.

    `raw` is what the convolution reads, (convolved), `u` and `gate` are (inner), `step` is Δ before its softplus,
    (units), `b` and `c` are (states of all groups).
    """

    raw: torch.Tensor
    u: torch.Tensor
    step: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor
    gate: torch.Tensor


class Memory(NamedTuple):
    """What a mixer knows of the tokens so far.

    tail: what its convolution still reads, (batch, size - 1, convolved); state: (batch, inner, states).
    """

    tail: torch.Tensor
    state: torch.Tensor


def final_state(
    u: torch.Tensor, delta: torch.Tensor, a: torch.Tensor, b: torch.Tensor, before: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the state after the last token, (batch, inner, states), given that `before` the first; without it, 0.

    u, delta: (batch, length, inner); a: (inner, states or 1); b: (batch, length, states). The exponents are sums
    of what comes after a token and so never positive.
    """
    total = delta.cumsum(dim=1)
    kept = torch.exp((total[:, -1:] - total)[..., None] * a)  # (batch, length, inner, states)
    state = torch.einsum("blin,bli,bln->bin", kept, delta * u, b)
    return state if before is None else state + torch.exp(total[:, -1, :, None] * a) * before


def recalled(state: torch.Tensor, delta: torch.Tensor, a: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Return what new tokens read of an earlier state, (batch, length, inner); shapes as in `final_state`."""
    kept = torch.exp(delta.cumsum(dim=1)[..., None] * a)
    return torch.einsum("blin,bin,bln->bli", kept, state, c)


def log_uniform_step(units: int, low: float = 1e-3, high: float = 0.1) -> torch.Tensor:
    """Draw the initial Δ of every unit, log-uniform in [low, high] (Mamba, section 3.6)."""
    return torch.exp(torch.rand(units) * (math.log(high) - math.log(low)) + math.log(low)).clamp(min=1e-4)


def inverse_softplus(x: torch.Tensor) -> torch.Tensor:
    """Return y with softplus(y) = x, for x > 0."""
    return x + torch.log(-torch.expm1(-x))
