"""Made-up tables with the columns of the real ones, at the size of a laptop run. The numbers only look
plausible."""

import fake_edits
import fake_fields
import fake_units
import numpy as np
import pandas as pd

from stateatlas.tables import SCHEMAS

TASKS = ("parity", "s3", "dyck")
ARCHITECTURES = ("transformer", "mamba", "mamba2", "lstm", "gru")
STATES = {"parity": 2, "s3": 6, "dyck": 5, "mod3": 3, "z6": 6, "queue": 3, "dyck-parity": 2}
COLUMNS = {name: columns for name, columns in SCHEMAS.items() if name != "claims"}
MADE = [name for name in COLUMNS if name != "recipes"]  # that one is derived
# Readability r by site (embedding, L0..L3) of a solved model.
SHAPES = {
    ("parity", "transformer"): (0, 0.15, 0.55, 0.95, 1),
    ("s3", "transformer"): (0, 0.2, 0.5, 0.8, 1),
    ("dyck", "transformer"): (0.3, 0.98, 1, 1, 1),
    ("dyck", "mamba"): (0, 0.5, 1, 1, 1),
}
LATE = {"parity": (0, 0.1, 0.2, 0.4, 1), "s3": (0, 0.1, 0.25, 0.5, 1), "dyck": (0, 0.6, 0.9, 1, 1)}
LATE |= {"z6": (0, 0.2, 0.3, 0.6, 1), "queue": (0, 0.2, 0.7, 1, 1)}


class FakeRun:
    """One run of the formal half of study A: `tables()` gives a frame per table name."""

    def __init__(
        self,
        length=16,
        seeds=3,
        tasks=TASKS,
        architectures=ARCHITECTURES,
        unsolved=(("s3", "mamba", 2), ("s3", "transformer", 1)),
        others=False,
    ):
        self.others = others  # whether it has the tables of studies B and C too
        self.random = np.random.default_rng(7)
        self.seeds, self.tasks, self.architectures, self.unsolved = range(seeds), tasks, architectures, set(unsolved)
        self.lengths = [int(length * factor) for factor in (1, 1.5, 2, 2.5, 3)]
        self.rows = {name: [] for name in MADE}
        self.width = 32

    def tables(self) -> dict[str, pd.DataFrame]:
        for task in self.tasks:
            for target in ("state", "stack_top") if task == "dyck" else ("state",):
                for length in self.lengths:
                    values = (self.base(task, length), 512, np.nan, np.nan)
                    here = (task, "-", "-", -1, length, -1, target, "position_token", "both", "accuracy")
                    self.add("probes", *here, *values)
            for architecture in self.architectures:
                for seed in self.seeds:
                    self.cell(task, architecture, seed)
                self.mean_profile(task, architecture)
        for table, values in fake_units.rows(self.random) if self.others else ():
            self.rows[table].append(("sink", *values))
        for table, values in fake_fields.rows(self.random) if self.others else ():
            self.rows[table].append(("response", *values))
        of_others = (*fake_units.TABLES, *fake_fields.TABLES)
        kept = {name: rows for name, rows in self.rows.items() if self.others or name not in of_others}
        tables = {name: pd.DataFrame(rows, columns=COLUMNS[name]) for name, rows in kept.items()}
        return tables | {"recipes": pd.DataFrame(columns=COLUMNS["recipes"])}

    def states(self, task):
        return STATES.get(task, 2)

    def add(self, table, *values):
        self.rows[table].append(("encoding", *values))

    def base(self, task, length):
        return {"dyck": 0.41}.get(task, 1 / self.states(task)) + 0.001 * (40 - length) / 40

    def is_solved(self, task, architecture, seed):
        return (task, architecture, seed) not in self.unsolved

    def shape(self, task, architecture, seed):
        r = np.array(SHAPES.get((task, architecture), LATE.get(task, LATE["parity"])), float)
        return r * (1 if self.is_solved(task, architecture, seed) else 0.35)

    def accuracy(self, task, architecture, seed, length):
        if not self.is_solved(task, architecture, seed):
            return 0.3
        fall = {"transformer": 0.25, "mamba": 0.12, "mamba2": 0.1, "mamba-noconv": 0.2}.get(architecture, 0.001)
        return 0.999 - fall * (length / self.lengths[0] - 1) * (1 + 0.2 * seed)

    def cell(self, task, architecture, seed):
        self.training(task, architecture, seed)
        for model in ("trained", "untrained") + (("capped",) if seed == 0 else ()):
            who = (task, architecture, model, seed)
            for length in self.lengths:
                value = self.accuracy(task, architecture, seed, length)
                value = self.base(task, length) if model == "untrained" else value
                self.add("behaviour", *who, length, "accuracy", value, 4000, value - 0.004, value + 0.004)
                self.add("behaviour", *who, length, "solved_prefix", length * value, 256, np.nan, np.nan)
            self.probes(who)
            if model != "untrained":
                self.profile(who)
            if model == "trained":
                self.edits(who)

    def edits(self, who):
        self.ablations(who)
        self.refits(who)
        for table, values in (*fake_edits.erasures(self, who), *fake_edits.patches(self, who)):
            self.add(table, *values)

    def training(self, task, architecture, seed):
        stop = int(self.random.integers(300, 1500)) if self.is_solved(task, architecture, seed) else 4000
        for step in range(50, stop + 1, 50):
            rise = 1 / (1 + np.exp(-10 * (step / stop - 0.7)))
            value = self.base(task, 16) + (0.998 - self.base(task, 16)) * rise * (1 if stop < 4000 else 0.3)
            for metric, shown in (("train_loss", 1 - value), ("validation_accuracy", value), ("length", 16)):
                self.add("training", task, architecture, "trained", seed, step, metric, shown, 4096)
        self.add("training", task, architecture, "trained", seed, stop, "stop_step", stop, 1)
        self.add("training", task, architecture, "trained", seed, stop, "cap", 4000, 1)
        self.add("training", task, architecture, "trained", seed, stop, "covered_prefix", 9, 1)

    def probes(self, who):
        task, architecture, model, seed = who
        for target in ("state", "stack_top") if task == "dyck" else ("state",):
            for length in self.lengths:
                base = self.base(task, length)
                for site, learnt in enumerate(self.shape(task, architecture, seed)):
                    r = min(0.05 * site, learnt) if model == "untrained" else learnt
                    top = base + (1 - base) * r * (1 - 0.2 * (length / self.lengths[0] - 1) / 2)
                    for control, middle in (("none", top), ("shuffled_labels", base * 0.9)):
                        for half in ("selection", "measurement", "both"):
                            value = float(np.clip(middle + self.random.normal(0, 0.004), 0, 1))
                            self.add(
                                "probes",
                                *who,
                                length,
                                site,
                                target,
                                control,
                                half,
                                "accuracy",
                                value,
                                2000,
                                value - 0.01,
                                value + 0.01,
                            )

    def profile(self, who):
        task, architecture, _, seed = who
        r = np.clip(self.shape(task, architecture, seed)[1:] + self.random.normal(0, 0.01, 4), 0, 1)
        self.indices(who, r, solved=float(self.is_solved(task, architecture, seed)))

    def indices(self, who, r, **more):
        rise = np.diff(r, prepend=0)
        for site in range(1, 5):
            self.add("profiles", *who, self.lengths[0], site, "r", r[site - 1])
            self.add("profiles", *who, self.lengths[0], site, "rise", rise[site - 1])
        whole = {
            "base": self.base(who[0], self.lengths[0]),
            "concentration": rise.max(),
            "centre": (1 - r).mean(),
            "first_readable": r[:2].max(),
        }
        whole |= {
            "best_site": 1 + int(np.argmax(r > r.max() - 0.005)),
            "largest_rise_site": 1 + int(rise.argmax()),
            "late_rise_margin": rise[-1] - rise[:-1].max(),
        }
        for metric, value in (whole | more).items():
            self.add("profiles", *who, self.lengths[0], -1, metric, float(value))

    def mean_profile(self, task, architecture):
        solved = [seed for seed in self.seeds if self.is_solved(task, architecture, seed)]
        if solved:
            self.indices(
                (task, architecture, "trained", -1),
                np.mean([self.shape(task, architecture, s)[1:] for s in solved], axis=0),
            )

    def ablations(self, who):
        task, architecture, _, seed = who
        rank = self.states(task) - 1
        depth = self.shape(task, architecture, seed)
        for length in self.lengths:
            clean = self.accuracy(task, architecture, seed, length)
            room = clean - self.base(task, length)
            self.add(
                "ablations",
                *who,
                length,
                -1,
                "clean",
                "none",
                0,
                0,
                "measurement",
                "accuracy",
                clean,
                2000,
                clean - 0.01,
                clean + 0.01,
            )
            for site in range(5):
                for method, strength in (("zero", 1), ("mean", 0.9), ("resample", 1.1)):
                    edits = [("top_direction", 1, 0, 0.7), ("row_space", rank, 0, 0.95)]
                    edits += [
                        (s, k, 0, 1 - 0.6 ** (k * w))
                        for k in (1, 2, 4, 8, 16, 32)
                        for s, w in (("pca", 0.5), ("probe_singular", 1.2))
                    ]
                    edits += [
                        ("random", k, draw, 0.01 * k * self.random.random())
                        for k in {1, rank, 2, 4, 8, 16, 32}
                        for draw in range(5)
                    ]
                    for subspace, k, draw, share in edits:
                        value = clean - room * min(1, share * strength) * (0.3 + 0.7 * depth[site]) * (
                            0.9 + 0.1 * self.random.random()
                        )
                        self.add(
                            "ablations",
                            *who,
                            length,
                            site,
                            method,
                            subspace,
                            k,
                            draw,
                            "measurement",
                            "accuracy",
                            value,
                            2000,
                            np.nan,
                            np.nan,
                        )

    def refits(self, who):
        task, architecture, _, seed = who
        base, length = self.base(task, self.lengths[0]), self.lengths[0]
        for site, r in enumerate(self.shape(task, architecture, seed)):
            original = base + (1 - base) * r
            for subspace, k, draw, left in [
                ("top_direction", 1, 0, 0.2),
                ("row_space", self.states(task) - 1, 0, 0),
            ] + [("random", k, draw, 0.97) for k in {1, self.states(task) - 1} for draw in range(5)]:
                values = {
                    "accuracy_original": original,
                    "accuracy_ablated": base + (original - base) * left,
                    "accuracy_refitted": original - 0.01 * k * self.random.random(),
                }
                for metric, value in values.items():
                    self.add(
                        "refits",
                        *who,
                        length,
                        site,
                        "state",
                        subspace,
                        k,
                        draw,
                        "measurement",
                        metric,
                        value,
                        2000,
                        np.nan,
                        np.nan,
                    )


def fake_settings(**more) -> dict:
    """What the figure rule hands to `draw`, without published numbers and without a reference run."""
    known = {
        "scale": "laptop",
        "studies": ["encoding"],
        "tasks": list(TASKS),
        "architectures": list(ARCHITECTURES),
        "layers": 4,
        "seeds": 3,
        "width": 32,
        "extras": ["edited", "held_out", "attribution", "recipes"],
        "edited": {"tasks": list(TASKS), "architectures": list(ARCHITECTURES)},
        "held_out": {
            "tasks": ["mod3", "z6", "queue", "dyck-parity"],
            "architectures": ["transformer", "mamba", "lstm"],
        },
        "attribution": {"tasks": list(TASKS), "architectures": ["mamba", "mamba-noconv"], "seeds": 6},
        "recipes": {
            "tasks": ["parity", "dyck"],
            "architectures": ["transformer", "mamba", "lstm"],
            "embedding_std": [0.02, 1.0],
            "learning_rate": [],
        },
        "training": {"embedding_std": 0.1},
        "language_models": {name: {"family": family} for name, family in fake_units.MODELS.items()},
        "sink": {"models": list(fake_units.MODELS), "corpora": list(fake_units.CORPORA)},
    }
    return {**known, "train_length": dict.fromkeys(TASKS, 16), "reference": {}, "published": {}, **more}
