"""Minis: small language models of the published kinds, as ordinary `transformers` models with new weights.

Where `transformers` has a choice that the published models made (Pythia: rotary positions, parallel residual,
untied read-out; both Mambas: tied), the mini makes the same.
"""

from dataclasses import dataclass

import torch
from transformers import AutoModelForCausalLM, GPT2Config, GPTNeoXConfig, Mamba2Config, MambaConfig, PreTrainedModel

from stateatlas.job import InputError

POSITIONS = 512  # the longest text that a model with positions takes
HEAD_SIZE = 16  # Mamba-2: small heads, so that a small model has 64
STATE_SIZE = {"mamba": 16, "mamba2": 32}


@dataclass(frozen=True)
class Mini:
    """The size of a mini. `kind` is a `model_type` of `transformers`; `heads` counts attention heads in a layer,
    and is 0 for Mamba (whose units are channels) and Mamba-2 (which has width / 8 heads in a layer)."""

    kind: str
    width: int
    layers: int
    heads: int
    vocabulary: int


def build(mini: Mini, seed: int) -> PreTrainedModel:
    """Return the mini with initial weights that depend on `seed` and its size alone.

    The weights are drawn as `transformers` draws them for this kind of model.

    Raises
    ------
    InputError
        If there is no such kind, or if the heads do not divide the width.
    """
    config = _config(mini)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def _config(mini: Mini):
    if mini.heads and mini.width % mini.heads:
        raise InputError(f"{mini.kind}: {mini.heads} heads do not divide the width {mini.width}; change one of them")
    size = {"vocab_size": mini.vocabulary, "hidden_size": mini.width, "num_hidden_layers": mini.layers}
    # The tokenizer's only special token; a text has no end of its own.
    special = {"bos_token_id": 0, "eos_token_id": None, "pad_token_id": None}
    match mini.kind:
        case "gpt2":
            return GPT2Config(
                **size,
                **special,
                num_attention_heads=mini.heads,
                n_positions=POSITIONS,
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
            )
        case "gpt_neox":
            return GPTNeoXConfig(
                **size,
                **special,
                num_attention_heads=mini.heads,
                intermediate_size=4 * mini.width,
                max_position_embeddings=POSITIONS,
                # All of a small head: Pythia's quarter would leave two channels.
                rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
            )
        case "mamba":
            return MambaConfig(**size, **special, state_size=STATE_SIZE["mamba"])
        case "mamba2":
            return Mamba2Config(
                **size,
                **special,
                state_size=STATE_SIZE["mamba2"],
                head_dim=HEAD_SIZE,
                num_heads=2 * mini.width // HEAD_SIZE,
                n_groups=1,
                chunk_size=64,
                tie_word_embeddings=True,
            )
    raise InputError(f"kind {mini.kind!r}: there are gpt2, gpt_neox, mamba and mamba2; name one of them")
