"""Superposition (protocol B2): do two sources together act as the sum of each?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stateatlas.field import Field
from stateatlas.linearity import TINY, TOLERATED
from stateatlas.over_prompts import Intervals, plain
from stateatlas.response import interaction

PAIRS = ("same_site", "same_layer", "across_layers")


@dataclass
class Sums:
    """Pairs of sources in one prompt: their kind, (pairs,); errors, (pairs, eps), NaN where a denominator is tiny.

    second_order: what the mixed second derivative alone says of the error.
    """

    pair: np.ndarray
    error: np.ndarray
    second_order: np.ndarray


def measure(field: Field, eps: list[float], number: int, rng: np.random.Generator) -> Sums:
    """Return `number` pairs of every kind, along random directions, at the inputs of blocks."""
    kinds = [kind for kind in PAIRS for _ in range(number)]
    pairs = [_places(field, kind, rng) for kind in kinds]
    units = [field.random(rng, 2) for _ in pairs]
    cases, mixed = [], []
    for places, unit in zip(pairs, units, strict=True):
        whole = [field.source(*place, direction, 1.0) for place, direction in zip(places, unit, strict=True)]
        mixed.append(interaction(field.model, field.clean, field.observable, ((whole[0],), (whole[1],))))
        for size in eps:
            first, second = (field.source(*place, u, size) for place, u in zip(places, unit, strict=True))
            cases += [(first,), (second,), (first, second)]
    first, second, both = field.effects(cases).reshape(len(pairs), len(eps), 3).transpose(2, 0, 1)
    size = np.abs(first) + np.abs(second)
    size = np.where(size < TINY * np.median(size, axis=0), np.nan, size)
    second_order = np.abs(np.array(mixed))[:, None] * np.array(eps) ** 2
    return Sums(np.array(kinds), np.abs(both - first - second) / size, second_order / size)


def _places(field: Field, kind: str, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Draw two places of a kind: (site, token) each."""
    depth = field.model.depth
    sites = rng.choice(depth, size=2, replace=False) if kind == "across_layers" else [rng.integers(depth)] * 2
    same = kind == "same_site"
    tokens = [rng.integers(field.length)] * 2 if same else rng.choice(field.length, size=2, replace=False)
    return [(int(site), int(token)) for site, token in zip(sites, tokens, strict=True)]


def rows(found: list[Sums], eps: list[float], intervals: Intervals) -> Iterator[dict]:
    """Yield the rows of the table `superposition`."""
    for column, size in enumerate(eps):
        for pair in PAIRS:
            cell = {"eps": size, "pair": pair}
            for metric, name in (("error", "superposition_error"), ("second_order", "second_order_error")):
                parts = [getattr(prompt, metric)[prompt.pair == pair, column] for prompt in found]
                kept = [part[np.isfinite(part)] for part in parts]
                yield cell | {"metric": f"median_{name}"} | intervals.median(kept)
                if metric == "error":
                    dropped = sum(map(len, parts)) - sum(map(len, kept))
                    yield cell | {"metric": "dropped"} | plain(dropped, len(parts))
                    under = [(part < TOLERATED).sum() for part in kept]
                    yield cell | {"metric": "share_under_20"} | intervals.ratio(under, [len(part) for part in kept])
