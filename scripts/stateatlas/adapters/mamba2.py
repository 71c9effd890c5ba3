"""Mamba-2 (Dao & Gu 2024, arXiv 2405.21060): the parameters of `transformers`, the recurrence of ours."""

from typing import ClassVar

import torch
from torch import nn
from transformers import Mamba2ForCausalLM

from stateatlas.adapters import Adapter
from stateatlas.blocks.mamba2 import mix
from stateatlas.kernels import rms_norm, use


class Model(Adapter):
    """Every block is a norm and a mixer; sizes, groups, biases and limits of Δ are those of the checkpoint."""

    Hub = Mamba2ForCausalLM
    attends = False
    supported: ClassVar = {"hidden_act": ("silu", "swish")}
    use_backend = staticmethod(use)

    @property
    def blocks(self) -> nn.ModuleList:
        return self.hub.backbone.layers

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.hub.backbone.embeddings(tokens)

    def block(self, index: int, stream: torch.Tensor) -> torch.Tensor:
        return stream + mix(self.blocks[index].mixer, self.normed(index, stream), *self.options)

    def normed(self, index: int, stream: torch.Tensor) -> torch.Tensor:
        """Return the stream as the mixer of a block reads it."""
        norm = self.blocks[index].norm
        return rms_norm(stream, norm.weight, norm.variance_epsilon)

    @property
    def options(self) -> tuple:
        """What `mix` cannot read off a mixer: the norm's epsilon, the groups and the limits of Δ."""
        config = self.hub.config
        return config.layer_norm_epsilon, config.n_groups, config.time_step_limit

    def norm(self, stream: torch.Tensor) -> torch.Tensor:
        norm = self.hub.backbone.norm_f
        return rms_norm(stream, norm.weight, norm.variance_epsilon)
