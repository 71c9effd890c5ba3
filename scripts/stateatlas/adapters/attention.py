"""What the Transformers among the adapters share.

Importing this registers an attention "math" with `transformers`: its "sdpa" in the form that has forward derivatives
and all digits in float64 (its "eager" takes the softmax in float32, in some families).
"""

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import create_causal_mask, sdpa_mask


def _math(*inputs, **options):
    with sdpa_kernel(SDPBackend.MATH):
        return sdpa_attention_forward(*inputs, **options)


AttentionInterface.register("math", _math)
AttentionMaskInterface.register("math", sdpa_mask)


def mask(hub: nn.Module, stream: torch.Tensor) -> torch.Tensor | None:
    """Return the causal mask in the form that the model's attention wants it, or None where it masks by itself."""
    return create_causal_mask(
        config=hub.config, inputs_embeds=stream, attention_mask=None, cache=None, position_ids=None
    )


def rotations(embedding: nn.Module, stream: torch.Tensor, start: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cosines and sines of the rotary positions from `start` on, (1, length, rotated) each."""
    positions = torch.arange(start, start + stream.shape[1], device=stream.device)
    return embedding(stream, position_ids=positions[None])
