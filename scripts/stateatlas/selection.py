"""The rows that a term of a claim names, and the one number a seed that they come to.

A term is a dict with `table`, `metric`, `where` (column -> value, list of values, or a word) and `mean`
(columns averaged inside a seed). Unless `where` says otherwise only trained models, the training length and
single seeds count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

import pandas as pd

from stateatlas.claims import ClaimError

RUN = ["study", "task", "architecture", "model", "seed"]
_DEFAULTS = {"model": "trained", "length": "training"}
_MEASURED = {"value", "n", "low", "high"}


class NotEvaluable(Exception):
    """Why there is no number for an atom."""


class Tables:
    """The tables by name, and what all terms need to know of them."""

    def __init__(self, tables: Mapping[str, pd.DataFrame]):
        self._tables = tables
        self._training: dict[str, pd.Series] = {}

    def get(self, name: str) -> pd.DataFrame:
        if self._tables.get(name) is None:
            raise NotEvaluable(f"table {name} not computed")
        return self._tables[name]

    def training_lengths(self, name: str) -> pd.Series:
        """Models are evaluated at their training length and beyond: it is the smallest length of a task."""
        if name not in self._training:
            self._training[name] = self.get(name).groupby("task")["length"].min()
        return self._training[name]

    def per_run(self, metric: str) -> pd.DataFrame:
        """A whole-profile index of every run: its identity columns and one named after the metric."""
        profiles = self.get("profiles")
        rows = profiles[(profiles["metric"] == metric) & (profiles["seed"] >= 0)]
        return rows[[*RUN, "value"]].rename(columns={"value": metric})

    def solved_seeds(self, study: str, cell: dict) -> tuple[set[int], int]:
        """The solved seeds of a cell (task, architecture; model trained unless said), and how many it has.

        Raises NotEvaluable when it has none.
        """
        key = (study, cell["task"], cell["architecture"], cell.get("model", _DEFAULTS["model"]))
        seeds = self._solved.get(key)
        if seeds is None:
            known = any(other[:2] == key[:2] for other in self._solved)
            raise NotEvaluable(f"{key[1]}, {key[2]} not run" if known else f"{key[1]} not run")
        return {seed for seed, solved in seeds.items() if solved}, len(seeds)

    @cached_property
    def _solved(self) -> dict[tuple, dict[int, bool]]:
        cells: dict[tuple, dict[int, bool]] = defaultdict(dict)
        for *cell, seed, solved in self.per_run("solved").itertuples(index=False):
            cells[tuple(cell)][seed] = solved == 1
        return dict(cells)


class Selection:
    """The rows of one term, narrowed by all that is the same in every atom.

    `each` has the columns that differ from atom to atom, with their values or a word; what the table lacks,
    or the term sets itself, is not looked at.
    """

    def __init__(self, tables: Tables, study: str, term: dict, each: Mapping[str, list | str]):
        self.term, self._study, self._tables = term, study, tables
        frame = tables.get(term["table"])
        self._free = [c for c in each if c in frame.columns and c not in term["where"]]
        where = self._conditions(frame)
        self._listed = {column: wanted for column, wanted in where.items() if isinstance(wanted, list)}
        best = where.get("site") == "best" and where.pop("site")
        where |= {column: each[column] for column in self._free if isinstance(each[column], list)}
        keep = frame["value"].notna()
        for column, wanted in where.items():
            keep &= self._matches(frame, column, wanted)
        if "seed" not in where:
            keep &= frame["seed"] >= 0
        self._frame = self._at_best_site(frame[keep]) if best else frame[keep]
        self._check_one_row_a_seed()

    def rows(self, cell: dict) -> pd.DataFrame:
        """The rows of one atom; raises NotEvaluable when there are none, or a listed value has none."""
        rows = self._rows(cell)
        asked = {column: cell[column] for column in self._free if column in cell}
        if rows.empty:
            raise NotEvaluable(self._lacks(asked))
        for column, wanted in self._listed.items():
            if lacking := [value for value in wanted if value not in set(rows[column])]:
                raise NotEvaluable(self._lacks({**asked, column: lacking[0]}))
        return rows

    def per_seed(self, cell: dict, seeds: set[int] | None = None) -> pd.Series:
        """One number a seed (of `seeds` only, if given). Seeds that lack a part of the mean are left out."""
        if self._listed or self._key(cell) not in self._means:
            self.rows(cell)
        means = self._means[self._key(cell)]
        means = {seed: mean for seed, mean in means.items() if seeds is None or seed in seeds}
        whole = max((size for _, size in means.values()), default=0)
        return pd.Series({seed: mean for seed, (mean, size) in means.items() if size == whole}, dtype=float)

    def offered(self, column: str, word: str, cell: dict) -> list:
        """What `longer`, `blocks` or `present` stands for in a cell; if nothing, the word itself."""
        rows = self._rows(cell)
        if word == "longer":
            rows = rows[self._matches(rows, "length", "longer")]
        elif word == "blocks":
            rows = rows[rows["site"] >= 1]
        return sorted(rows[column].unique()) or [word]

    def _rows(self, cell: dict) -> pd.DataFrame:
        keep = pd.Series(True, index=self._frame.index)
        for column in self._free:
            if column in cell:
                keep &= self._frame[column] == cell[column]
        return self._frame[keep]

    def _key(self, cell: dict) -> tuple:
        return tuple(cell.get(column) for column in self._free)

    @cached_property
    def _means(self) -> dict[tuple, dict[int, tuple[float, int]]]:
        """Full cell -> seed -> mean and number of rows, all cells at once: singly it would take seconds."""
        means: dict[tuple, dict[int, tuple[float, int]]] = defaultdict(dict)
        groups = self._frame.groupby([*self._free, "seed"])["value"].agg(["mean", "size"]).reset_index()
        for *key, seed, mean, size in groups.itertuples(index=False):
            means[tuple(key)][seed] = mean, size
        return dict(means)

    def _conditions(self, frame: pd.DataFrame) -> dict:
        defaults = {c: v for c, v in _DEFAULTS.items() if c in frame.columns and c not in self._free}
        if "task" not in frame.columns:
            defaults.pop("length", None)
        return {"study": self._study, "metric": self.term["metric"], **defaults, **self.term["where"]}

    def _matches(self, frame: pd.DataFrame, column: str, wanted) -> pd.Series:
        if isinstance(wanted, list):
            return frame[column].isin(wanted)
        if column == "length" and isinstance(wanted, str):
            if wanted == "all":
                return frame["length"].notna()
            # As numbers even without rows, where the map of no names is a column of no names.
            training = frame["task"].map(self._tables.training_lengths(self.term["table"])).astype(float)
            return frame["length"] > training if wanted == "longer" else frame["length"] == training
        return frame[column] == wanted

    def _at_best_site(self, frame: pd.DataFrame) -> pd.DataFrame:
        merged = frame.merge(self._tables.per_run("best_site"), on=RUN)
        return merged[merged["site"] == merged["best_site"]].drop(columns="best_site")

    def _lacks(self, asked: dict) -> str:
        told = {**{c: v for c, v in self.term["where"].items() if c in ("task", "architecture")}, **asked}
        words = [v if isinstance(v, str) else f"{c} {v}" for c, v in told.items() if not isinstance(v, list)]
        return f"no {self.term['metric']} in {self.term['table']} for {', '.join(words) or 'any cell'}"

    def _check_one_row_a_seed(self) -> None:
        """Averaging over a column that nobody named would hide a mistake in a claim."""
        cell = ["seed", *self._free, *self.term["mean"]]
        doubles = self._frame[self._frame.duplicated(cell, keep=False)]
        if doubles.empty:
            return
        first = doubles[(doubles[cell] == doubles[cell].iloc[0]).all(axis=1)]
        several = [c for c in first.columns if c not in _MEASURED and len(set(first[c])) > 1]
        what = f"{several[0]} takes several values in one cell" if several else "rows stand twice"
        raise ClaimError(
            f"table {self.term['table']}, metric {self.term['metric']}: {what}; "
            + ("name it in where, each or mean" if several else "delete the table and run again")
        )
