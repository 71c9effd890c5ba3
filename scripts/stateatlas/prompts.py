"""The prompts of study B, in pairs: from templates, or from text that a mini has not read (protocol B).

The two prompts of a pair have the same length and different answers, so the displacement from one to the other is a
source. An answer is one token, the next one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import yaml
from tokenizers import Tokenizer

from stateatlas.job import InputError
from stateatlas.packing import BOS, segments
from stateatlas.residual import Residual
from stateatlas.response import answers

FEWEST = 2  # prompts: an interval resamples them
CANDIDATES = 4  # windows of text that are looked at for every prompt


@dataclass(frozen=True)
class Prompt:
    """A text, the two tokens whose logits are compared after it, and the other prompt of its pair.

    tokens, partner: (length,) int64, `<bos>` first. right and wrong make the observable; answer and partner_answer are
    what is right here and there. From templates that is the same pair of tokens.
    """

    set: str
    tokens: torch.Tensor
    right: int
    wrong: int
    partner: torch.Tensor
    answer: int
    partner_answer: int

    @property
    def changed(self) -> int:
        """The first position at which the partner has another token."""
        return int((self.tokens != self.partner).nonzero()[0])


@dataclass(frozen=True)
class Written:
    """A prompt before it is tokenized."""

    set: str
    text: str
    answer: str


def written(path: Path) -> list[tuple[Written, Written]]:
    """Return the pairs of `data/prompts.yaml`, templates in turn."""
    found = []
    for name, entry in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        for i, fill in enumerate(entry["fill"]):
            template = entry["template"][i % len(entry["template"])]
            sides = _swapped(fill) if isinstance(fill, dict) else fill
            found.append(tuple(Written(name, template.format(**side), " " + side["answer"]) for side in sides))
    return found


def _swapped(fill: dict) -> list[dict]:
    """Either of the two names gives, and the other is the answer."""
    return [fill | {"giver": fill[giver], "answer": fill[other]} for giver, other in ("ba", "ab")]


def from_templates(
    pairs: Sequence[tuple[Written, Written]], tokenizer: Tokenizer, bos: int
) -> tuple[list[Prompt], dict[str, int]]:
    """Return the prompts that fit the tokenizer, and how many of every set do not.

    bos: the id of the token that is put in front.

    Raises
    ------
    InputError
        If fewer than two prompts fit.
    """
    found, skipped = [], dict.fromkeys([one.set for pair in pairs for one in pair], 0)
    for pair in pairs:
        tokens = [torch.tensor([bos, *_ids(tokenizer, one.text)]) for one in pair]
        ids = [_ids(tokenizer, one.answer) for one in pair]
        single = all(len(answer) == 1 for answer in ids) and ids[0] != ids[1]
        if not single or len(tokens[0]) != len(tokens[1]) or torch.equal(*tokens):
            skipped[pair[0].set] += 2
            continue
        for here, there in ((0, 1), (1, 0)):
            right, wrong = ids[here][0], ids[there][0]
            found.append(Prompt(pair[here].set, tokens[here], right, wrong, tokens[there], right, wrong))
    if len(found) < FEWEST:
        raise InputError("the model's tokenizer fits fewer than 2 prompts of data/prompts.yaml: add pairs to it")
    return found, skipped


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


@torch.no_grad()
def from_text(
    model: Residual, documents: Sequence[np.ndarray], number: int, length: int, rng: np.random.Generator
) -> list[Prompt]:
    """Return `number` prompts, beginnings of segments of held-out documents behind `<bos>`, `length` tokens in all.

    The observable is the model's first choice for the next token against its second. Two windows make a pair, those
    first whose first choices differ.

    Raises
    ------
    InputError
        If the documents do not hold so many.
    """
    parts = [part[: length - 1] for part in segments(documents, rng) if len(part) >= length - 1]
    chosen = np.array(parts[: CANDIDATES * number], np.int64).reshape(-1, length - 1)
    windows = torch.from_numpy(np.pad(chosen, ((0, 0), (1, 0)), constant_values=BOS))
    device = next(model.parameters()).device
    logits = [answers(model, model.states(part.to(device))[-1]) for part in windows.split(64)]
    tops = torch.cat(logits).topk(2).indices.tolist() if len(windows) else []
    found = [prompt for pair in _paired(windows, tops) for prompt in pair][:number]
    if len(found) < number:
        raise InputError(
            f"held-out text gives {len(found)} prompts of {length} tokens, {number} are needed: "
            "lower response.prompts or response.length in config.yaml"
        )
    return found


def _paired(windows: torch.Tensor, tops: list[list[int]]) -> Iterator[tuple[Prompt, Prompt]]:
    """Pair every window with the next one that the model continues otherwise, then those that are left over."""
    waiting: list[int] = []
    for i, (first, _) in enumerate(tops):
        other = next((j for j in waiting if tops[j][0] != first), None)
        if other is None:
            waiting.append(i)
        else:
            waiting.remove(other)
            yield _pair(windows, tops, other, i)
    for one, other in zip(waiting[::2], waiting[1::2], strict=False):
        yield _pair(windows, tops, one, other)


def _pair(windows: torch.Tensor, tops: list[list[int]], one: int, other: int) -> tuple[Prompt, Prompt]:
    """Two windows as each other's partner; the partner's answer is its likeliest that is not the answer here too."""
    return tuple(
        Prompt("held_out", windows[a], *tops[a], windows[b], tops[a][0], next(t for t in tops[b] if t != tops[a][0]))
        for a, b in ((one, other), (other, one))
    )
