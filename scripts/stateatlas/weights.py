"""Model directories in the `save_pretrained` layout: `config.json` and `model.safetensors`."""

import json
from dataclasses import asdict
from pathlib import Path

from safetensors.torch import load_file, save_file

from stateatlas.residual import ResidualModel, Shape


def save(model: ResidualModel, folder: Path) -> None:
    """Write the model's shape and weights."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(asdict(model.shape), indent=1, sort_keys=True) + "\n")
    save_file(
        {name: tensor.contiguous() for name, tensor in model.state_dict().items()},
        folder / "model.safetensors",
    )


def load(folder: Path) -> ResidualModel:
    """Read a model for evaluation."""
    model = ResidualModel(Shape(**json.loads((folder / "config.json").read_text())))
    model.load_state_dict(load_file(folder / "model.safetensors"))
    return model.eval().requires_grad_(False)
