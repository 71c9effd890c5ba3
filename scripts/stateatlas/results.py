"""The small result tables of the page: solve rates, accuracy by length, the reference run, and the run's
sizes."""

from collections.abc import Iterable

import pandas as pd

from stateatlas import shown
from stateatlas.names import ARCHITECTURES, TASKS, label, ordered, site_label
from stateatlas.sizes import recipe_changes
from stateatlas.statistics import wilson

DESCRIPTIVE = 5  # below so many seeds an interval only describes

# The sizes of the protocol, as at `paper`; a scale that takes fewer says so.
_PROTOCOL = {
    "seeds": ("seeds a cell", 5),
    "train_length": ("training length (tokens)", 40),
    "length_factors": ("evaluation lengths", 5),
    "layers": ("blocks", 4),
    "width": ("width of the residual stream", 128),
    "steps": ("cap on training steps", 20_000),
    "random_draws": ("random subspaces of each size", 20),
    "subspace_sizes": ("sizes of removed subspaces", 6),
    "bootstrap": ("bootstrap draws over sequences", 2000),
}


def solve_rates(behaviour: pd.DataFrame, profiles: pd.DataFrame, tasks: list[str], architectures: list[str]) -> dict:
    """Solved seeds, by architecture (row) and task (column), with Wilson's interval. Rows and columns without any
    run are left out."""
    solved = shown.solved_runs(behaviour, profiles)
    cells = [(task, name) for task, name in solved if task in tasks and name in architectures]
    tasks = ordered((task for task, _ in cells), TASKS)
    rows = []
    for name in ordered((name for _, name in cells), ARCHITECTURES):
        rows.append([label(name), *(_rate(solved.get((task, name), [])) for task in tasks)])
    return {"header": ["", *map(label, tasks)], "rows": rows}


def more_solve_rates(behaviour: pd.DataFrame, profiles: pd.DataFrame, settings: dict) -> list[dict]:
    """The same for what stands beside the paper's own cells, a table each: held-out tasks, then variants of an
    architecture on any task. A table without any run is left out."""
    tasks, names = set(behaviour["task"]), set(behaviour["architecture"])
    recipes = {name for name in names if recipe_changes(name)}
    tuned = names & set(settings["language_models"])
    forms = names - recipes - tuned - set(settings["architectures"])
    found = {
        "Held-out tasks": (tasks - set(settings["tasks"]), settings["architectures"]),
        "Variants of an architecture": (tasks, forms),
        "Language models tuned on a task": (tasks, tuned),
        "Other recipes (std: initial embedding, lr: learning rate in units of the chosen one)": (tasks, recipes),
    }
    tables = [{"title": title, **solve_rates(behaviour, profiles, *cells)} for title, cells in found.items()]
    return [table for table in tables if table["rows"]]


def _cell(main: str, small: str = "", *, paper: str = "", warn: bool = False) -> dict:
    """A table cell as the template prints it: a number, the paper's beside it, and small print below."""
    return {"main": main, "small": small, "paper": paper, "warn": warn}


def _rate(seeds: list[bool]) -> dict:
    if not seeds:
        return _cell("no run")
    share = wilson(sum(seeds), len(seeds))
    limits = f"[{100 * share.low:.0f}, {100 * share.high:.0f}] %"
    return _cell(f"{sum(seeds)} of {len(seeds)}", limits, warn=not all(seeds))


def covered_prefixes(training: pd.DataFrame, tasks: list[str], architectures: list[str]) -> dict:
    """Per architecture (row) and task (column): the longest length at which training had seen 99 % of the test
    sequences' prefixes, median over seeds and each seed."""
    rows = shown.of(shown.trained(training), metric="covered_prefix")
    rows = _of_cells(rows, tasks, architectures)
    tasks = ordered(rows["task"], TASKS)
    body = []
    for name in ordered(rows["architecture"], ARCHITECTURES):
        lengths = [shown.of(rows, architecture=name, task=task)["value"].astype(int) for task in tasks]
        body.append([label(name), *map(_lengths, lengths)])
    return {"header": ["", *map(label, tasks)], "rows": body}


def _lengths(seeds: pd.Series) -> dict:
    return _cell(f"{seeds.median():.0f}", ", ".join(map(str, seeds))) if len(seeds) else _cell("no run")


def _of_cells(rows: pd.DataFrame, tasks: list[str], architectures: list[str]) -> pd.DataFrame:
    return rows[rows["task"].isin(tasks) & rows["architecture"].isin(architectures)]


def accuracy_tables(
    behaviour: pd.DataFrame, probes: pd.DataFrame, tasks: list[str], architectures: list[str]
) -> list[dict]:
    """Token accuracy in per cent, a table a task: models by row, lengths by column, median over seeds and
    each seed."""
    rows = shown.of(shown.trained(behaviour), metric="accuracy").sort_values("seed")
    rows = _of_cells(rows, tasks, architectures)
    base = shown.base_lines(probes)
    tables = []
    for task in ordered(rows["task"], TASKS):
        here = shown.of(rows, task=task)
        lengths = sorted(set(here["length"]))
        body = [
            [
                label(name),
                *(_seeds(shown.of(here, architecture=name, length=length)["value"]) for length in lengths),
            ]
            for name in ordered(here["architecture"], ARCHITECTURES)
        ]
        if task in base:
            body.append(["position + token", *(_seeds(base[task][base[task].index == length]) for length in lengths)])
        tables.append({"title": label(task), "header": ["length", *lengths], "rows": body})
    return tables


def selectivity_tables(probes: pd.DataFrame, tasks: list[str], architectures: list[str]) -> list[dict]:
    """Probe accuracy of the state at the training length in per cent, a table a task: models by row, sites by
    column. Below it the selectivity, accuracy less that of a probe fitted on another sequence's labels (Hewitt and
    Liang, EMNLP 2019), in percentage points. Medians over seeds."""
    rows = shown.of(shown.trained(probes), target="state", metric="accuracy")
    rows = _of_cells(shown.at_training_length(shown.one_half(rows, "both", "measurement")), tasks, architectures)
    keys = ["task", "architecture", "site", "seed"]
    by_control = rows[rows["control"].isin(["none", "shuffled_labels"])].pivot_table("value", keys, "control")
    if "shuffled_labels" not in by_control:
        return []
    selectivity = (by_control["none"] - by_control["shuffled_labels"]).rename("selectivity")
    medians = by_control.join(selectivity).groupby(level=keys[:3])[["none", "selectivity"]].median() * 100
    tables = []
    for task in ordered(medians.index.get_level_values("task"), TASKS):
        here = medians.loc[task]
        names, sites = (
            ordered(here.index.get_level_values(0), ARCHITECTURES),
            sorted(set(here.index.get_level_values(1))),
        )
        body = [[label(name), *(_selectivity(here, (name, site)) for site in sites)] for name in names]
        tables.append({"title": label(task), "header": ["", *map(site_label, sites)], "rows": body})
    return tables


def _selectivity(medians: pd.DataFrame, cell: tuple[str, int]) -> dict:
    accuracy, selectivity = medians.loc[cell] if cell in medians.index else (None, None)
    return _cell("" if accuracy is None else f"{accuracy:.1f}", "" if pd.isna(selectivity) else f"{selectivity:+.1f}")


def _seeds(values: pd.Series, paper: str = "") -> dict:
    """The median in per cent, and below it each seed where there are several."""
    if values.empty:
        return _cell("", paper=paper)
    each = " ".join(f"{100 * value:.1f}" for value in values) if len(values) > 1 else ""
    return _cell(f"{100 * values.median():.1f}", each, paper=paper)


def reference_cells(reference: dict[str, pd.DataFrame], published: dict) -> dict:
    """Probe accuracy of the reference run in per cent beside the paper's, a row a cell that exists."""
    probes = shown.of(shown.trained(reference["probes"]), target="state", control="none", metric="accuracy")
    probes = shown.at_training_length(shown.one_half(probes, "both", "measurement")).sort_values("seed")
    blocks = sorted(site for site in set(probes["site"]) if site >= 1)
    printed = published.get("encoding", {}).get("probe_accuracy", {}).get("cells", {})
    solved = shown.solved_seeds(reference["profiles"])
    rows, missing = [], []
    for task in ordered({*probes["task"], *printed}, TASKS):
        here = shown.of(probes, task=task)
        for name in ordered({*here["architecture"], *printed.get(task, {})}, ARCHITECTURES):
            cell, paper = shown.of(here, architecture=name), printed.get(task, {}).get(name)
            if cell.empty:
                missing.append(f"{label(name)} on {label(task)}")
                continue
            seeds = solved.get((task, name), [])
            count = _cell(f"{sum(seeds)} of {len(seeds)}", warn=not all(seeds))
            by_block = [
                _seeds(shown.of(cell, site=site)["value"], f"paper {paper[site - 1]}" if paper else "")
                for site in blocks
            ]
            rows.append([label(task), label(name), count, *by_block])
    return {
        "header": ["task", "model", "solved", *map(site_label, blocks)],
        "rows": rows,
        "missing": missing,
        "length": ", ".join(str(length) for length in sorted(set(probes["length"]))),
        "descriptive": probes.groupby(["task", "architecture"])["seed"].nunique().min() < DESCRIPTIVE,
    }


def sizes(settings: dict) -> list[dict]:
    """What this scale takes fewer of than the protocol: name, protocol's number, ours. Empty at full size."""
    fewer = []
    for key, (name, full) in _PROTOCOL.items():
        if key not in settings:
            continue
        numbers = per_task(settings[key], settings["tasks"])
        if min(numbers.values()) < full:
            fewer.append({"name": name, "protocol": full, "ours": _written(numbers)})
    return fewer


def per_task(value, tasks: list[str]) -> dict[str, int]:
    """A setting as a number per task (a mapping may have a `default`); of a list its length counts."""
    if isinstance(value, dict):
        return {task: value.get(task, value.get("default")) for task in tasks}
    return dict.fromkeys(tasks, len(value) if isinstance(value, (list, tuple)) else value)


_EXTRAS = {  # what stands beside the paper's own cells -> what it is
    "edited": "erased from and patched",
    "held_out": "held-out tasks and targets",
    "attribution": "with and without the convolution",
    "recipes": "the recipe grid",
}
_SEEDS = {"attribution": 6, "recipes": 3}  # of the extras, where the protocol names them
_HELD_OUT = 5  # tasks and targets
_FORMAL = ("parity", "s3", "dyck")  # what the protocol tunes language models on, and trains without a convolution
_GRID = {"embedding_std": "initial scales of the embedding", "learning_rate": "learning rates"}


def narrower(settings: dict) -> list[dict]:
    """What this scale leaves out of the experiments beside the paper's own cells, in the shape of `sizes`."""
    found = []

    def some(name: str, chosen: list | set, full: int, order: Iterable[str]) -> None:
        if len(chosen) < full:
            found.append({"name": name, "protocol": full, "ours": ", ".join(map(label, ordered(chosen, order)))})

    for name, text in _EXTRAS.items():
        if name not in settings["extras"]:
            found.append({"name": text, "protocol": "yes", "ours": "no"})
        elif name != "attribution":
            some(f"architectures: {text}", settings[name]["architectures"], len(ARCHITECTURES), ARCHITECTURES)
    for name, full in _SEEDS.items():
        if name in settings["extras"] and (seeds := settings[name].get("seeds", full)) < full:
            found.append({"name": f"seeds: {_EXTRAS[name]}", "protocol": full, "ours": seeds})
    if "held_out" in settings["extras"]:
        some(_EXTRAS["held_out"], settings["held_out"]["tasks"], _HELD_OUT, TASKS)
    if "attribution" in settings["extras"]:
        some(f"tasks: {_EXTRAS['attribution']}", settings["attribution"]["tasks"], len(_FORMAL), TASKS)
    if "recipes" in settings["extras"]:
        for key, text in _GRID.items():
            if (ours := 1 + len(settings["recipes"][key])) < 3:  # the chosen one is not listed
                found.append({"name": f"{text} of the recipe grid", "protocol": 3, "ours": ours})
    if "language" in settings["extras"]:
        tuned = {task for tasks in settings["language"]["cells"].values() for task in tasks}
        some("tasks that language models are tuned on", tuned, len(_FORMAL), TASKS)
    return found


def minis(table: pd.DataFrame) -> dict:
    """Held-out nats a token of every mini beside the bigram model's; one that is not good enough is marked."""
    body = []
    for name, rows in table.groupby("model"):
        at_end = rows[rows["metric"].str.startswith("final_")].set_index("metric")["value"]
        steps = str(int(rows["step"].max()))
        enough = bool(at_end["final_good_enough"])
        gain = _cell(f"{at_end['final_gain']:.2f}", "" if enough else "not good enough to study", warn=not enough)
        losses = [f"{at_end[f'final_{key}']:.2f}" for key in ("test_nats", "bigram_test_nats")]
        body.append([label(str(name)), steps, *map(_cell, losses), gain])
    return {"header": ["", "steps", "nats a token", "bigram model", "better by"], "rows": body}


_STUDIES = {  # of studies B and C: what a scale may take fewer of, and the protocol's number
    "response": ("B", {"directions": ("random directions at a place", 16), "prompts": ("prompts", 32)}),
    "sink": (
        "C",
        {
            "windows": ("windows a corpus and boundary", 200),
            "draws": ("control sets of each kind", 30),
            "boundaries": ("boundaries", 2),
        },
    ),
}
_CELLS = ("evaluated", "not applicable", "no controls at this scale", "no units", "no complement")


def smaller(settings: dict) -> list[dict]:
    """What this scale takes fewer of in studies B and C, in the shape of `sizes`."""
    found = []
    for study, (letter, names) in _STUDIES.items():
        for key, (text, full) in names.items() if study in settings["studies"] else ():
            if (ours := per_task(settings[study][key], [""])[""]) < full:
                found.append({"name": f"study {letter}: {text}", "protocol": full, "ours": ours})
    return found


def unit_cells(cells: pd.DataFrame, published: dict) -> dict:
    """How many cells of study C's grid were planned and evaluated, and why the others were not, beside the paper's."""
    body = []
    for name, rows in cells.groupby("architecture", sort=False):
        counts = rows["status"].value_counts()
        numbers = [len(rows), *(int(counts.get(status, 0)) for status in _CELLS)]
        body.append([label(str(name)), *(_cell(f"{number:,}") for number in numbers)])
    printed = published.get("sink", {}).get("cells")
    if printed:
        known = [printed["planned"], printed["evaluated"]]
        body.append(["paper", *(_cell(f"{number:,}") for number in known), *[_cell("")] * (len(_CELLS) - 1)])
    return {"header": ["", "planned", *_CELLS], "rows": body}


def _written(numbers: dict[str, int]) -> str:
    if len(set(numbers.values())) == 1:
        return str(next(iter(numbers.values())))
    return ", ".join(f"{label(task)} {number}" for task, number in numbers.items())
