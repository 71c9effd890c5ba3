"""Causal multi-head self-attention, as in GPT-2 (Radford et al. 2019)."""

import torch
from torch import nn


class Mixer(nn.Module):
    """Four heads; learned positions come in at the embedding."""

    Norm = nn.LayerNorm
    positions = True
    heads = 4

    def __init__(self, width: int):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (batch, heads, length, head width)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))
