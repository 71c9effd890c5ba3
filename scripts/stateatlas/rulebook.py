"""The rules as data: where each one's results lie, what it needs from the settings, and what it reads."""

import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from stateatlas import experiments
from stateatlas.canonical import PACKAGE, sha256_file
from stateatlas.literals import literal
from stateatlas.sizes import architecture, lengths, per_task, recipe, task_parts

STUDY = "encoding"
TABLES = {  # table -> the rule that makes its parts, one a cell, and the name of a part
    "training": ("train", "weights"),
    "behaviour": ("record", "behaviour.parquet"),
    "probes": ("probe", "table.parquet"),
    "ablations": ("ablate", "table.parquet"),
    "refits": ("refit", "table.parquet"),
    "erasures": ("erase", "table.parquet"),
    "inlp": ("erase", "damage.parquet"),
    "patches": ("patch", "table.parquet"),
    "drops": ("ablate", "drops.parquet"),
    "minis": ("pretrain", "weights"),
}
OF_LANGUAGE = ("drops", "minis")  # tables that only language models have
DERIVED = {  # table -> the tables that it is derived from
    "profiles": ("probes", "behaviour"),
    "recipes": ("profiles",),
}
FIGURES = sorted(p.stem for p in (PACKAGE / "figures").glob("[a-z]*.py") if p.stem not in ("style",))

Wildcards = dict[str, str]
Settings = dict


@dataclass(frozen=True)
class Rule:
    """One rule of the workflow.

    `folder` is where its results lie, `env` names its environment, `fields` gives what it needs from the settings,
    `upstream` the jobs whose results it reads, `modules` what it loads by name, `data` the committed files it reads.
    Results of `runs_model` hang on the number of threads; those that are `shared` by all scales lie in `resources`.
    """

    folder: str
    env: str
    wildcards: tuple[str, ...] = ()
    fields: Callable[[Settings, Wildcards], dict] = lambda s, w: {}
    upstream: Callable[[Settings, Wildcards], list[tuple[str, Wildcards]]] = lambda s, w: []
    modules: Callable[[Settings, Wildcards], list[str]] = lambda s, w: []
    data: tuple[str, ...] = ()
    runs_model: bool = field(default=False)
    shared: bool = field(default=False)


def _cell(w: Wildcards) -> Wildcards:
    return {key: w[key] for key in ("task", "architecture", "seed")}


def _task(w: Wildcards) -> Wildcards:
    return {"task": w["task"]}


def _sizes(*keys: str) -> Callable[[Settings, Wildcards], dict]:
    return lambda s, w: {key: s[key] for key in keys}


def _strings(w: Wildcards) -> dict:
    """Tasks that differ in the target alone share their strings, so random streams go by the strings."""
    return dict(zip(("strings", "target"), task_parts(w["task"]), strict=True))


def _sample_fields(s: Settings, w: Wildcards) -> dict:
    sizes = {
        "train_length": per_task(s["train_length"], w["task"]),
        "lengths": lengths(s, w["task"]),
        "pairs": s["test"] if w["task"] in s["tasks"] else 0,  # only the paper's own cells are patched
    }
    return _strings(w) | sizes | _sizes("root_seed", "validation", "fit", "test")(s, w)


def _of_language(s: Settings, w: Wildcards) -> dict | None:
    """The language model that a cell is tuned from; None for a formal model."""
    return s["language_models"].get(w["architecture"])


def _backbone(s: Settings, w: Wildcards) -> dict:
    """What a cell's model is made of: its block, or the family of its language model."""
    model = _of_language(s, w)
    return {"family": model["family"]} if model else {"block": architecture(w["architecture"])[0]}


def _weights(s: Settings, w: Wildcards) -> tuple[str, Wildcards]:
    return ("finetune" if _of_language(s, w) else "train"), _cell(w)


def _trained(s: Settings, w: Wildcards) -> dict:
    return _strings(w) | _backbone(s, w) | {"train_length": per_task(s["train_length"], w["task"])}


def _train_fields(s: Settings, w: Wildcards) -> dict:
    own = {
        "form": architecture(w["architecture"])[1],
        "recipe": {**recipe(s, w["task"], w["architecture"]), "steps": per_task(s["steps"], w["task"])},
        "to_cap": int(w["seed"]) < s["capped_seeds"] and w in experiments.cells(s, "refit"),
    }
    return _trained(s, w) | own | _sizes("root_seed", "width", "layers")(s, w)


def _finetune_fields(s: Settings, w: Wildcards) -> dict:
    chosen = {**s["training"], **s["tuning"], "learning_rate": _of_language(s, w)["learning_rate"]}
    return _trained(s, w) | {"recipe": chosen, "to_cap": False} | _sizes("root_seed")(s, w)


def _checkpoint(s: Settings, w: Wildcards) -> tuple[str, Wildcards]:
    """The job that brings the language model `w["architecture"]`."""
    return ("pretrain" if "mini" in _of_language(s, w) else "fetch"), {"model": w["architecture"]}


def _pretrain_fields(s: Settings, w: Wildcards) -> dict:
    model = s["language_models"][w["model"]]
    chosen = s["pretraining"]
    own = {key: model["mini"][key] for key in ("steps", "learning_rate") if key in model["mini"]}
    size = {key: value for key, value in model["mini"].items() if key not in own}
    return {
        "name": w["model"],
        "seed": 0,
        "mini": size | {"family": model["family"], "vocabulary": chosen["vocabulary"]},
        "recipe": {key: value for key, value in chosen.items() if key not in ("vocabulary", "held_out")} | own,
        "held_out": chosen["held_out"],
    } | _sizes("root_seed")(s, w)


def _record_fields(s: Settings, w: Wildcards) -> dict:
    own = {"train_length": per_task(s["train_length"], w["task"]), "lengths": lengths(s, w["task"])}
    return _backbone(s, w) | own | _sizes("root_seed", "bootstrap")(s, w)


def _ablate_fields(s: Settings, w: Wildcards) -> dict:
    largest = None if _of_language(s, w) else s["width"] / 2  # a language model's width is known when it is there
    sizes = [k for k in s["subspace_sizes"] if largest is None or k <= largest]
    return _record_fields(s, w) | {"subspace_sizes": sizes, "random_draws": s["random_draws"]}


def _edit_fields(s: Settings, w: Wildcards) -> dict:
    length = {"train_length": per_task(s["train_length"], w["task"])}
    return _backbone(s, w) | length | _sizes("root_seed", "bootstrap")(s, w)


def _probe_fields(s: Settings, w: Wildcards) -> dict:
    return {"train_length": per_task(s["train_length"], w["task"])} | _sizes("root_seed", "bootstrap")(s, w)


def _code(s: Settings, w: Wildcards) -> list[str]:
    """The modules of a cell's model that are loaded by name."""
    made_of = _backbone(s, w)
    if "family" in made_of:
        return ["finetuned.py", f"adapters/{made_of['family']}.py"]
    return [f"blocks/{made_of['block']}.py"]


def _task_file(w: Wildcards) -> str:
    return f"tasks/{task_parts(w['task'])[0]}.py"


def _corpus_of(w: Wildcards) -> list[tuple[str, Wildcards]]:
    """The corpus that a task reads, if any."""
    name = literal(PACKAGE / _task_file(w), "reads")
    return [("corpus", {"corpus": name})] if name else []


def _corpus_fields(s: Settings, w: Wildcards) -> dict:
    chosen = s["corpora"][w["corpus"]]
    own = {"interpreter": platform.python_version()} if literal(_source(s, w), "of_interpreter") else {}
    return {"options": chosen, "files": [sha256_file(Path(file)) for file in chosen.get("files", ())]} | own


def _source(s: Settings, w: Wildcards) -> Path:
    return PACKAGE / "corpora" / f"{s['corpora'][w['corpus']]['source']}.py"


def _collected(s: Settings, w: Wildcards) -> list[tuple[str, Wildcards]]:
    rule, _ = TABLES[w["table"]]
    if rule == "pretrain":
        return [(rule, {"model": name}) for name in experiments.minis(s)]
    if rule == "train":
        return [_weights(s, cell) for cell in experiments.cells(s)]
    if w["table"] in OF_LANGUAGE:
        return [(rule, cell) for cell in experiments.cells(s, "finetune")]
    base = [("base_probe", {"task": task}) for task in experiments.tasks(s)] if w["table"] == "probes" else []
    return base + [(rule, cell) for cell in experiments.cells(s, rule)]


def _all_tables(s: Settings, w: Wildcards) -> list[tuple[str, Wildcards]]:
    return [table_job(table) for table in tables(s)]


def _derive_fields(s: Settings, w: Wildcards) -> dict:
    if w["table"] == "recipes":
        return _sizes("recipes", "training")(s, w)
    return {"of_corpora": [task for task in experiments.tasks(s) if _corpus_of({"task": task})]}


def tables(s: Settings) -> list[str]:
    """Return the tables of this run."""
    missing = {"recipes"} - set(s["extras"])
    missing |= {
        table for table, (rule, _) in TABLES.items() if rule in ("erase", "patch") and not experiments.cells(s, rule)
    }
    missing |= set() if experiments.cells(s, "finetune") else set(OF_LANGUAGE)
    return [table for table in (*TABLES, *DERIVED) if table not in missing]


def figures(s: Settings) -> list[str]:
    """Return the figures of this run: those whose tables it has."""
    return [name for name in FIGURES if set(figure_tables(name)) <= {*tables(s), "claims"}]


def figure_tables(figure: str) -> tuple[str, ...]:
    """Return the tables that a figure's module names in its literal `TABLES`."""
    return literal(PACKAGE / "figures" / f"{figure}.py", "TABLES")


def table_job(table: str) -> tuple[str, Wildcards]:
    """Return the job that makes a whole-study table."""
    if table == "claims":
        return "judge", {}
    return ("derive" if table in DERIVED else "collect"), {"table": table}


def _shown(s: Settings, w: Wildcards) -> dict:
    """What figures and the page say about the run."""
    return {"settings": s}


RULES = {
    "corpus": Rule(
        "corpora/{corpus}",
        "analysis",
        ("corpus",),
        _corpus_fields,
        modules=lambda s, w: [_source(s, w).relative_to(PACKAGE).as_posix()],
    ),
    "sample": Rule(
        f"{STUDY}/sequences/{{task}}",
        "analysis",
        ("task",),
        _sample_fields,
        lambda s, w: _corpus_of(w),
        modules=lambda s, w: [_task_file(w)],
    ),
    "train": Rule(
        f"{STUDY}/models/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        _train_fields,
        lambda s, w: [("sample", _task(w)), *_corpus_of(w)],
        lambda s, w: [_task_file(w), *_code(s, w)],
        runs_model=True,
    ),
    "train_tokenizer": Rule(
        "language/tokenizer",
        "train",
        (),
        lambda s, w: {"vocabulary": s["pretraining"]["vocabulary"]},
        lambda s, w: [("corpus", {"corpus": name}) for name in s["pretraining_corpora"]],
    ),
    "pretrain": Rule(
        "language/{model}",
        "train",
        ("model",),
        _pretrain_fields,
        lambda s, w: [("train_tokenizer", {})],
        lambda s, w: [f"adapters/{s['language_models'][w['model']]['family']}.py"],
        runs_model=True,
    ),
    "fetch": Rule(
        "{model}",
        "train",
        ("model",),
        lambda s, w: {key: s["language_models"][w["model"]].get(key) for key in ("place", "revision")},
        shared=True,
    ),
    "finetune": Rule(
        f"{STUDY}/models/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        _finetune_fields,
        lambda s, w: [("sample", _task(w)), _checkpoint(s, w), *_corpus_of(w)],
        lambda s, w: [_task_file(w), *_code(s, w)],
        runs_model=True,
    ),
    "record": Rule(
        f"{STUDY}/states/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        _record_fields,
        lambda s, w: [("sample", _task(w)), _weights(s, w)],
        _code,
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
        # Cells of other experiments have their profile alone.
        lambda s, w: _probe_fields(s, w) | {"controls": w in experiments.cells(s, "ablate")},
        lambda s, w: [("sample", _task(w)), ("record", _cell(w))],
    ),
    "ablate": Rule(
        f"{STUDY}/ablations/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        _ablate_fields,
        lambda s, w: [("sample", _task(w)), _weights(s, w), ("record", _cell(w)), ("probe", _cell(w))],
        _code,
        runs_model=True,
    ),
    "refit": Rule(
        f"{STUDY}/refits/{{task}}/{{architecture}}/seed{{seed}}",
        "analysis",
        ("task", "architecture", "seed"),
        lambda s, w: _probe_fields(s, w) | {"random_draws": s["random_draws"]},
        lambda s, w: [("sample", _task(w)), ("record", _cell(w)), ("probe", _cell(w))],
    ),
    "erase": Rule(
        f"{STUDY}/erasures/{{task}}/{{architecture}}/seed{{seed}}",
        "erase",
        ("task", "architecture", "seed"),
        lambda s, w: _edit_fields(s, w) | {"random_draws": s["random_draws"]},
        lambda s, w: [("sample", _task(w)), ("base_probe", _task(w)), _weights(s, w), ("record", _cell(w))],
        _code,
        runs_model=True,
    ),
    "patch": Rule(
        f"{STUDY}/patches/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        _edit_fields,
        lambda s, w: [("sample", _task(w)), _weights(s, w)],
        _code,
        runs_model=True,
    ),
    "collect": Rule(f"{STUDY}/tables/{{table}}", "analysis", ("table",), upstream=_collected),
    "derive": Rule(
        f"{STUDY}/tables/{{table}}",
        "analysis",
        ("table",),
        _derive_fields,
        lambda s, w: [table_job(table) for table in DERIVED[w["table"]]],
        lambda s, w: [f"{w['table']}.py"],
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
        lambda s, w: [f"figures/{w['figure']}.py"],
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
            *(("plot", {"figure": figure}) for figure in figures(s)),
        ],
        data=("data/claims.yaml", "data/published.yaml", "data/assumptions.yaml", "report", "docs/reference"),
    ),
}
