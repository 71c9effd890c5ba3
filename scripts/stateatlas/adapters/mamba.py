"""Mamba (Gu & Dao 2023, arXiv 2312.00752): the parameters of `transformers`, the recurrence of ours."""

from typing import ClassVar

import torch
from torch import nn
from transformers import MambaForCausalLM

from stateatlas.adapters import Adapter
from stateatlas.blocks.mamba import mix
from stateatlas.kernels import rms_norm, use


class Model(Adapter):
    """Every block is a norm and a mixer; its sizes and biases are those of the checkpoint."""

    Hub = MambaForCausalLM
    attends = False
    supported: ClassVar = {"hidden_act": ("silu", "swish")}
    use_backend = staticmethod(use)

    @property
    def blocks(self) -> nn.ModuleList:
        return self.hub.backbone.layers

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.hub.backbone.embeddings(tokens)

    def block(self, index: int, stream: torch.Tensor) -> torch.Tensor:
        return stream + mix(self.blocks[index].mixer, self.normed(index, stream))

    def normed(self, index: int, stream: torch.Tensor) -> torch.Tensor:
        """Return the stream as the mixer of a block reads it."""
        norm = self.blocks[index].norm
        return rms_norm(stream, norm.weight, norm.variance_epsilon)

    def norm(self, stream: torch.Tensor) -> torch.Tensor:
        norm = self.hub.backbone.norm_f
        return rms_norm(stream, norm.weight, norm.variance_epsilon)
