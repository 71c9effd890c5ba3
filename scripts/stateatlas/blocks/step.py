"""Initial step sizes Δ, shared by Mamba and Mamba-2."""

import math

import torch


def log_uniform_step(units: int, low: float = 1e-3, high: float = 0.1) -> torch.Tensor:
    """Draw the initial Δ of every unit, log-uniform in [low, high] (Mamba, section 3.6)."""
    return torch.exp(torch.rand(units) * (math.log(high) - math.log(low)) + math.log(low)).clamp(min=1e-4)


def inverse_softplus(x: torch.Tensor) -> torch.Tensor:
    """Return y with softplus(y) = x, for x > 0."""
    return x + torch.log(-torch.expm1(-x))
