"""Propagation (protocol B4) and composition (B5) of the response to a finite source along one random direction."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from stateatlas.concentration import gini
from stateatlas.field import Field
from stateatlas.over_prompts import Intervals, plain
from stateatlas.response import Source, push, response

EPS = 0.03
BY_CONSTRUCTION = "by construction"
KEPT = {"source": "evidence", "top_quarter": "evidence", "all": BY_CONSTRUCTION}
FEWEST = 8  # tokens from the source on, so that a quarter of them is neither one nor all


@dataclass
class Cones:
    """The response fields of one prompt: numbers a source, (sources,), and the mean energy by (site, offset)."""

    own: np.ndarray
    later: np.ndarray
    gini: np.ndarray
    map: np.ndarray  # of sources at site 0, relative to the source's energy; NaN outside the cone


def measure(field: Field, tokens: int, rng: np.random.Generator) -> Cones:
    """Return the response fields of one source at every drawn token of the inputs of blocks.

    Energy is the square of the response's norm in units of the source's. `own` is its mean over later sites at the
    source's token, `later` over later sites and later tokens; the last token, which has none after it, is no source.
    """
    own, later, unequal, maps = [], [], [], []
    for site in range(field.model.depth):
        places = sorted(rng.choice(field.last, size=min(tokens, field.last), replace=False))
        units = field.random(rng, len(places))
        sources = [field.source(site, int(x), unit, EPS) for x, unit in zip(places, units, strict=True)]
        fields = response(field.model, field.clean, [(source,) for source in sources])
        for source, one in zip(sources, fields, strict=True):
            energy = (one[:, source.token :].square().sum(-1) / source.vector.square().sum()).cpu().numpy()
            cone = energy[site + 1 :]  # (later sites, tokens from the source on)
            own.append(cone[:, 0].mean())
            later.append(cone[:, 1:].mean())
            unequal.append(gini(cone.ravel()))
            if site == 0:
                maps.append(np.pad(energy, ((0, 0), (0, source.token)), constant_values=np.nan))
    return Cones(np.array(own), np.array(later), np.array(unequal), np.stack(maps))


def propagation(trained: list[Cones], untrained: list[Cones], intervals: Intervals) -> Iterator[dict]:
    """Yield the rows of the table `propagation` for a model and the same with new weights."""
    for model, found in (("trained", trained), ("untrained", untrained)):
        cell = {"model": model, "site": -1, "offset": -1}
        own, later = ([getattr(prompt, key).mean() for prompt in found] for key in ("own", "later"))
        yield cell | {"metric": "energy_ratio"} | intervals.ratio(own, later)
        yield cell | {"metric": "gini"} | intervals.mean([prompt.gini.mean() for prompt in found])
        maps = np.concatenate([prompt.map for prompt in found])
        for site, offset in np.ndindex(*maps.shape[1:]):
            values = maps[:, site, offset]
            if np.isfinite(values).any():
                place = {"model": model, "site": site, "offset": offset, "metric": "energy"}
                yield place | plain(np.nanmean(values), np.isfinite(values).sum())
    gaps = [one.gini.mean() - other.gini.mean() for one, other in zip(trained, untrained, strict=True)]
    row = {"model": "trained", "site": -1, "offset": -1, "metric": "gini_minus_untrained"}
    yield row | intervals.mean(gaps)


def compose(field: Field, tokens: int, rng: np.random.Generator) -> list[dict]:
    """Return relative errors of responses at the final site that were sent on from a site between.

    Of the response at that site the source's token, the quarter of tokens where it is largest, or all are kept. With
    all, the model repeats what it did: an identity, kept as a check. `jacobian`: two Jacobian-vector products in a
    row, against the finite response.
    """
    found, final = [], field.model.depth
    for first in range(final - 1):
        between = (first + 1 + final) // 2
        early = field.length - FEWEST + 1
        for token in rng.choice(early, size=min(tokens, early), replace=False):
            source = field.source(first, int(token), field.random(rng, 1)[0], EPS)
            whole = response(field.model, field.clean, [(source,)])[0]
            middle, end = whole[between], whole[final]
            sizes = middle.norm(dim=-1)
            kept = {
                "source": [source.token],
                "top_quarter": sizes.argsort(descending=True)[: -(-(field.length - source.token) // 4)].tolist(),
                "all": range(field.length),
            }
            cases = [tuple(Source(between, x, middle[x]) for x in places) for places in kept.values()]
            sent = response(field.model, field.clean, cases)[:, final]
            errors = {name: _relative(part, end) for name, part in zip(kept, sent, strict=True)}
            start = torch.zeros_like(middle)
            start[source.token] = source.vector
            on = push(field.model, field.clean, first, between, start)
            errors["jacobian"] = _relative(push(field.model, field.clean, between, final, on), end)
            found.append(errors)
    return found


def _relative(part: torch.Tensor, whole: torch.Tensor) -> float:
    return ((part - whole).norm() / whole.norm()).item()


def composition(found: list[list[dict]], intervals: Intervals) -> Iterator[dict]:
    """Yield the rows of the table `composition`: means over the sources of every prompt."""
    for name in (*KEPT, "jacobian"):
        cell = {"eps": EPS, "tokens": name, "status": KEPT.get(name, "evidence"), "metric": "relative_error"}
        yield cell | intervals.mean([np.mean([case[name] for case in prompt]) for prompt in found])
