"""The cells of study C's grid: what is planned, counted from the config alone and before any model is there.

A cell is a model, a corpus, a boundary class, a set of units, an intervention, a span and, for sets that come in
several, a draw. All cells are planned first; one that has no meaning or no units keeps its place and says why it was
not evaluated.
"""

import itertools
from collections.abc import Container
from dataclasses import dataclass

from stateatlas.interventions import NAMES, SPANS

# Sets of a boundary class. `top` are the units that write most at it, as many as there are single-bucket specialists;
# `top_activation` are those of the other units. The drawn ones have several draws.
SETS = ("single", "class", "dual", "top_activation", "single_and_top", "single_minus_top")
DRAWN = ("complement", "norm_matched", "dual_subsample", "dual_complement")
# Scanned, a cell each: the specialists one by one, the largest signature first, as many as there are draws; and the
# units of largest signature, so many of all.
SCANS = ("single_unit", "ranked")
SHARES = (1 / 256, 1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)


@dataclass(frozen=True)
class Cell:
    """One cell of the grid; `status` is "planned" or the reason why there is nothing to evaluate."""

    boundary: str
    set: str
    intervention: str
    span: str
    draw: int
    status: str


def names(draws: int) -> list[tuple[str, int]]:
    """Return every (set, draw) of a boundary class."""
    drawn = itertools.product((*DRAWN, "single_unit"), range(draws))
    return [*((name, 0) for name in SETS), *drawn, *(("ranked", place) for place in range(len(SHARES)))]


def plan(known: Container[str], boundary: str, sizes: dict[tuple[str, int], int | None], controlled: list[str]) -> list:
    """Return the cells of a boundary class, in the order in which they are evaluated.

    known: the interventions that have a meaning in the model's family; sizes: (set, draw) -> number of units, or None
    where the set could not be drawn; controlled: the interventions that drawn and scanned sets are evaluated under.
    """
    cells = []
    for intervention, span, (name, draw) in itertools.product(NAMES, SPANS, sizes):
        size, status = sizes[name, draw], "planned"
        if intervention not in known:
            status = "not applicable"
        elif name in (*DRAWN, *SCANS) and intervention not in controlled:
            status = "no controls at this scale"
        elif size is None:
            status = "no complement"
        elif not size:
            status = "no units"
        cells.append(Cell(boundary, name, intervention, span, draw, status))
    return cells


def number(sink: dict) -> int:
    """Return how many cells a config's `sink` plans."""
    grids = len(sink["models"]) * len(sink["corpora"]) * len(sink["boundaries"])
    return grids * len(NAMES) * len(SPANS) * len(names(sink["draws"]))
