"""Pretraining of the minis: next-token prediction on packed windows for a fixed number of steps."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import nn

from stateatlas import packing
from stateatlas.descent import Descent, Share
from stateatlas.memory import in_parts


@dataclass(frozen=True)
class Recipe:
    """How a mini is trained: AdamW on `steps` batches of (batch, length) tokens, each an update.

    The learning rate warms up for `warmup` steps and falls to 0 along half a cosine. The loss on held-out windows is
    measured every `evaluate_every` steps; no step depends on it.
    """

    steps: int
    batch: int
    length: int
    learning_rate: float
    betas: tuple[float, float]
    weight_decay: float
    warmup: int
    clip: float
    evaluate_every: int


def learning_rate(step: int, recipe: Recipe) -> float:
    """Linear warm-up, then half a cosine down to 0 at the last step."""
    if step < recipe.warmup:
        return recipe.learning_rate * (step + 1) / recipe.warmup
    done = (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
    return recipe.learning_rate * (1 + math.cos(math.pi * done)) / 2


def next_token_loss(model: nn.Module, windows: torch.Tensor) -> torch.Tensor:
    """Return the mean nats of the tokens after the first; windows (n, length) int64.

    While it is trained on a GPU, the model computes in bfloat16 where that is precise enough; everything that is
    measured is measured in float32.
    """
    mixed = model.training and windows.device.type == "cuda"
    with torch.autocast(windows.device.type, torch.bfloat16, enabled=mixed):
        logits = model(windows[:, :-1])
    return nn.functional.cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())


def text_share(model: nn.Module, windows: torch.Tensor, weight: float = 1.0) -> tuple[Share, int]:
    """Return `weight` times `next_token_loss`, and itself, as what an update takes, with the number of windows."""

    def share(part: slice) -> tuple[torch.Tensor, torch.Tensor]:
        rows = windows[part]
        loss = next_token_loss(model, rows) * (len(rows) / len(windows))
        return weight * loss, loss.detach()

    return share, len(windows)


@torch.no_grad()
def held_out_loss(model: nn.Module, windows: np.ndarray, batch: int) -> float:
    """Return the mean nats of the tokens after the first over (n, length) windows, `batch` at a time."""
    device = next(model.parameters()).device

    def lost(part: slice) -> float:
        return next_token_loss(model, as_tokens(windows[part], device)).item() * len(windows[part])

    model.eval()
    total = sum(in_parts(lost, len(windows), batch))
    model.train()
    return total / len(windows)


def as_tokens(windows: np.ndarray, device: torch.device) -> torch.Tensor:
    """Return uint16 windows as int64 on `device`: torch has few operations on uint16."""
    return torch.from_numpy(windows.astype(np.int64)).to(device)


class Trainer:
    """A pretraining in progress. `state()` and `restore()` are what a checkpoint holds.

    `model` maps (batch, length) int64 tokens to (batch, length, vocabulary) logits; `root` and `names` name the
    stream of training batches; `validation` is (n, length) uint16.
    """

    def __init__(
        self,
        model: nn.Module,
        documents: Sequence[np.ndarray],
        recipe: Recipe,
        validation: np.ndarray,
        root: int,
        names: tuple,
    ):
        self.model, self.recipe, self.validation = model, recipe, validation
        self.descent = Descent(model, recipe)
        self.batches = lambda: packing.batches(documents, recipe.batch, recipe.length, root, names)
        self.step = 0
        self.history: list[dict] = []

    def state(self) -> dict:
        return {
            "descent": self.descent.state(),
            "step": self.step,
            "history": self.history,
        }

    def restore(self, state: dict) -> None:
        self.descent.restore(state["descent"])
        self.step, self.history = state["step"], state["history"]

    def run(self) -> Iterator[None]:
        """Train to the last step, yielding after every step."""
        for windows in islice(self.batches(), self.step, self.recipe.steps):
            loss = self.update(windows)
            self.step += 1
            if self.step % self.recipe.evaluate_every == 0 or self.step == self.recipe.steps:
                self.evaluate(loss)
            yield

    def update(self, windows: np.ndarray) -> float:
        tokens = as_tokens(windows, next(self.model.parameters()).device)
        [(loss, _)] = self.descent.update(learning_rate(self.step, self.recipe), text_share(self.model, tokens))
        return loss.item()

    def progress(self) -> str:
        known = [row["value"] for row in self.history if row["metric"] == "validation_nats"]
        return f"validation {f'{known[-1]:.3f} nats a token' if known else 'not measured yet'}"

    def evaluate(self, loss: float) -> None:
        validation = held_out_loss(self.model, self.validation, self.recipe.batch)
        for metric, value in (("train_nats", loss), ("validation_nats", validation)):
            self.history.append({"step": self.step, "metric": metric, "value": value})
