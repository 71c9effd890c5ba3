"""Is a site needed? What INLP costs the task beyond random subspaces of equal dimension (protocol A, A16 and A17)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stateatlas.erasure import Erased
from stateatlas.profiles import best_site


@dataclass(frozen=True)
class Excess:
    """Damage of INLP beyond random subspaces at its last k, in right tokens of every sequence.

    inlp: (sequences,); random: (draws, sequences). Both are right tokens *after* the erasure, so the excess is
    random - inlp and the clean accuracy falls out.
    """

    inlp: np.ndarray
    random: np.ndarray

    def mean(self, rows: slice) -> float:
        """Return the mean over the sequences `rows`, in tokens a sequence."""
        return float(self.random[:, rows].mean() - self.inlp[rows].mean())

    def redrawn(self, rows: slice, times: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the mean over resampled sequences (times, (bootstrap, sequences)) and control draws, (bootstrap,)."""
        chosen = rng.integers(0, len(self.random), (len(times), len(self.random)))
        controls = np.take_along_axis(self.random[:, rows] @ times.T, chosen.T, axis=0).mean(axis=0)
        return (controls - times @ self.inlp[rows]) / times.sum(axis=1)


def excess(erasures: list[Erased]) -> Excess:
    """Return the excess of one site. Where nothing was taken out both sides are the model as it is."""
    last = [e for e in erasures if e.eraser == "inlp"][-1]
    random = [e.task for e in erasures if e.eraser == "random" and e.k == last.k]
    return Excess(last.task, np.stack(random or [last.task]))


def measure(
    sites: dict[int, list[Erased]], length: int, draws: int, rng: np.random.Generator
) -> Iterator[tuple[int, str, float, float, float]]:
    """Yield (site, metric, value, low, high) of one model; site -1 for what belongs to the whole model.

    sites: erasures by block site (1..n). `excess_damage` of each site and `final_excess_damage`, the last one's;
    `largest_minus_best_probe`, the excess at its largest site minus that at the best-probe site, 0 where they
    coincide. Sites are chosen on the first half of the test sequences, everything is measured on the second; the
    intervals resample its sequences and the control draws. In shares of tokens.
    """
    found = {site: excess(erasures) for site, erasures in sites.items()}
    count = len(next(iter(found.values())).inlp)
    chosen, measured = slice(0, count // 2), slice(count // 2, None)
    n = count - count // 2
    times = rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(float)
    resampled = {site: e.redrawn(measured, times, rng) for site, e in found.items()}
    probes = [erasures[0].probe[chosen].mean() / length for erasures in sites.values()]
    best = list(found)[best_site(np.array(probes)) - 1]
    largest = max(found, key=lambda site: found[site].mean(chosen))
    pairs = {(site, "excess_damage"): (e.mean(measured), resampled[site]) for site, e in found.items()}
    pairs[-1, "final_excess_damage"] = pairs[max(found), "excess_damage"]
    gap = found[largest].mean(measured) - found[best].mean(measured)
    pairs[-1, "largest_minus_best_probe"] = (gap, resampled[largest] - resampled[best])
    for (site, metric), (value, spread) in pairs.items():
        low, high = np.quantile(spread, [0.025, 0.975])
        yield site, metric, value / length, low / length, high / length
