"""Teaching a language model to find a needle (protocol C): longer prompts by and by, with ordinary text between them.

The loss is that of the answer alone, plus that of a batch of ordinary text in a smaller weight, so that the model
stays a language model. Every step draws from a stream of its own, so a resumed training goes on as an undisturbed one.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import nn

from stateatlas import needles
from stateatlas.adapters import Adapter
from stateatlas.descent import Descent
from stateatlas.memory import in_parts
from stateatlas.needles import Draw, Prompt, Variant
from stateatlas.packing import BOS
from stateatlas.pretraining import as_tokens, text_share
from stateatlas.seeds import stream

log = logging.getLogger(__name__)
UNREAD = -100  # what cross-entropy leaves out
MEMORY = 0.9  # of the moving average


@dataclass(frozen=True)
class Recipe:
    """How a model is taught.

    stages: tokens of the prompts of every stage; a stage that holds no whole prompt has the needle and the answer
    prefix alone. A stage ends when the moving average of the share of right answers passes `advance`, the last one
    when `validated` of the validation prompts are answered, measured every `evaluate_every` steps. Then the learning
    rate falls to 0 over `cooldown` steps; where the model then answers fewer, it is raised again and the teaching goes
    on. `steps` is the most there can be, cool-down included.
    """

    steps: int
    batch: int
    learning_rate: float
    betas: tuple[float, float]
    weight_decay: float
    warmup: int
    cooldown: int
    clip: float
    stages: tuple[int, ...]
    advance: float
    validated: float
    evaluate_every: int
    language_weight: float
    digits: int


class Encoder:
    """Prompts and answers as the model reads them; the answer is encoded by itself, as it is written."""

    def __init__(self, tokenizer, bos: int = BOS):
        self.tokenizer, self.bos = tokenizer, bos

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def prompt(self, text: str) -> np.ndarray:
        """Return a prompt's tokens, (length,) int64, with `<bos>` in front."""
        return np.array([self.bos, *self.ids(text)], np.int64)

    def count(self, text: str) -> int:
        return 1 + len(self.ids(text))

    def text(self, tokens: np.ndarray) -> str:
        return self.tokenizer.decode(tokens.tolist())

    def answer(self, prompt: Prompt) -> np.ndarray:
        """Return the tokens of the answer, (length,) int64."""
        return np.array(self.ids(prompt.answer), np.int64)


def batch(pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what is read, (n, length), and what comes next there, `UNREAD` but for the answer's tokens.

    pairs: the tokens of prompts and answers. The shorter ones are padded on the right, which changes nothing before.
    """
    length = max(len(prompt) + len(answer) for prompt, answer in pairs) - 1
    read, wanted = torch.zeros(len(pairs), length, dtype=torch.int64), torch.full((len(pairs), length), UNREAD)
    for row, (prompt, answer) in enumerate(pairs):
        tokens = torch.from_numpy(np.concatenate([prompt, answer]))
        read[row, : len(tokens) - 1] = tokens[:-1]
        wanted[row, len(prompt) - 1 : len(tokens) - 1] = tokens[len(prompt) :]
    return read, wanted


def answered(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Return of which answers every token is the most likely one, (n,) bool."""
    return ((logits.argmax(-1) == wanted) | (wanted == UNREAD)).all(dim=1)


def right(logits: torch.Tensor, wanted: torch.Tensor) -> float:
    """Return the share of answers of which every token is the most likely one."""
    return answered(logits, wanted).double().mean().item()


class Trainer:
    """A training in progress. `state()` and `restore()` are what a checkpoint holds."""

    def __init__(
        self,
        model: Adapter,
        encoder: Encoder,
        texts: Callable[[], Iterator[np.ndarray]],
        recipe: Recipe,
        validation: int,
        root: int,
        names: tuple,
    ):
        self.model, self.encoder, self.texts, self.recipe = model, encoder, texts, recipe
        self.root, self.names = root, names
        rng = stream(root, *names, "validation")
        self.validation = [self.pair(recipe.stages[-1], rng) for _ in range(validation)]
        self.descent = Descent(model, recipe)
        self.step, self.stage, self.average = 0, 0, 0.0
        self.taught: int | None = None  # the step at which the cool-down began
        self.history: list[dict] = []

    def state(self) -> dict:
        return {
            "descent": self.descent.state(),
            "progress": [self.step, self.stage, self.average, self.taught],
            "history": self.history,
        }

    def restore(self, state: dict) -> None:
        self.descent.restore(state["descent"])
        self.step, self.stage, self.average, self.taught = state["progress"]
        self.history = state["history"]

    def run(self) -> Iterator[None]:
        """Teach to the end of the cool-down, or to the cap, yielding after every step."""
        for windows in islice(self.texts(), self.step, self.recipe.steps):
            if self._cooled():
                return
            self.update(windows)
            self.step += 1
            self._move_on()
            yield

    def update(self, windows: np.ndarray) -> None:
        device = next(self.model.parameters()).device
        rng = stream(self.root, *self.names, "batch", self.step)
        pairs = [self.pair(self.recipe.stages[self.stage], rng) for _ in range(self.recipe.batch)]
        read, wanted = (part.to(device) for part in batch(pairs))
        number = (wanted != UNREAD).sum()

        def share(part: slice) -> tuple[torch.Tensor, ...]:
            at = wanted[part] != UNREAD
            logits = self.model.read(self.model.states(read[part])[-1][at]).float()  # of the answers' tokens alone
            loss = nn.functional.cross_entropy(logits, wanted[part][at]) * (at.sum() / number)
            hits = (~at).masked_scatter(at, logits.argmax(-1) == wanted[part][at]).all(dim=1)
            return loss, hits.sum()

        texts = text_share(self.model, as_tokens(windows, device), self.recipe.language_weight)
        (loss, hits), (_, text) = self.descent.update(self.learning_rate(), (share, len(read)), texts)
        self.average += (1 - MEMORY) * (hits.item() / len(read) - self.average)
        if self.step % self.recipe.evaluate_every == 0:
            self._note(answer_nats=loss.item(), text_nats=text.item(), stage=self.stage, moving_accuracy=self.average)

    def learning_rate(self) -> float:
        """Linear warm-up, constant, and linear to 0 in the cool-down."""
        if self.taught is not None:
            return self.recipe.learning_rate * (1 - (self.step - self.taught) / self.recipe.cooldown)
        return self.recipe.learning_rate * min(1.0, (self.step + 1) / self.recipe.warmup)

    def _move_on(self) -> None:
        """Begin the next stage, or the cool-down, where it is time."""
        if self.taught is not None:
            time_left = self.step + self.recipe.cooldown < self.recipe.steps
            if self._cooled() and time_left and self.validated() < self.recipe.validated:
                self.taught = None
            return
        if self.stage < len(self.recipe.stages) - 1:
            if self.average > self.recipe.advance:
                self.stage, self.average = self.stage + 1, 0.0
                log.info("step %d: prompts of %d tokens", self.step, self.recipe.stages[self.stage])
        elif self.step % self.recipe.evaluate_every == 0:
            found = self.validated()
            self._note(validation_accuracy=found)
            if found >= self.recipe.validated:
                self.taught = self.step
        if self.taught is None and self.step >= self.recipe.steps - self.recipe.cooldown:
            self.taught = self.step

    def _cooled(self) -> bool:
        return self.taught is not None and self.step == self.taught + self.recipe.cooldown

    @torch.no_grad()
    def validated(self) -> float:
        """Return the share of validation prompts that are answered, at the length of the last stage."""
        device = next(self.model.parameters()).device

        def found(part: slice) -> float:
            read, wanted = (tensor.to(device) for tensor in batch(self.validation[part]))
            return right(self.model(read), wanted) * len(read)

        return sum(in_parts(found, len(self.validation), self.recipe.batch)) / len(self.validation)

    def pair(self, length: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw a prompt of at most `length` tokens, with its needle anywhere, and its answer."""
        draw = Draw(Variant("noise"), rng, digits=self.recipe.digits)
        depth = rng.random()
        prompt = draw.prompt(1, depth)
        if self.encoder.count(prompt.text) <= length:
            prompt = needles.fitted(draw, length, depth, self.encoder.count)
            return self.encoder.prompt(prompt.text), self.encoder.answer(prompt)
        bare = "\n".join([*prompt.needles, prompt.text.rsplit("?", 1)[1].strip()])
        return self.encoder.prompt(bare), self.encoder.answer(prompt)

    def progress(self) -> str:
        return f"prompts of {self.recipe.stages[self.stage]} tokens, {self.average:.0%} answered of late"

    def _note(self, **values: float) -> None:
        self.history += [{"step": self.step, "metric": name, "value": value} for name, value in values.items()]
