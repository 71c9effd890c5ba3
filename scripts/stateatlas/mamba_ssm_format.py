"""Checkpoints of Mamba and Mamba-2 as the package `mamba_ssm` saves them: `config.json` and `pytorch_model.bin`.

They become what `transformers` would have saved: the same weights under the same names but one, and a config in its
words. The defaults are those of `mamba_ssm` 2.2 (`MambaConfig`, `Mamba`, `Mamba2`).
"""

import pickle
from pathlib import Path

from stateatlas.job import InputError

WEIGHTS = "pytorch_model.bin"
# What transformers' models cannot say: the only value that they compute with, by field.
FIXED = {
    "d_intermediate": 0, "attn_layer_idx": [], "rms_norm": True,
    "ssm_cfg.rmsnorm": True, "ssm_cfg.norm_before_gate": False, "ssm_cfg.D_has_hdim": False, "ssm_cfg.d_ssm": None,
}  # fmt: skip
COMMON = {"d_state": "state_size", "d_conv": "conv_kernel", "expand": "expand", "conv_bias": "use_conv_bias",
          "bias": "use_bias"}  # fmt: skip
NAMES = {
    "mamba": COMMON | {"dt_rank": "time_step_rank"},
    "mamba2": COMMON | {"headdim": "head_dim", "ngroups": "n_groups", "dt_limit": "time_step_limit"},
}
DEFAULTS = {"mamba": {"d_state": 16}, "mamba2": {"d_state": 128, "headdim": 64, "ngroups": 1}}
# They shape new weights or the speed, never what a trained model computes.
WITHOUT_EFFECT = {"layer", "dt_min", "dt_max", "dt_init", "dt_scale", "dt_init_floor", "A_init_range", "conv_init",
                  "chunk_size", "use_fast_path", "use_mem_eff_path"}  # fmt: skip


def read(folder: Path, settings: dict) -> tuple[dict, dict]:
    """Return the config as `transformers` would have it, and the weights by name.

    Raises
    ------
    InputError
        If the model has a part that `transformers` cannot express, or the weights cannot be read.
    """
    file = folder / "config.json"
    config = _config(file, settings)
    weights = {name.replace("backbone.embedding.", "backbone.embeddings."): t for name, t in _weights(folder).items()}
    embedding = weights.get("backbone.embeddings.weight")
    if embedding is None:
        raise InputError(f"{folder / WEIGHTS}: no backbone.embedding.weight; fetch the checkpoint again")
    vocabulary, multiple = settings.get("vocab_size", 50277), settings.get("pad_vocab_size_multiple", 8)
    config["vocab_size"] = padded = vocabulary + -vocabulary % multiple
    if len(embedding) != padded:
        raise InputError(
            f"{file}: vocab_size {vocabulary}, padded to {padded}, does not fit the {len(embedding)} rows of "
            f"backbone.embedding.weight; fetch the checkpoint again"
        )
    return config, weights


def _config(file: Path, settings: dict) -> dict:
    given = settings.get("ssm_cfg") or {}
    layer = given.get("layer", "Mamba1")
    if layer not in ("Mamba1", "Mamba2"):
        raise InputError(f"{file}: ssm_cfg.layer {layer!r} is not supported; choose a Mamba1 or Mamba2 model")
    family = {"Mamba1": "mamba", "Mamba2": "mamba2"}[layer]
    for field, only in FIXED.items():
        group, _, key = field.rpartition(".")
        value = (given if group else settings).get(key, only)
        if value != only and (value or only):  # None and [] say the same
            raise InputError(f"{file}: {field} {value!r} is not supported; choose a model with {field} {only!r}")
    known = NAMES[family].keys() | WITHOUT_EFFECT | {name.removeprefix("ssm_cfg.") for name in FIXED}
    if unknown := sorted(given.keys() - known):
        raise InputError(f"{file}: ssm_cfg.{unknown[0]} {given[unknown[0]]!r} is not known; choose a model without it")
    options = DEFAULTS[family] | {key: value for key, value in given.items() if key in NAMES[family]}
    config = {
        "model_type": family,
        "hidden_size": settings["d_model"],
        "num_hidden_layers": settings["n_layer"],
        "tie_word_embeddings": settings.get("tie_embeddings", True),
        "residual_in_fp32": settings.get("residual_in_fp32", True),
    } | {NAMES[family][key]: value for key, value in options.items()}
    if family == "mamba2":
        config["num_heads"] = settings["d_model"] * options.get("expand", 2) // options["headdim"]
    return config


def _weights(folder: Path) -> dict:
    import torch

    file = folder / WEIGHTS
    try:
        return torch.load(file, weights_only=True, map_location="cpu")
    except FileNotFoundError as error:
        raise InputError(f"{folder}: no {WEIGHTS}; fetch the checkpoint again") from error
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise InputError(f"{file} holds more than tensors or is damaged; fetch it from its authors again") from error
