"""GPT-2 (Radford et al. 2019)."""

import torch
from torch import nn
from transformers import GPT2LMHeadModel

from stateatlas.adapters import Adapter
from stateatlas.adapters.attention import mask


class Model(Adapter):
    """Learned positions come in at the embedding; there are no more of them than the table has rows."""

    Hub = GPT2LMHeadModel
    attends = True

    @property
    def blocks(self) -> nn.ModuleList:
        return self.hub.transformer.h

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        positions = self.hub.transformer.wpe.weight
        if tokens.shape[1] > len(positions):
            raise ValueError(f"{tokens.shape[1]} tokens: this model has {len(positions)} positions")
        return self.hub.transformer.wte(tokens) + positions[: tokens.shape[1]]

    def block(self, index: int, stream: torch.Tensor) -> torch.Tensor:
        return self.blocks[index](stream, attention_mask=mask(self.hub, stream))

    def norm(self, stream: torch.Tensor) -> torch.Tensor:
        return self.hub.transformer.ln_f(stream)
