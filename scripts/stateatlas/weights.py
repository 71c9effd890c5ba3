"""Model directories in the `save_pretrained` layout: `config.json` and `model.safetensors`."""

import importlib
import json
from pathlib import Path

from safetensors.torch import load_file, save_file

from stateatlas.residual import Residual, ResidualModel, Shape


def save(model: Residual, folder: Path) -> None:
    """Write the model's config and weights."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(model.config, indent=1, sort_keys=True) + "\n")
    save_file(
        {name: tensor.contiguous() for name, tensor in model.state_dict().items()},
        folder / "model.safetensors",
    )


def load(folder: Path) -> Residual:
    """Read a model, formal or fine-tuned, for evaluation."""
    config = json.loads((folder / "config.json").read_text())
    if "fine_tuning" in config:
        # Loaded by name, so that its code is not part of the formal models' results.
        model = importlib.import_module("stateatlas.finetuned").from_config(config, folder)
    else:
        model = ResidualModel(Shape(**config))
    model.load_state_dict(load_file(folder / "model.safetensors"))
    return model.eval().requires_grad_(False)


def use_backend(cfg: dict) -> None:
    """Choose the form of the recurrences for the model of a cell: a formal `block` or the `family` of a tuned one."""
    kind = "adapters" if "family" in cfg else "blocks"
    package = importlib.import_module(f"stateatlas.{kind}")
    package.use_backend(cfg.get("family") or cfg["block"], cfg.get("backend"))
