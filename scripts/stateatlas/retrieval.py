"""The needle test under interventions: how many answers are right, and how likely the right ones are (protocol C).

Every arm is a set of units, or none, silenced at every token. A model whose most likely tokens are those of the
answer writes just that, so only the other prompts are answered token by token.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from stateatlas import complements, generation, needles, teaching, units
from stateatlas.adapters import Adapter
from stateatlas.memory import in_parts
from stateatlas.needles import FEWEST, VARIANTS, Draw, Prompt
from stateatlas.statistics import wilson
from stateatlas.teaching import Encoder

DRAWN = ("complement", "dual_complement")
POOLED = "pooled"
BATCH = 32  # prompts


@dataclass(frozen=True)
class Samples:
    """Prompts of one length, `depth` each, with what the model reads and should write, 1-d int64 each."""

    prompts: list[Prompt]
    depths: np.ndarray
    read: list[np.ndarray]
    answers: list[np.ndarray]


def samples(cfg: dict, length: int, encoder: Encoder, essay: list[str], rng: np.random.Generator) -> Samples:
    """Draw `cfg["samples"]` prompts at every depth.

    Raises
    ------
    InputError
        If a prompt does not fit, or a needle cannot be put at a depth.
    """
    depths = np.repeat(cfg["depths"], cfg["samples"])
    drawn = [Draw(VARIANTS[cfg["variant"]], rng, essay) for _ in depths]
    prompts = [
        needles.fitted(draw, length, depth, encoder.count, FEWEST) for draw, depth in zip(drawn, depths, strict=True)
    ]
    read, answers = [encoder.prompt(prompt.text) for prompt in prompts], [encoder.answer(prompt) for prompt in prompts]
    return Samples(prompts, depths, read, answers)


def arms(found: dict[str, np.ndarray], draws: int, rng: np.random.Generator) -> dict[tuple[str, int], np.ndarray]:
    """Return the units of every arm and draw, (blocks, units) bool; an arm that has none is left out.

    found: the sets of `signatures.sets`.
    """
    single, dual = found["single_bos"], found["dual"]
    chosen = {("baseline", 0): np.zeros_like(single), ("specialist", 0): single, ("dual", 0): dual}
    for draw in range(draws):
        chosen["complement", draw] = complements.matched(single, rng)
        chosen["dual_complement", draw] = complements.matched(dual, rng)
    return {
        arm: members
        for arm, members in chosen.items()
        if members is not None and (members.any() or arm[0] == "baseline")
    }


def asked(
    model: Adapter, encoder: Encoder, given: Samples, members: np.ndarray, intervention: str, means: dict, number: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the score of every answer and the nats a token of the right one, (prompts,) float64 each.

    members: the units that the intervention holds on; number: tokens of an answer.
    """
    with units.intervened(model, model.family, intervention, complements.as_units(members), means):
        nats, right = _likelihood(model, given)
        scores = right.astype(float)
        wrong = np.flatnonzero(~right)
        answers = generation.greedy(model, [given.read[i] for i in wrong], number)
    for i, answer in zip(wrong, answers, strict=True):
        scores[i] = needles.score(encoder.text(answer), given.prompts[i].answers)
    return scores, nats


@torch.inference_mode()
def _likelihood(model: Adapter, given: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Return the nats a token of the right answers, and whether each of their tokens is the most likely one."""
    device = next(model.parameters()).device
    pairs = list(zip(given.read, given.answers, strict=True))

    def judged(part: slice) -> tuple[torch.Tensor, torch.Tensor]:
        read, wanted = (tensor.to(device) for tensor in teaching.batch(pairs[part]))
        logits = model(read)
        lost = nn.functional.cross_entropy(
            logits.transpose(1, 2), wanted, ignore_index=teaching.UNREAD, reduction="none"
        )
        nats = lost.double().sum(dim=1) / (wanted != teaching.UNREAD).sum(dim=1)
        return nats, teaching.answered(logits, wanted)

    nats, right = zip(*in_parts(judged, len(pairs), BATCH), strict=True)
    return torch.cat(nats).cpu().numpy(), torch.cat(right).cpu().numpy()


def rows(
    results: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]],
    depths: np.ndarray,
    rng: np.random.Generator,
    bootstrap: int,
) -> Iterator[dict]:
    """Yield the rows of one length: every arm at every depth and over all, its draws, and what the claims compare.

    results: arm and draw -> scores and nats of every prompt.
    """
    for depth in (POOLED, *dict.fromkeys(depths.tolist())):
        here = np.ones(len(depths), bool) if depth == POOLED else depths == depth
        shares, place = {}, {"depth": str(depth), "n": int(here.sum())}
        for name in dict.fromkeys(arm for arm, _ in results):
            scores, nats = (
                np.array([pair[i][here] for (arm, _), pair in results.items() if arm == name]) for i in (0, 1)
            )
            shares[name] = _share(scores, rng, bootstrap)
            for metric, (value, low, high) in (
                ("accuracy", shares[name]),
                ("answer_nats", _resampled(nats, rng, bootstrap)),
            ):
                yield place | {"draw": 0, "metric": f"{name}_{metric}", "value": value, "low": low, "high": high}
            for draw, own in enumerate(scores.mean(axis=1)) if name in DRAWN else ():
                metric = f"{name}_draw_accuracy"
                yield place | {"draw": draw, "metric": metric, "value": own, "low": math.nan, "high": math.nan}
        if "complement" in shares:
            value, low, high = less(shares["complement"], shares["baseline"], 0.9)
            metric = "complement_minus_nine_tenths_baseline"
            yield place | {"draw": 0, "metric": metric, "value": value, "low": low, "high": high}


def less(first: tuple, second: tuple, share: float) -> tuple[float, float, float]:
    """Return first - share x second with the interval that theirs give (MOVER, Donner & Zou 2012), as if independent:
    answers to the same prompts agree more often, so it is rather too wide."""
    value = first[0] - share * second[0]
    below = math.hypot(first[0] - first[1], share * (second[2] - second[0]))
    above = math.hypot(first[2] - first[0], share * (second[0] - second[1]))
    return value, value - below, value + above


def _share(scores: np.ndarray, rng: np.random.Generator, bootstrap: int) -> tuple[float, float, float]:
    """Return the mean of (draws, prompts) scores with its interval: that over draws and prompts, and never narrower
    than Wilson's for the prompts, which also holds where all are right."""
    value, low, high = _resampled(scores, rng, bootstrap)
    single = wilson(round(value * scores.shape[1]), scores.shape[1])
    return value, min(low, single.low), max(high, single.high)


def _resampled(values: np.ndarray, rng: np.random.Generator, bootstrap: int) -> tuple[float, float, float]:
    """Return the mean of (draws, prompts) values with the interval of both drawn again."""
    draws, prompts = (rng.multinomial(n, np.full(n, 1 / n), size=bootstrap) / n for n in values.shape)
    low, high = np.quantile(np.einsum("bd,dp,bp->b", draws, values, prompts, optimize=True), [0.025, 0.975])
    return float(values.mean()), float(low), float(high)
