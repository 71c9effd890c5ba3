"""A language model of study B with its prompts, in float64 and in a form that has forward derivatives."""

import logging
from pathlib import Path

import torch
from transformers.activations import NewGELUActivation

from stateatlas import adapters, annotation, pretrained, prompts
from stateatlas.canonical import ROOT
from stateatlas.field import Field
from stateatlas.packing import Documents
from stateatlas.seeds import stream

log = logging.getLogger(__name__)


def load(weights: Path, device: str) -> adapters.Adapter:
    """Return a model in float64, in a form that has forward derivatives."""
    return fused(adapters.load(weights, attention="math").double()).to(device)


def fused(model: adapters.Adapter) -> adapters.Adapter:
    """Return the model with torch's form of GPT-2's activation: spelt out, it takes a quarter of the time."""
    for module in list(model.hub.modules()):
        for name, child in module.named_children():
            if isinstance(child, NewGELUActivation):
                setattr(module, name, torch.nn.GELU("tanh"))
    return model


def untrained(weights: Path, seed: int, device: str) -> adapters.Adapter:
    """Return a model of the same config with new weights, in float64."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = adapters.build(pretrained.read(weights)[0], weights)
    return fused(model.eval().requires_grad_(False).double()).to(device)


def fields(cfg: dict, model: adapters.Adapter, weights: Path, tokens: Path | None) -> tuple[list[Field], dict]:
    """Return the model's prompts, and how many of every set did not fit: from held-out text where there is a file of
    token ids, else from the templates."""
    if tokens is not None:
        place = stream(cfg["root_seed"], "response", "prompts")  # the same windows for every model
        chosen = prompts.from_text(model, Documents(tokens).get("test"), cfg["prompts"], cfg["length"], place)
        skipped = {"held_out": 0}
    else:
        pairs = prompts.written(ROOT / "data/prompts.yaml")
        bos = model.hub.config.bos_token_id
        chosen, skipped = prompts.from_templates(pairs, annotation.tokenizer(weights), bos)
    log.info("%d prompts; skipped: %s", len(chosen), skipped)
    return [Field(model, prompt) for prompt in chosen], skipped


def cell(cfg: dict) -> dict:
    """Return the identity columns that all tables of a model share."""
    known = {key: cfg[key] for key in ("architecture", "family")}
    return {"study": "response", "model": "trained", "seed": 0} | known
