"""The grid of study C: what every set of units costs under every intervention, a planned cell at a time.

A cell is a boundary class, a set of units, an intervention, a span and, for sets that are drawn, a draw. All cells are
planned first; one that has no meaning or no units keeps its place and says why it was not evaluated.
"""

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from stateatlas import complements, units
from stateatlas.interventions import NAMES
from stateatlas.spans import SPANS, Windows

# Sets of a boundary class. `top` are the units that write most at it, as many as there are single-bucket specialists;
# `top_activation` are those of the other units. The drawn ones have several draws.
SETS = ("single", "class", "dual", "top_activation", "single_and_top", "single_minus_top")
DRAWN = ("complement", "norm_matched", "dual_subsample", "dual_complement")


@dataclass(frozen=True)
class Cell:
    """One cell of the grid; `status` is "planned" or the reason why there is nothing to evaluate."""

    boundary: str
    set: str
    intervention: str
    span: str
    draw: int
    status: str


Draws = dict[tuple[str, int], np.ndarray | None]  # (set, draw) -> units (blocks, units) bool, or None


def draw_sets(
    found: dict[str, np.ndarray], boundary: str, norms: np.ndarray, draws: int, rng: np.random.Generator
) -> Draws:
    """Return the units of every set and draw for a boundary class.

    found: the sets of `signatures.sets`; norms: (blocks, units), the mean length of what a unit writes at the class.
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
    return result


def plan(family: str, boundary: str, chosen: Draws, controlled: list[str]) -> list[Cell]:
    """Return the cells of a boundary class, in the order in which they are evaluated.

    controlled: the interventions that drawn sets are evaluated under.
    """
    cells = []
    for intervention, span, (name, draw) in itertools.product(NAMES, SPANS, chosen):
        members = chosen[name, draw]
        status = "planned"
        if not units.applicable(family, intervention):
            status = "not applicable"
        elif name in DRAWN and intervention not in controlled:
            status = "no controls at this scale"
        elif members is None:
            status = "no complement"
        elif not members.any():
            status = "no units"
        cells.append(Cell(boundary, name, intervention, span, draw, status))
    return cells


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
        if not np.isnan(losses[index]).any():
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


def planned(cells: list[Cell], losses: np.ndarray) -> Iterator[dict]:
    """Yield the rows of the table `cells`: every cell with its mean effect, or the reason why it has none."""
    for cell, row in zip(cells, losses, strict=True):
        known = asdict(cell)
        known["class"] = known.pop("boundary")
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
