"""What the tables say about the atoms of a claim: one interval each, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np
import pandas as pd

from stateatlas import statistics
from stateatlas.bounds import Bound
from stateatlas.claims import ClaimError, nearer_cells
from stateatlas.selection import NotEvaluable, Selection, Tables
from stateatlas.statistics import Interval

FEW_SEEDS = 5  # below, an interval over seeds only describes them
_FIRST = ("task", "architecture")


@dataclass
class Finding:
    """One atom: its cell (column -> value), its interval or why it is `missing`, and notes for the reader."""

    cell: dict
    label: str
    name: str
    bound: Bound | None = None
    interval: Interval | None = None
    missing: str = ""
    by_construction: str = ""
    notes: list[str] = field(default_factory=list)


def findings(claim: dict, tables: Tables, scale: str) -> list[Finding]:
    """All atoms of a claim of `claims.load_claims`, in order.

    Raises ClaimError when the rows of an atom differ in a column that the claim does not name.
    """
    try:
        return [found for atom in claim["atoms"] for found in _of_atom(atom, claim["study"], tables, scale)]
    except ClaimError as error:
        raise ClaimError(f"claim {claim['id']}: {error}") from error


def _of_atom(atom: dict, study: str, tables: Tables, scale: str) -> list[Finding]:
    if "by_construction" in atom:
        label = _label(atom, {}, {})
        return [Finding(atom["where"], label, atom["name"], by_construction=atom["by_construction"])]
    try:
        measure = _Measure(atom, study, tables, scale)
    except NotEvaluable as reason:
        # Without the table its lists still say which cells the claim is about; its words do not.
        return [_finding(atom, cell, other, missing=str(reason)) for cell, other in _cells(atom, None, None)]
    return [measure.finding(cell, other) for cell, other in _cells(atom, measure.first, measure.second)]


class _Measure:
    """One entry of `atoms`, its rows selected once for all of its cells."""

    def __init__(self, atom: dict, study: str, tables: Tables, scale: str):
        self.atom, self.study, self.tables, self.scale = atom, study, tables, scale
        each = atom["each"]
        self.second = self.given = self.given_minus = None
        if "nearer" in atom:
            compared = {column for cell in nearer_cells(atom["nearer"]) for column in cell}
            each = {**each, "site": "blocks", **dict.fromkeys(sorted(compared), "present")}
            term = {**atom, "where": {c: v for c, v in atom["where"].items() if c not in each}}
            self.first = Selection(tables, study, term, each)
            return
        self.first = Selection(tables, study, atom, each)
        if minus := atom.get("minus"):
            self.second = Selection(tables, study, minus, {**each, **minus["each"]})
        if given := atom.get("given"):
            self.given = Selection(tables, study, given, each)
            if "minus" in given:
                self.given_minus = Selection(tables, study, given["minus"], each)

    def finding(self, cell: dict, other: dict) -> Finding:
        finding = _finding(self.atom, cell, other)
        try:
            self._check_given(cell)
            if "nearer" in self.atom:
                finding.interval = self._nearer(cell, finding.notes)
            else:
                finding.interval = self._interval(cell, other, finding.notes)
        except NotEvaluable as reason:
            finding.missing = str(reason)
        return finding

    def _check_given(self, cell: dict) -> None:
        """`given` is about points, not intervals: it says which cells are to be judged at all."""
        if self.given is None:
            return
        given = self.atom["given"]
        value = self.given.per_seed(cell).mean()
        if self.given_minus is not None:
            value -= self.given_minus.per_seed(cell).mean()
        if not given["bound"].holds(value):
            told = f"{given['metric']} is {value:.3g}, has to be {given['bound'].text}"
            raise NotEvaluable(given["otherwise"] or told)

    def _interval(self, cell: dict, other: dict, notes: list[str]) -> Interval:
        first = self.first.per_seed(cell, self._solved({**self.atom["where"], **cell}, notes))
        if self.second is None:
            interval = statistics.student(first) if len(first) > 1 else self._within(cell)
        else:
            cell = {**cell, **other}
            solved = self._solved({**cell, **self.atom["minus"]["where"]}, notes)
            interval = _difference(first, self.second.per_seed(cell, solved), self.atom["minus"]["pairing"])
        notes += _notes(interval, over_seeds=len(first) > 1)
        return interval

    def _within(self, cell: dict) -> Interval:
        rows = self.first.rows(cell)
        if len(rows) == 1 and {"low", "high"} <= set(rows.columns):
            value, low, high = rows[["value", "low", "high"]].iloc[0]
            if np.isfinite([low, high]).all():
                return statistics.within(value, low, high)
        raise NotEvaluable("1 seed and no interval inside the model")

    def _solved(self, cell: dict, notes: list[str]) -> set[int] | None:
        """The seeds that a shape is judged on; None when the atom is no shape."""
        if not self.atom.get("solved"):
            return None
        solved, seeds = self.tables.solved_seeds(self.study, cell)
        rate = f"{cell['task']}, {cell['architecture']}: {len(solved)} of {seeds} seeds solved"
        if self.scale == "smoke":
            raise NotEvaluable(f"shapes are not judged at smoke, {rate}")
        if len(solved) < 2:
            raise NotEvaluable(f"{rate}, needs 2")
        if rate not in notes:
            notes.append(rate)
        return solved

    def _nearer(self, cell: dict, notes: list[str]) -> Interval:
        own = {**self.atom["where"], **cell}
        to, *others = nearer_cells(self.atom["nearer"])
        cells = {"own": own, "to": {**own, **to}, **{f"than{k}": {**own, **o} for k, o in enumerate(others)}}
        solved = {name: self._solved(group, notes) for name, group in cells.items()}
        samples = {name: self._profiles(group, solved[name]) for name, group in cells.items()}
        if len({profile.shape for group in samples.values() for profile in group.values()}) > 1:
            raise NotEvaluable("profiles of different depth")
        # Between seeds of one cell there has to be a distance even when the jackknife leaves one out.
        needed = 2 if others else 3
        if min(map(len, samples.values())) < needed:
            raise NotEvaluable(f"fewer than {needed} seeds")
        interval = statistics.jackknife(_excess_distance if others else _excess_over_seeds, samples)
        notes += _notes(interval, over_seeds=True)
        return interval

    def _profiles(self, cell: dict, seeds: set[int] | None) -> dict[int, np.ndarray]:
        rows = self.first.rows(cell).sort_values("site")
        groups = rows.groupby("seed")["value"]
        return {seed: group.to_numpy() for seed, group in groups if seeds is None or seed in seeds}


def _difference(first: pd.Series, second: pd.Series, pairing: str | None) -> Interval:
    if pairing == "seed":
        shared = first.index.intersection(second.index)
        first, second = first[shared], second[shared]
    if min(len(first), len(second)) < 2:
        raise NotEvaluable("fewer than 2 seeds")
    return (statistics.paired if pairing == "seed" else statistics.welch)(first.to_numpy(), second.to_numpy())


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.abs(first - second).mean())


def _excess_distance(samples: dict[str, np.ndarray]) -> float:
    """Distance of the mean profile to the one it should be near, minus that to the nearest of the others."""
    mean = {name: profiles.mean(axis=0) for name, profiles in samples.items()}
    others = [_distance(mean["own"], profile) for name, profile in mean.items() if name.startswith("than")]
    return _distance(mean["own"], mean["to"]) - min(others)


def _excess_over_seeds(samples: dict[str, np.ndarray]) -> float:
    """Distance of two mean profiles, minus the mean distance between two seeds of one of them."""
    between = [_distance(a, b) for profiles in samples.values() for a, b in combinations(profiles, 2)]
    return _distance(samples["own"].mean(axis=0), samples["to"].mean(axis=0)) - float(np.mean(between))


def _notes(interval: Interval, over_seeds: bool) -> list[str]:
    notes = [descriptive(interval.n)] if interval.n < FEW_SEEDS else []
    return notes if over_seeds else [*notes, "interval inside the model"]


def descriptive(seeds: int) -> str:
    return f"descriptive ({seeds} seed{'s' if seeds > 1 else ''})"


def _cells(atom: dict, first: Selection | None, second: Selection | None) -> list[tuple[dict, dict]]:
    """The cells of the atom, each with what its `minus` adds to them."""
    others = atom.get("minus", {}).get("each", {})
    return [(cell, other) for cell in _expand(atom["each"], first, {}) for other in _expand(others, second, cell)]


def _expand(each: dict, selection: Selection | None, inside: dict) -> list[dict]:
    """Every combination of the columns' values; words stand for what `selection` has in the cell `inside`."""
    listed = {column: values for column, values in each.items() if isinstance(values, list)}
    cells = [dict(zip(listed, values, strict=True)) for values in product(*listed.values())]
    for column, word in each.items():
        if isinstance(word, str) and selection is not None:
            cells = [
                {**cell, column: value}
                for cell in cells
                for value in selection.offered(column, word, {**inside, **cell})
            ]
    return [{column: cell[column] for column in each if column in cell} for cell in cells]


def _finding(atom: dict, cell: dict, other: dict, missing: str = "") -> Finding:
    minus = atom.get("minus")
    name = atom.get("name") or (f"{atom['metric']} - {minus['metric']}" if minus else atom["metric"])
    return Finding(cell, _label(atom, cell, other), name, bound=atom["bound"], missing=missing)


def _label(atom: dict, cell: dict, other: dict) -> str:
    """A cell in words: `parity, lstm - transformer, length 24, L2`."""
    first = {**{c: v for c, v in atom["where"].items() if c in _FIRST}, **cell}
    second = {**first, **atom.get("minus", {}).get("where", {}), **other}
    parts = []
    for column in [*(c for c in _FIRST if c in first), *(c for c in cell if c not in _FIRST)]:
        here, there = _word(column, first[column]), _word(column, second[column])
        parts.append(here if here == there or column not in _FIRST else f"{here} - {there}")
    return ", ".join(parts)


def _word(column: str, value: object) -> str:
    if isinstance(value, list):
        return "+".join(map(str, value))
    if isinstance(value, str):
        return value
    return f"L{value - 1}" if column == "site" and value >= 1 else f"{column} {value}"
