"""Linearity (protocol B1) and prediction (B3): finite sources of every size against the linear response.

A case is a source at one site and token along one direction, of `eps` times the norm of the stream there. Its
prediction is a.J, its effect is measured in the model.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from stateatlas.field import KINDS, Field
from stateatlas.over_prompts import Intervals, plain

TINY = 1e-3  # of the median of a prompt and eps: a prediction below it says nothing on a relative error
TOLERATED = 0.2  # the paper's nonlinearity error
SHOWN = 0.03  # the eps of claim B3
DRAWN = 4  # prompts whose cases are drawn one by one


@dataclass
class Amplitudes:
    """The cases of one prompt: site, token and kind, (cases,), and effects, (cases, eps)."""

    site: np.ndarray
    token: np.ndarray
    kind: np.ndarray
    predicted: np.ndarray
    measured: np.ndarray

    def errors(self) -> np.ndarray:
        """abs(dy - a.J) / abs(a.J), (cases, eps); NaN where the denominator is tiny."""
        size = np.abs(self.predicted)
        tiny = size < TINY * np.median(size, axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(tiny, np.nan, np.abs(self.measured - self.predicted) / size)


def measure(field: Field, eps: list[float], directions: int, tokens: int, rng: np.random.Generator) -> Amplitudes:
    """Return the cases of a prompt, at `tokens` tokens of every site."""
    keys, sources = [], []
    for site, token in field.places(tokens, rng):
        for kind, units in field.directions(site, token, directions, rng).items():
            for unit in units:
                keys.append((site, token, kind))
                sources.append([field.source(site, token, unit, size) for size in eps])
    site, token, kind = map(np.array, zip(*keys, strict=True))
    measured = field.effects([(source,) for case in sources for source in case]).reshape(len(keys), len(eps))
    predicted = np.array([[field.predicted(source) for source in case] for case in sources])
    return Amplitudes(site, token, kind, predicted, measured)


def linearity(found: list[Amplitudes], eps: list[float], intervals: Intervals) -> Iterator[dict]:
    """Yield the rows of the table `linearity`, `direction` "all" and one kind at a time."""
    for column, size in enumerate(eps):
        for kind in ("all", *KINDS):
            parts = [prompt.errors()[_of(prompt, kind), column] for prompt in found]
            yield from _errors(parts, {"eps": size, "direction": kind}, intervals)


def _errors(parts: list[np.ndarray], cell: dict, intervals: Intervals) -> Iterator[dict]:
    kept = [part[np.isfinite(part)] for part in parts]
    together = np.concatenate(kept)
    # The claim reads the metric that only all directions together have.
    name = "median_nonlinearity_error" if cell["direction"] == "all" else "median_error"
    yield cell | {"metric": name} | intervals.median(kept)
    for metric, share in (("lower_quartile", 0.25), ("upper_quartile", 0.75)):
        value = np.quantile(together, share) if len(together) else np.nan
        yield cell | {"metric": metric} | plain(value, len(parts))
    under = [(part < TOLERATED).sum() for part in kept]
    yield cell | {"metric": "share_under_20"} | intervals.ratio(under, [len(part) for part in kept])
    yield cell | {"metric": "dropped"} | plain(sum(map(len, parts)) - len(together), len(parts))


def prediction(found: list[Amplitudes], eps: list[float], intervals: Intervals) -> Iterator[dict]:
    """Yield the rows of the table `prediction`: means over prompts of what holds inside a prompt.

    Site -1 stands for all sites; single sites have all directions together.
    """
    sites = sorted({int(site) for prompt in found for site in prompt.site})
    for column, size in enumerate(eps):
        cells = [(kind, -1) for kind in ("all", *KINDS)] + [("all", site) for site in sites]
        for kind, site in cells:
            stats = [_agreement(prompt, _of(prompt, kind, site), column) for prompt in found]
            cell = {"eps": size, "direction": kind, "site": site}
            for metric in ("pearson", "spearman", "sign_agreement", "slope"):
                name = metric if site < 0 else f"site_{metric}"
                yield cell | {"metric": name} | intervals.mean([own[metric] for own in stats])


def _agreement(prompt: Amplitudes, rows: np.ndarray, column: int) -> dict[str, float]:
    """How effects agree with predictions inside a prompt; NaN with fewer than three cases."""
    x, y = prompt.predicted[rows, column], prompt.measured[rows, column]
    if len(x) < 3 or not x.any():
        return dict.fromkeys(("pearson", "spearman", "sign_agreement", "slope"), np.nan)
    return {
        "pearson": correlation(x, y),
        "spearman": spearman(x, y),
        "sign_agreement": float((np.sign(x) == np.sign(y)).mean()),
        "slope": float(x @ y / (x @ x)),
    }


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's correlation; NaN where one side does not vary."""
    return float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) and np.ptp(y) else np.nan


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's correlation; NaN where one side does not vary."""
    return correlation(rankdata(x), rankdata(y))


def effects(found: list[Amplitudes], eps: list[float]) -> Iterator[dict]:
    """Yield the rows of the table `effects`: the cases of the first prompts at the eps of B3, one by one."""
    column = int(np.argmin(np.abs(np.array(eps) - SHOWN)))
    for number, prompt in enumerate(found[:DRAWN]):
        for case, kind in enumerate(prompt.kind):
            cell = {"prompt": number, "case": case, "site": int(prompt.site[case]), "direction": str(kind)}
            for metric in ("predicted", "measured"):
                yield cell | {"metric": metric, "value": float(getattr(prompt, metric)[case, column])}


def _of(prompt: Amplitudes, kind: str, site: int = -1) -> np.ndarray:
    keep = np.ones(len(prompt.kind), bool) if kind == "all" else prompt.kind == kind
    return np.flatnonzero(keep if site < 0 else keep & (prompt.site == site))
