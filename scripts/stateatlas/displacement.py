"""Displacements (protocol B8): the difference between the streams of two prompts, as a source at one site and token.

The observable is the logit of the prompt's answer minus that of its partner's; its full shift is what the whole other
prompt does to it. Controls have the norm of the displacement: random vectors, and displacements of another pair.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from stateatlas.field import Field
from stateatlas.over_prompts import Intervals
from stateatlas.response import Observable, Source, answers, measured, sensitivity

TOKENS = ("last", "changed")
CONTROLS = ("random", "shuffled_prompt")


@dataclass
class Moves:
    """One prompt's displacements at the inputs of blocks: (token, scale, control) -> arrays, one number a site.

    effect, predicted: changes of y; gain: places that the partner's answer rises among all tokens; full: the shift
    of y from this prompt to its partner.
    """

    effect: dict[tuple, np.ndarray]
    predicted: dict[tuple, np.ndarray]
    gain: dict[tuple, np.ndarray]
    full: float


def measure(field: Field, stranger: Field, scales: list[float], draws: int, rng: np.random.Generator) -> Moves:
    """Return the displacements of a prompt; `stranger` is a prompt of another pair, `draws` the random controls."""
    observable = Observable(field.prompt.answer, field.prompt.partner_answer)
    y, a = sensitivity(field.model, field.tokens, observable)
    with torch.no_grad():
        reading = _reading(observable, field.prompt.partner_answer)
        clean, other = (reading(answers(field.model, side[-1]))[0] for side in (field.clean, field.other))
    cases = {}
    for name in TOKENS:
        token = field.last if name == "last" else field.prompt.changed
        there = stranger.last if name == "last" else stranger.prompt.changed
        for scale in scales:
            cases[name, scale, "none"] = [[scale * field.shift[s, token]] for s in range(field.model.depth)]
        cases[name, 1.0, "random"] = [
            list(field.shift[s, token].norm() * field.random(rng, draws)) for s in range(field.model.depth)
        ]
        cases[name, 1.0, "shuffled_prompt"] = [
            [_of_norm(stranger.shift[s, there], field.shift[s, token].norm())] for s in range(field.model.depth)
        ]
    found = Moves({}, {}, {}, (other[0] - y).item())
    for key, by_site in cases.items():
        token = field.last if key[0] == "last" else field.prompt.changed
        sources = [(Source(site, token, vector),) for site, vectors in enumerate(by_site) for vector in vectors]
        moved = (measured(field.model, field.clean, sources, reading) - clean).cpu().numpy()
        moved = moved.reshape(len(by_site), -1, 2).mean(axis=1)
        found.effect[key], found.gain[key] = moved[:, 0], -moved[:, 1]
        linear = [(a[case.site, case.token] @ case.vector).item() for (case,) in sources]
        found.predicted[key] = np.reshape(linear, (len(by_site), -1)).mean(axis=1)
    return found


def _reading(observable: Observable, target: int):
    """A reading of logits (batch, vocabulary): y, and how many tokens are likelier than the target; (batch, 2)."""

    def read(logits: torch.Tensor) -> torch.Tensor:
        above = (logits > logits[:, target, None]).sum(dim=-1)
        return torch.stack([observable(logits), above.to(logits)], dim=-1)

    return read


def _of_norm(vector: torch.Tensor, norm: torch.Tensor) -> torch.Tensor:
    size = vector.norm()
    return vector * (norm / size) if size > 0 else vector


def rows(found: list[Moves], intervals: Intervals) -> Iterator[dict]:
    """Yield the rows of the table `displacement`: by site, and the claim's numbers at site -1.

    Shares are sums over prompts of what moved towards the partner, over the sum of what there is to move. A third of
    the inputs of blocks is rounded to a whole number, at least one.
    """
    whole = np.array([abs(prompt.full) for prompt in found])
    sign = np.array([np.sign(prompt.full) for prompt in found])
    for token, scale, control in found[0].effect:
        key, cell = (token, scale, control), {"token": token, "scale": scale, "control": control}
        moved, linear = (
            sign[:, None] * np.stack([getattr(prompt, name)[key] for prompt in found])
            for name in ("effect", "predicted")
        )
        gains = np.stack([prompt.gain[key] for prompt in found])
        for site in range(moved.shape[1]):
            yield cell | {"site": site, "metric": "site_share"} | intervals.ratio(moved[:, site], whole)
            yield cell | {"site": site, "metric": "site_predicted"} | intervals.ratio(linear[:, site], whole)
            yield cell | {"site": site, "metric": "site_rank_gain"} | intervals.mean(gains[:, site])
        cell["site"] = -1
        if control == "none":
            third = max(1, round(moved.shape[1] / 3))
            first, last = moved[:, :third].mean(axis=1), moved[:, -third:].mean(axis=1)
            yield cell | {"metric": "last_minus_first_third"} | intervals.ratio(last - first, whole)
            yield cell | {"metric": "share_transferred"} | intervals.ratio(last, whole)
            yield cell | {"metric": "spearman"} | intervals.spearman(linear, moved)
            yield cell | {"metric": "rank_gain"} | intervals.mean(gains.mean(axis=1))
        else:
            own = np.stack([prompt.gain[token, scale, "none"] for prompt in found])
            yield cell | {"metric": "rank_gain_minus_control"} | intervals.mean((own - gains).mean(axis=1))
