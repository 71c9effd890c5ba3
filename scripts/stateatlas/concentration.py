"""Concentration of site scores |a| (protocol B6) and the rank of Green slices (B7)."""

from collections.abc import Iterator

import numpy as np
import torch

from stateatlas.field import Field
from stateatlas.over_prompts import Intervals, plain
from stateatlas.response import Place, green

SITES = ("all", "no_first_token", "inner")
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
NAMED = {0.01: "top_hundredth_share", 0.05: "top_twentieth_share", 0.1: "top_tenth_share"}


def gini(values: np.ndarray) -> float:
    """Gini's coefficient of values that are not negative: 0 where all are equal, near 1 where one has all."""
    ordered = np.sort(values)
    total = ordered.sum()
    ranks = np.arange(1, len(ordered) + 1)
    return float((2 * ranks - len(ordered) - 1) @ ordered / (len(ordered) * total)) if total else np.nan


def participation(values: np.ndarray) -> float:
    """The participation ratio as a share: (sum v)^2 / (n sum v^2), 1 where all are equal."""
    return float(values.sum() ** 2 / (len(values) * (values**2).sum()))


def top_share(values: np.ndarray, share: float) -> float:
    """What the largest `share` of the values, rounded up to a whole number of them, hold of their sum."""
    number = int(np.ceil(share * len(values) - 1e-9))
    return float(np.sort(values)[::-1][:number].sum() / values.sum())


def of(scores: np.ndarray, sites: str) -> np.ndarray:
    """Return the scores (sites, length) that count: "inner" leaves out the first token and the final site."""
    if sites == "all":
        return scores.ravel()
    return (scores[:-1, 1:] if sites == "inner" else scores[:, 1:]).ravel()


def concentration(found: list[np.ndarray], intervals: Intervals) -> Iterator[dict]:
    """Yield the rows of the table `concentration` from the scores (sites, length) of every prompt."""
    for sites in SITES:
        scores = [of(prompt, sites) for prompt in found]
        for metric, index in (("gini", gini), ("participation_ratio", participation)):
            cell = {"sites": sites, "share": 1.0, "metric": metric}
            yield cell | intervals.mean([index(values) for values in scores])
        for share in SHARES:
            row = {"sites": sites, "share": share} | intervals.mean([top_share(values, share) for values in scores])
            yield row | {"metric": "cumulative"}
            if share in NAMED:
                yield row | {"metric": NAMED[share]}


def slices(field: Field, number: int, rng: np.random.Generator) -> list[dict]:
    """Return singular values of `number` Green slices to one target, drawn evenly over its backward cone.

    A slice is the block from a site and token to a later site and one token. All sources at a site are one block, so
    the slice along the target's own token comes with it; where it was not drawn it says so.
    """
    last = int(rng.integers(1, field.model.sites))
    token = int(rng.integers(1, field.length))
    drawn = [(int(rng.integers(last)), int(rng.integers(token + 1))) for _ in range(number)]
    found = []
    for site in sorted({site for site, _ in drawn}):
        sources = Place(site, tuple(range(token + 1)))
        block = green(field.model, field.clean, sources, Place(last, (token,))).unflatten(1, (token + 1, -1))
        tokens = [x for first, x in drawn if first == site]
        for x in tokens if token in tokens else [*tokens, token]:
            values = torch.linalg.svdvals(block[:, x]).cpu().numpy()
            found.append({"own": x == token, "drawn": x in tokens, "values": values, "rank": effective_rank(values)})
    return found


def effective_rank(values: np.ndarray) -> float:
    """exp of the entropy of the squared singular values, as shares of their sum; 0 where all are 0."""
    if not values.any():
        return 0.0
    shares = values**2 / (values**2).sum()
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))


def ranks(found: list[list[dict]], intervals: Intervals) -> Iterator[dict]:
    """Yield the rows of the table `green`: effective ranks, and mean spectra relative to the largest value."""
    width = len(found[0][0]["values"])
    for metric, key, wanted in (
        ("effective_rank_over_width", "drawn", True),
        ("own_token_rank_over_width", "own", True),
        ("other_token_rank_over_width", "own", False),
    ):
        parts = [np.array([one["rank"] / width for one in prompt if one[key] == wanted]) for prompt in found]
        yield {"token": "all", "k": 0, "metric": metric} | intervals.median(parts)
    for name, own in (("own", True), ("other", False)):
        spectra = [
            one["values"] / one["values"][0] for prompt in found for one in prompt if one["own"] == own and one["rank"]
        ]
        for k in range(width if spectra else 0):
            values = [spectrum[k] for spectrum in spectra]
            yield {"token": name, "k": k, "metric": "singular_value"} | plain(np.median(values), len(values))
