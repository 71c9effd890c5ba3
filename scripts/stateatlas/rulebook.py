"""The rules as data: where each one's results lie, what it needs from the settings, and what it reads."""

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stateatlas.canonical import PACKAGE
from stateatlas.sizes import architecture, lengths, per_task, recipe

STUDY = "encoding"
TABLES = {
    "training": "train",
    "behaviour": "ablate",
    "probes": "probe",
    "ablations": "ablate",
    "refits": "refit",
}
FIGURES = sorted(p.stem for p in (PACKAGE / "figures").glob("[a-z]*.py") if p.stem not in ("style",))

Wildcards = dict[str, str]
Settings = dict


@dataclass(frozen=True)
class Rule:
    """One rule of the workflow.

    `folder` is where its results lie, `env` names its environment, `fields` gives what it needs from the settings,
    `upstream` the jobs whose results it reads, `modules` what it loads by name, `data` the committed files it reads.
    """

    folder: str
    env: str
    wildcards: tuple[str, ...] = ()
    fields: Callable[[Settings, Wildcards], dict] = lambda s, w: {}
    upstream: Callable[[Settings, Wildcards], list[tuple[str, Wildcards]]] = lambda s, w: []
    modules: Callable[[Wildcards], list[str]] = lambda w: []
    data: tuple[str, ...] = ()
    runs_model: bool = field(default=False)


def _cell(w: Wildcards) -> Wildcards:
    return {key: w[key] for key in ("task", "architecture", "seed")}


def _task(w: Wildcards) -> Wildcards:
    return {"task": w["task"]}


def _sizes(*keys: str) -> Callable[[Settings, Wildcards], dict]:
    return lambda s, w: {key: s[key] for key in keys}


def _sample_fields(s: Settings, w: Wildcards) -> dict:
    return {
        "train_length": per_task(s["train_length"], w["task"]),
        "lengths": lengths(s, w["task"]),
    } | _sizes("root_seed", "validation", "fit", "test")(s, w)


def _train_fields(s: Settings, w: Wildcards) -> dict:
    module, form = architecture(w["architecture"])
    return {
        "block": module,
        "form": form,
        "train_length": per_task(s["train_length"], w["task"]),
        "recipe": {**recipe(s, w["task"]), "steps": per_task(s["steps"], w["task"])},
        "to_cap": int(w["seed"]) < s["capped_seeds"],
    } | _sizes("root_seed", "width", "layers")(s, w)


def _record_fields(s: Settings, w: Wildcards) -> dict:
    return {"block": architecture(w["architecture"])[0], "train_length": per_task(s["train_length"], w["task"])}


def _ablate_fields(s: Settings, w: Wildcards) -> dict:
    sizes = [k for k in s["subspace_sizes"] if k <= s["width"] / 2]
    return {
        "block": architecture(w["architecture"])[0],
        "subspace_sizes": sizes,
        "train_length": per_task(s["train_length"], w["task"]),
        "lengths": lengths(s, w["task"]),
    } | _sizes("root_seed", "random_draws", "bootstrap")(s, w)


def _probe_fields(s: Settings, w: Wildcards) -> dict:
    return {"train_length": per_task(s["train_length"], w["task"])} | _sizes("root_seed", "bootstrap")(s, w)


def _block(w: Wildcards) -> list[str]:
    return [f"blocks/{architecture(w['architecture'])[0]}.py"]


def cells(s: Settings) -> Iterator[Wildcards]:
    """Every trained cell: task, architecture, seed."""
    for task, name, seed in itertools.product(s["tasks"], s["architectures"], range(s["seeds"])):
        yield {"task": task, "architecture": name, "seed": str(seed)}


def _collected(s: Settings, w: Wildcards) -> list[tuple[str, Wildcards]]:
    base = [("base_probe", {"task": task}) for task in s["tasks"]] if w["table"] == "probes" else []
    return base + [(TABLES[w["table"]], cell) for cell in cells(s)]


def _all_tables(s: Settings, w: Wildcards) -> list[tuple[str, Wildcards]]:
    return [("collect", {"table": table}) for table in TABLES] + [("derive", {})]


def figure_tables(figure: str) -> tuple[str, ...]:
    """Return the tables that a figure's module names in its literal `TABLES`."""
    for node in ast.parse((PACKAGE / "figures" / f"{figure}.py").read_bytes()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "TABLES":
            return ast.literal_eval(node.value)
    raise ValueError(f"figures/{figure}.py: no literal TABLES")


def table_job(table: str) -> tuple[str, Wildcards]:
    """Return the job that makes a whole-study table."""
    return {"profiles": ("derive", {}), "claims": ("judge", {})}.get(table, ("collect", {"table": table}))


def _shown(s: Settings, w: Wildcards) -> dict:
    """What figures and the page say about the run."""
    return {"settings": s}


RULES = {
    "sample": Rule(
        f"{STUDY}/sequences/{{task}}",
        "analysis",
        ("task",),
        _sample_fields,
        modules=lambda w: [f"tasks/{w['task']}.py"],
    ),
    "train": Rule(
        f"{STUDY}/models/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        _train_fields,
        lambda s, w: [("sample", _task(w))],
        lambda w: [f"tasks/{w['task']}.py", *_block(w)],
        runs_model=True,
    ),
    "record": Rule(
        f"{STUDY}/states/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        _record_fields,
        lambda s, w: [("sample", _task(w)), ("train", _cell(w))],
        _block,
        runs_model=True,
    ),
    "base_probe": Rule(
        f"{STUDY}/base/{{task}}",
        "analysis",
        ("task",),
        lambda s, w: {"lengths": lengths(s, w["task"])} | _probe_fields(s, w),
        lambda s, w: [("sample", _task(w))],
    ),
    "probe": Rule(
        f"{STUDY}/probes/{{task}}/{{architecture}}/seed{{seed}}",
        "analysis",
        ("task", "architecture", "seed"),
        _probe_fields,
        lambda s, w: [("sample", _task(w)), ("record", _cell(w))],
    ),
    "ablate": Rule(
        f"{STUDY}/ablations/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        _ablate_fields,
        lambda s, w: [("sample", _task(w)), ("train", _cell(w)), ("record", _cell(w)), ("probe", _cell(w))],
        _block,
        runs_model=True,
    ),
    "refit": Rule(
        f"{STUDY}/refits/{{task}}/{{architecture}}/seed{{seed}}",
        "analysis",
        ("task", "architecture", "seed"),
        lambda s, w: _probe_fields(s, w) | {"random_draws": s["random_draws"]},
        lambda s, w: [("sample", _task(w)), ("record", _cell(w)), ("probe", _cell(w))],
    ),
    "collect": Rule(f"{STUDY}/tables/{{table}}", "analysis", ("table",), upstream=_collected),
    "derive": Rule(
        f"{STUDY}/tables/profiles",
        "analysis",
        fields=lambda s, w: {"train_length": {task: per_task(s["train_length"], task) for task in s["tasks"]}},
        upstream=lambda s, w: [("collect", {"table": "probes"}), ("collect", {"table": "behaviour"})],
    ),
    "judge": Rule(
        "claims",
        "analysis",
        (),
        _sizes("scale", "tasks", "architectures"),
        _all_tables,
        data=("data/claims.yaml", "rules/schemas/claims.schema.yaml"),
    ),
    "plot": Rule(
        "figures/{figure}",
        "figures",
        ("figure",),
        _shown,
        lambda s, w: [table_job(table) for table in figure_tables(w["figure"])],
        lambda w: [f"figures/{w['figure']}.py"],
        data=("data/published.yaml", "docs/reference"),
    ),
    "scorecard": Rule(
        "report",
        "report",
        (),
        _shown,
        lambda s, w: [
            ("judge", {}),
            *_all_tables(s, w),
            *(("plot", {"figure": figure}) for figure in FIGURES),
        ],
        data=("data/claims.yaml", "data/published.yaml", "data/assumptions.yaml", "report", "docs/reference"),
    ),
}
