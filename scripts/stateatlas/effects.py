"""The grid of study C: what every set of units costs under every intervention, cell by cell of `unit_cells`."""

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from stateatlas import complements, unit_cells
from stateatlas.spans import Windows
from stateatlas.unit_cells import SCANS, SHARES, Cell

Draws = dict[tuple[str, int], np.ndarray | None]  # (set, draw) -> units (blocks, units) bool, or None


def draw_sets(
    found: dict[str, np.ndarray],
    boundary: str,
    signature: np.ndarray,
    norms: np.ndarray,
    draws: int,
    rng: np.random.Generator,
) -> Draws:
    """Return the units of every set and draw for a boundary class.

    found: the sets of `signatures.sets`; signature, norms: (blocks, units), that of the class and the mean length of
    what a unit writes there.
    """
    single, dual = found[f"single_{boundary}"], found["dual"]
    result: Draws = {
        ("single", 0): single,
        ("class", 0): found[boundary],
        ("dual", 0): dual,
        ("top_activation", 0): complements.top(norms, int(single.sum()), excluded=single),
    }
    top = complements.top(norms, int(single.sum()), excluded=np.zeros_like(single))
    result["single_and_top", 0], result["single_minus_top", 0] = single & top, single & ~top
    for draw in range(draws):
        result["complement", draw] = complements.matched(single, rng)
        result["norm_matched", draw] = complements.norm_matched(single, norms, rng)
        result["dual_subsample", draw] = complements.subsample(dual, int(single.sum()), rng)
        result["dual_complement", draw] = complements.matched(dual, rng)
        result["single_unit", draw] = _largest(np.where(single, signature, np.nan), draw, draw + 1)
    for place, share in enumerate(SHARES):
        result["ranked", place] = _largest(signature, 0, max(1, round(share * signature.size)))
    return {name: result[name] for name in unit_cells.names(draws)}


def _largest(signature: np.ndarray, first: int, last: int) -> np.ndarray:
    """Return the units whose places by signature, the largest first, are from `first` to before `last`.

    Units without a signature (NaN) have no place.
    """
    order = np.argsort(-signature, axis=None, kind="stable")[: np.isfinite(signature).sum()]
    members = np.zeros(signature.shape, bool)
    members.flat[order[first:last]] = True
    return members


def sizes(chosen: Draws) -> dict[tuple[str, int], int | None]:
    """Return how many units every set has; None where it could not be drawn."""
    return {name: None if members is None else int(members.sum()) for name, members in chosen.items()}


def evaluate(windows: Windows, cells: list[Cell], chosen: Draws, losses: np.ndarray) -> Iterator[int]:
    """Fill `losses`, (cells, windows), with the nats a token beyond the clean model's, yielding each cell's index.

    Cells that are not planned, and rows that hold a number already, are left as they are.
    """
    clean = windows.loss()
    for index, cell in enumerate(cells):
        if cell.status == "planned" and np.isnan(losses[index]).all():
            members = complements.as_units(chosen[cell.set, cell.draw])
            losses[index] = windows.loss(cell.intervention, members, cell.span) - clean
            yield index


def summary(
    cells: list[Cell], losses: np.ndarray, documents: np.ndarray, rng: np.random.Generator, bootstrap: int
) -> Iterator[dict]:
    """Yield the rows of the table `interventions`: effects of sets in nats a token, and the claims' differences.

    documents: that of every window. Intervals resample documents, with all of their windows, and the draws.
    """
    weights = _document_weights(documents, rng, bootstrap)  # (1 + bootstrap, windows), the first row all ones
    groups: dict[tuple, dict[str, list[int]]] = {}
    for index, cell in enumerate(cells):
        if cell.set not in SCANS and not np.isnan(losses[index]).any():
            key = cell.boundary, cell.intervention, cell.span
            groups.setdefault(key, {}).setdefault(cell.set, []).append(index)
    for (boundary, intervention, span), rows in groups.items():
        effects = {name: _effect(losses[chosen], weights, rng) for name, chosen in rows.items()}
        for metric, values in _differences(effects):
            low, high = np.quantile(values[1:], [0.025, 0.975])
            yield {
                "class": boundary, "intervention": intervention, "span": span, "metric": metric,
                "value": values[0], "n": len(documents), "low": low, "high": high,
            }  # fmt: skip


def planned(cells: list[Cell], chosen: Draws, losses: np.ndarray) -> Iterator[dict]:
    """Yield the rows of the table `cells`: every cell with its number of units and its mean effect, or the reason why
    it has none."""
    number = sizes(chosen)
    for cell, row in zip(cells, losses, strict=True):
        known = asdict(cell)
        known["class"] = known.pop("boundary")
        known["units"] = number[cell.set, cell.draw] or 0
        status = "evaluated" if cell.status == "planned" else cell.status
        yield known | {"status": status, "metric": "delta_nll", "value": float(np.mean(row)), "n": len(row)}


def _document_weights(documents: np.ndarray, rng: np.random.Generator, draws: int) -> np.ndarray:
    names, index = np.unique(documents, return_inverse=True)
    times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws)
    return np.concatenate([np.ones((1, len(documents))), times[:, index]])


def _effect(losses: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the mean over windows and draws, (1 + bootstrap,); after the first, the draws (rows) are drawn again."""
    means = losses @ weights.T / weights.sum(axis=1)  # (draws, 1 + bootstrap)
    number = len(means)
    times = rng.multinomial(number, np.full(number, 1 / number), size=means.shape[1]) / number
    times[0] = 1 / number
    return (means * times.T).sum(axis=0)


def _differences(effects: dict[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the effects under the claims' names, and what the claims compare."""
    named = {"specialist" if name == "single" else name: values for name, values in effects.items()}
    yield from named.items()
    for metric, first, share, second in (
        ("specialist_minus_complement", "specialist", 1, "complement"),
        ("specialist_minus_norm_matched", "specialist", 1, "norm_matched"),
        ("dual_minus_half_specialist", "dual_subsample", 0.5, "specialist"),
        ("dual_minus_dual_complement", "dual", 1, "dual_complement"),
        ("top_activation_minus_four_fifths_specialist", "top_activation", 0.8, "specialist"),
    ):
        if first in named and second in named:
            yield metric, named[first] - share * named[second]
