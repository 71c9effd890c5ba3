"""GPT-NeoX (Black et al. 2022, arXiv 2204.06745), the family of Pythia."""

import torch
from torch import nn
from transformers import GPTNeoXForCausalLM

from stateatlas.adapters import Adapter
from stateatlas.adapters.attention import mask, rotations


class Model(Adapter):
    """Positions come in as rotations inside the attention; attention and MLP may read the same stream."""

    Hub = GPTNeoXForCausalLM
    attends = True

    @property
    def blocks(self) -> nn.ModuleList:
        return self.hub.gpt_neox.layers

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.hub.gpt_neox.embed_in(tokens)

    def block(self, index: int, stream: torch.Tensor) -> torch.Tensor:
        positions = rotations(self.hub.gpt_neox.rotary_emb, stream)
        return self.blocks[index](stream, attention_mask=mask(self.hub, stream), position_embeddings=positions)

    def norm(self, stream: torch.Tensor) -> torch.Tensor:
        return self.hub.gpt_neox.final_layer_norm(stream)
