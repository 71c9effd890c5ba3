"""Llama (Touvron et al. 2023, arXiv 2302.13971)."""

import torch
from torch import nn
from torch.nn.functional import rms_norm
from transformers import LlamaForCausalLM

from stateatlas.adapters import Adapter
from stateatlas.adapters.attention import mask, rotations


class Model(Adapter):
    """Positions come in as rotations inside the attention."""

    Hub = LlamaForCausalLM
    attends = True

    @property
    def blocks(self) -> nn.ModuleList:
        return self.hub.model.layers

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.hub.model.embed_tokens(tokens)

    def block(self, index: int, stream: torch.Tensor) -> torch.Tensor:
        layer = self.blocks[index]
        attended, _ = layer.self_attn(
            _normed(layer.input_layernorm, stream),
            attention_mask=mask(self.hub, stream),
            position_embeddings=rotations(self.hub.model.rotary_emb, stream),
        )
        stream = stream + attended
        return stream + layer.mlp(_normed(layer.post_attention_layernorm, stream))

    def norm(self, stream: torch.Tensor) -> torch.Tensor:
        return _normed(self.hub.model.norm, stream)


def _normed(norm: nn.Module, stream: torch.Tensor) -> torch.Tensor:
    # Not the module itself: it computes in float32 whatever the model is in.
    return rms_norm(stream, norm.weight.shape, norm.weight, norm.variance_epsilon)
