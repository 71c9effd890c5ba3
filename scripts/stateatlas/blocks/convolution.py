"""The causal convolution of Mamba and Mamba-2, also for tokens that come after others."""

import torch
from torch import nn

from stateatlas.kernels import conv_silu


def convolved(conv: nn.Conv1d | None, x: torch.Tensor, tail: torch.Tensor | None = None) -> torch.Tensor:
    """Return SiLU of the convolution of x, (batch, length, channels); without a convolution, SiLU of x.

    tail: what came before x, (batch, size - 1, channels), in place of zeros.
    """
    if conv is None:
        return nn.functional.silu(x)
    if tail is None:
        return conv_silu(x, conv.weight, conv.bias)
    return conv_silu(torch.cat([tail, x], dim=1), conv.weight, conv.bias)[:, tail.shape[1] :]


def tail_of(conv: nn.Conv1d | None, x: torch.Tensor, tail: torch.Tensor | None = None) -> torch.Tensor:
    """Return what a convolution still reads when more tokens come, (batch, size - 1, channels).

    tail: what came before x; without it, zeros.
    """
    size = 0 if conv is None else conv.weight.shape[2] - 1
    before = x.new_zeros(len(x), size, x.shape[2]) if tail is None else tail
    return torch.cat([before, x], dim=1)[:, x.shape[1] :]
