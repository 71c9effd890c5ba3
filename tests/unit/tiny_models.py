"""Tiny language models with random weights, one or more of every family, made by `transformers`."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers

transformers.logging.set_verbosity_error()  # it recommends kernels for GPUs

SIZES = {"vocab_size": 23, "hidden_size": 16, "num_hidden_layers": 3, "bos_token_id": 0, "eos_token_id": 0}
HEADS = {"num_attention_heads": 4, "intermediate_size": 40, "max_position_embeddings": 128}
# name -> class of transformers, config, what differs from the family's usual form
CONFIGS = {
    "gpt2": (transformers.GPT2LMHeadModel, {"n_head": 4, "n_positions": 128}),
    "gpt2 scaled by layer": (
        transformers.GPT2LMHeadModel,
        {"n_head": 4, "n_positions": 128, "scale_attn_by_inverse_layer_idx": True},
    ),
    "gpt_neox": (transformers.GPTNeoXForCausalLM, HEADS),
    "gpt_neox sequential": (transformers.GPTNeoXForCausalLM, HEADS | {"use_parallel_residual": False}),
    "llama": (transformers.LlamaForCausalLM, HEADS),
    "llama grouped": (transformers.LlamaForCausalLM, HEADS | {"num_key_value_heads": 2, "tie_word_embeddings": True}),
    "mamba": (transformers.MambaForCausalLM, {}),
    "mamba other sizes": (
        transformers.MambaForCausalLM,
        {"state_size": 5, "conv_kernel": 3, "expand": 3, "time_step_rank": 4, "use_bias": True, "use_conv_bias": False},
    ),
    "mamba2": (
        transformers.Mamba2ForCausalLM,
        {"head_dim": 8, "num_heads": 4, "n_groups": 1, "state_size": 6, "chunk_size": 8, "tie_word_embeddings": True},
    ),
    "mamba2 grouped": (
        transformers.Mamba2ForCausalLM,
        {"head_dim": 4, "num_heads": 8, "n_groups": 2, "state_size": 6, "chunk_size": 8, "conv_kernel": 3,
         "use_bias": True, "use_conv_bias": False, "time_step_limit": (0.3, 0.9)},
    ),
}  # fmt: skip


def make(name: str):
    """Return a model that no symmetry or zero helps: all its parameters are moved."""
    hub_class, more = CONFIGS[name]
    torch.manual_seed(0)
    hub = hub_class(hub_class.config_class(**SIZES | more)).eval()
    with torch.no_grad():
        for parameter in hub.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return hub


def save(name: str, folder):
    """Write a model and return (model, folder)."""
    hub = make(name)
    hub.save_pretrained(folder)
    return hub, folder


def tokens(batch=3, length=21):
    """Draw (batch, length) int64 tokens; `<bos>` comes first."""
    drawn = torch.randint(1, SIZES["vocab_size"], (batch, length), generator=torch.Generator().manual_seed(0))
    drawn[:, 0] = SIZES["bos_token_id"]
    return drawn
