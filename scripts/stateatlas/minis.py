"""Minis: small language models of the published kinds, with new weights, in the format of `transformers`.

Where `transformers` leaves a choice, the mini makes that of the published models (Pythia: rotary positions, parallel
residual, a head of its own; both Mambas: the embedding is the head).
"""

import math
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch

from stateatlas import adapters
from stateatlas.adapters import Adapter
from stateatlas.job import InputError

POSITIONS = 512  # the longest text that a Transformer takes
SPREAD = 0.06  # of a Transformer's initial weights: at 0.02, made for wider ones, a narrow one learns much more slowly
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

    They are drawn as `transformers` draws them for the family; only the positions of GPT-2 start as sinusoids.

    Raises
    ------
    InputError
        If there is no such family, or its heads do not fit into the width.
    """
    if mini.family not in FAMILIES:
        raise InputError(f"mini of family {mini.family!r}: it must be one of {', '.join(FAMILIES)}")
    attends = mini.family in ("gpt2", "gpt_neox")
    if attends and mini.heads < 1:
        raise InputError(f"mini of family {mini.family}: heads {mini.heads} must be 1 or more")
    # Rotations and sinusoids come in pairs of channels.
    whole = 2 * mini.heads if attends else HEAD_SIZE // 2 if mini.family == "mamba2" else 1
    if mini.width % whole:
        raise InputError(f"mini of family {mini.family}: width {mini.width} must be a multiple of {whole}")
    # `<bos>` is the tokenizer's only special token: a text has no end of its own.
    common = {"model_type": mini.family, "vocab_size": mini.vocabulary, "bos_token_id": 0, "eos_token_id": None}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = adapters.build(common | FAMILIES[mini.family](mini), Path(mini.family)).train()
    if mini.family == "gpt2":
        with torch.no_grad():
            model.hub.transformer.wpe.weight.copy_(SPREAD * sinusoids(POSITIONS, mini.width))
    return model


def sinusoids(positions: int, width: int) -> torch.Tensor:
    """Return sines and cosines of falling frequency (Vaswani et al. 2017), (positions, width) float64, mean
    square 1.

    As the first state of a table that is learned: looking some tokens back is then one linear map, the same at every
    position, which a small model learns in fewer steps. The slowest period is that of the table.
    """
    pairs = width // 2
    frequencies = torch.exp(torch.arange(pairs, dtype=torch.float64) * (-math.log(positions) / pairs))
    angles = torch.arange(positions)[:, None] * frequencies
    return math.sqrt(2) * torch.cat([angles.sin(), angles.cos()], dim=1)


def save(model: Adapter, tokenizer: Path, folder: Path) -> None:
    """Write a model and its tokenizer, the files in `tokenizer`, as one checkpoint that `transformers` loads."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    model.hub.save_pretrained(folder)
    for path in sorted(tokenizer.iterdir()):
        if not path.name.startswith("."):  # Snakemake puts a hidden time stamp into folders that it makes
            shutil.copyfile(path, folder / path.name)


def _gpt2(mini: Mini) -> dict:
    return {
        "n_embd": mini.width,
        "n_layer": mini.layers,
        "n_head": mini.heads,
        "n_positions": POSITIONS,
        "initializer_range": SPREAD,
    }


def _gpt_neox(mini: Mini) -> dict:
    return {
        "hidden_size": mini.width,
        "num_hidden_layers": mini.layers,
        "num_attention_heads": mini.heads,
        "intermediate_size": 4 * mini.width,
        "max_position_embeddings": POSITIONS,
        "initializer_range": SPREAD,
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
