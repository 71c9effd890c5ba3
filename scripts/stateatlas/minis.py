"""Minis: small language models of the published kinds, with new weights, in the format of `transformers`.

Where `transformers` leaves a choice, the mini makes that of the published models (Pythia: rotary positions, parallel
residual, a head of its own; both Mambas: the embedding is the head).
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import torch

from stateatlas import adapters
from stateatlas.adapters import Adapter
from stateatlas.job import InputError

POSITIONS = 512  # the longest text that a Transformer takes
HEAD_SIZE = 16  # Mamba-2: small heads, so that a small model has 64 of them


@dataclass(frozen=True)
class Mini:
    """The size of a mini.

    family: its `model_type`: gpt2, gpt_neox, mamba or mamba2. heads: of every attention; 0 for Mamba, whose units are
    channels, and for Mamba-2, which has one head for 8 channels of the stream.
    """

    family: str
    width: int
    layers: int
    heads: int
    vocabulary: int


def build(mini: Mini, seed: int) -> Adapter:
    """Return a mini ready to be trained; its weights depend on its size and `seed` alone.

    They are drawn as `transformers` draws them for the family.

    Raises
    ------
    InputError
        If there is no such family, or the width is no multiple of the heads.
    """
    if mini.family not in FAMILIES:
        raise InputError(f"mini of family {mini.family!r}: it must be one of {', '.join(FAMILIES)}")
    heads = mini.heads or (8 if mini.family == "mamba2" else 1)
    if mini.width % heads:
        raise InputError(f"mini of family {mini.family}: width {mini.width} must be a multiple of {heads}")
    # `<bos>` is the tokenizer's only special token: a text has no end of its own.
    common = {"model_type": mini.family, "vocab_size": mini.vocabulary, "bos_token_id": 0, "eos_token_id": None}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return adapters.build(common | FAMILIES[mini.family](mini), Path(mini.family)).train()


def save(model: Adapter, tokenizer: Path, folder: Path) -> None:
    """Write a model and its tokenizer, the files in `tokenizer`, as one checkpoint that `transformers` loads."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    model.hub.save_pretrained(folder)
    for path in sorted(tokenizer.iterdir()):
        if not path.name.startswith("."):  # Snakemake puts a hidden time stamp into folders that it makes
            shutil.copyfile(path, folder / path.name)


def _gpt2(mini: Mini) -> dict:
    return {"n_embd": mini.width, "n_layer": mini.layers, "n_head": mini.heads, "n_positions": POSITIONS}


def _gpt_neox(mini: Mini) -> dict:
    return {
        "hidden_size": mini.width,
        "num_hidden_layers": mini.layers,
        "num_attention_heads": mini.heads,
        "intermediate_size": 4 * mini.width,
        "max_position_embeddings": POSITIONS,
        # All of a small head turns: Pythia's quarter would leave it two channels or four.
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
    }


def _mamba(mini: Mini) -> dict:
    return {"hidden_size": mini.width, "num_hidden_layers": mini.layers, "state_size": 16, "pad_token_id": None}


def _mamba2(mini: Mini) -> dict:
    return {
        "hidden_size": mini.width,
        "num_hidden_layers": mini.layers,
        "state_size": 32,
        "head_dim": HEAD_SIZE,
        "num_heads": 2 * mini.width // HEAD_SIZE,
        "n_groups": 1,
        "chunk_size": 64,
        "tie_word_embeddings": True,
        "pad_token_id": None,
    }


FAMILIES = {"gpt2": _gpt2, "gpt_neox": _gpt_neox, "mamba": _mamba, "mamba2": _mamba2}
