"""Training on a formal task (protocol A): one recipe for every architecture.

Every batch has its own named stream, so a resumed training draws the batches that an undisturbed one draws.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from stateatlas.coverage import Coverage
from stateatlas.descent import Descent
from stateatlas.memory import in_parts
from stateatlas.residual import Residual, ResidualModel
from stateatlas.seeds import stream
from stateatlas.sequences import sampler


@dataclass(frozen=True)
class Recipe:
    """How a model is trained; the same for every architecture of a task.

    `curriculum` is the length to start at, or 0 for the full length from the first step on: the length grows by one
    whenever the accuracy at the last position (a moving average) passes `advance`. `steps` is the cap. A
    training ends when validation accuracy is `stop_accuracy` or more in `stops` evaluations in a row.
    """

    steps: int
    batch: int
    learning_rate: float
    betas: tuple[float, float]
    weight_decay: float
    warmup: int
    decay: float
    clip: float
    embedding_std: float
    curriculum: int
    advance: float
    evaluate_every: int
    stop_accuracy: float
    stops: int


def initialise(shape, recipe: Recipe, seed: int) -> ResidualModel:
    """Return a model with initial weights that depend on `seed` and the shape alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = ResidualModel(shape)
        nn.init.normal_(model.embedding.weight, std=recipe.embedding_std)
        if model.position is not None:
            nn.init.normal_(model.position.weight, std=recipe.embedding_std)
    return model


class Batches:
    """Training sequences, drawn online and rejected where they stand in a held-out file."""

    def __init__(self, task, recipe: Recipe, held_out: list[np.ndarray], root: int, names: tuple):
        self.task, self.recipe, self.root, self.names = task, recipe, root, names
        self.sample = sampler(task, "train")
        self.held_out = {row.tobytes() for tokens in held_out for row in tokens.astype(np.uint8)}

    def draw(self, step: int, length: int) -> np.ndarray:
        """Return the (batch, length) int64 tokens of one step."""
        rng = stream(self.root, *self.names, "batch", step)
        tokens = self.sample(rng, self.recipe.batch, length)
        while seen := [i for i, row in enumerate(tokens.astype(np.uint8)) if row.tobytes() in self.held_out]:
            tokens[seen] = self.sample(rng, len(seen), length)
        return tokens


def learning_rate(step: int, recipe: Recipe) -> float:
    """Linear warm-up, then linear to `decay` times the peak at the cap."""
    if step < recipe.warmup:
        return recipe.learning_rate * (step + 1) / recipe.warmup
    done = (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
    return recipe.learning_rate * (1 - (1 - recipe.decay) * done)


@torch.no_grad()
def accuracy(model: Residual, tokens: np.ndarray, states: np.ndarray, batch: int = 256) -> float:
    """Mean token accuracy over (n, length) sequences."""
    device = next(model.parameters()).device

    def right(part: slice) -> int:
        logits = model(torch.from_numpy(tokens[part]).to(device))
        return int((logits.argmax(-1).cpu().numpy() == states[part]).sum())

    return sum(in_parts(right, len(tokens), batch)) / states.size


class Trainer:
    """A training in progress. `state()` and `restore()` are what a checkpoint holds."""

    def __init__(self, model: Residual, batches: Batches, recipe: Recipe, validation: tuple, test: np.ndarray):
        self.model, self.batches, self.recipe, self.validation = model, batches, recipe, validation
        self.descent = Descent(model, recipe)
        self.coverage = Coverage(test)  # counted only: nothing is chosen by it
        self.full = validation[0].shape[1]
        self.step, self.streak = 0, 0
        self.stop: dict | None = None  # step and weights at the stop
        self.length = recipe.curriculum or self.full
        self.last_position = 0.0  # moving average of the accuracy at the last position
        self.history: list[dict] = []

    def state(self) -> dict:
        return {
            "descent": self.descent.state(),
            "progress": [self.step, self.streak, self.length, self.last_position],
            "stop": self.stop,
            "seen": torch.from_numpy(self.coverage.seen),
            "history": self.history,
        }

    def restore(self, state: dict) -> None:
        self.descent.restore(state["descent"])
        self.step, self.streak, self.length, self.last_position = state["progress"]
        self.stop, self.history = state["stop"], state["history"]
        self.coverage.seen = state["seen"].numpy()

    def run(self, to_cap: bool) -> Iterator[None]:
        """Train to the stop, or past it to the cap, yielding after every step."""
        while self.step < self.recipe.steps and (to_cap or self.stop is None):
            loss = self.update()
            self.step += 1
            if self.step % self.recipe.evaluate_every == 0 or self.step == self.recipe.steps:
                self.evaluate(loss)
            yield

    def update(self) -> float:
        device = next(self.model.parameters()).device
        tokens = self.batches.draw(self.step, self.length)
        if self.stop is None:
            self.coverage.add(tokens)
        states = torch.from_numpy(self.batches.task.label(tokens)["state"]).to(device)
        read = torch.from_numpy(tokens).to(device)

        def share(part: slice) -> tuple[torch.Tensor, ...]:
            logits, wanted = self.model(read[part]), states[part]
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
            return loss * (len(wanted) / len(read)), (logits[:, -1].argmax(-1) == wanted[:, -1]).sum()

        [(loss, right)] = self.descent.update(learning_rate(self.step, self.recipe), (share, len(read)))
        if self.length < self.full:
            self.last_position += 0.1 * (right.item() / len(read) - self.last_position)
            if self.last_position > self.recipe.advance:
                self.length, self.last_position = self.length + 1, 0.0
        return loss.item()

    def progress(self) -> str:
        known = [row["value"] for row in self.history if row["metric"] == "validation_accuracy"]
        return f"length {self.length}, validation accuracy {f'{known[-1]:.4f}' if known else 'not measured yet'}"

    def evaluate(self, loss: float) -> None:
        self.model.eval()
        value = accuracy(self.model, *self.validation)
        self.model.train()
        self.streak = self.streak + 1 if value >= self.recipe.stop_accuracy and self.length == self.full else 0
        if self.streak == self.recipe.stops and self.stop is None:
            weights = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
            self.stop = {"step": self.step, "model": weights, "covered_prefix": self.coverage.covered_prefix()}
        for metric, number in (("train_loss", loss), ("validation_accuracy", value), ("length", self.length)):
            self.history.append({"step": self.step, "metric": metric, "value": float(number)})
