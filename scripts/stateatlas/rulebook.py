"""The rules as data: where each one's results lie, what it needs from the settings, and what it reads."""

from collections.abc import Callable
from dataclasses import dataclass, field

from stateatlas import experiments, needs
from stateatlas.canonical import PACKAGE
from stateatlas.literals import literal
from stateatlas.sizes import lengths

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


def _weights(s: Settings, w: Wildcards) -> tuple[str, Wildcards]:
    return ("finetune" if needs.language_model(s, w) else "train"), _cell(w)


def _checkpoint(s: Settings, w: Wildcards) -> tuple[str, Wildcards]:
    """The job that brings the language model `w["architecture"]`."""
    return ("pretrain" if "mini" in needs.language_model(s, w) else "fetch"), {"model": w["architecture"]}


def _corpus_of(w: Wildcards) -> list[tuple[str, Wildcards]]:
    """The corpus that a task reads, if any."""
    name = needs.reads(w)
    return [("corpus", {"corpus": name})] if name else []


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


RULES = {
    "corpus": Rule(
        "corpora/{corpus}",
        "analysis",
        ("corpus",),
        needs.corpus,
        modules=lambda s, w: [needs.source(s, w).relative_to(PACKAGE).as_posix()],
    ),
    "sample": Rule(
        f"{STUDY}/sequences/{{task}}",
        "analysis",
        ("task",),
        needs.sample,
        lambda s, w: _corpus_of(w),
        modules=lambda s, w: [needs.task_file(w)],
    ),
    "train": Rule(
        f"{STUDY}/models/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        needs.train,
        lambda s, w: [("sample", _task(w)), *_corpus_of(w)],
        lambda s, w: [needs.task_file(w), *needs.code(s, w)],
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
        needs.pretrain,
        lambda s, w: [("train_tokenizer", {})],
        lambda s, w: [f"adapters/{s['language_models'][w['model']]['family']}.py"],
        runs_model=True,
    ),
    "fetch": Rule(
        "{model}",
        "train",
        ("model",),
        needs.fetch,
        shared=True,
    ),
    "finetune": Rule(
        f"{STUDY}/models/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        needs.finetune,
        lambda s, w: [("sample", _task(w)), _checkpoint(s, w), *_corpus_of(w)],
        lambda s, w: [needs.task_file(w), *needs.code(s, w)],
        runs_model=True,
    ),
    "record": Rule(
        f"{STUDY}/states/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        needs.record,
        lambda s, w: [("sample", _task(w)), _weights(s, w)],
        needs.code,
        runs_model=True,
    ),
    "base_probe": Rule(
        f"{STUDY}/base/{{task}}",
        "analysis",
        ("task",),
        lambda s, w: {"lengths": lengths(s, w["task"])} | needs.probe(s, w),
        lambda s, w: [("sample", _task(w))],
    ),
    "probe": Rule(
        f"{STUDY}/probes/{{task}}/{{architecture}}/seed{{seed}}",
        "analysis",
        ("task", "architecture", "seed"),
        # Cells of other experiments have their profile alone.
        lambda s, w: needs.probe(s, w) | {"controls": experiments.of_paper(s, w) or bool(needs.language_model(s, w))},
        lambda s, w: [("sample", _task(w)), ("record", _cell(w))],
    ),
    "ablate": Rule(
        f"{STUDY}/ablations/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        needs.ablate,
        lambda s, w: [("sample", _task(w)), _weights(s, w), ("record", _cell(w)), ("probe", _cell(w))],
        needs.code,
        runs_model=True,
    ),
    "refit": Rule(
        f"{STUDY}/refits/{{task}}/{{architecture}}/seed{{seed}}",
        "analysis",
        ("task", "architecture", "seed"),
        lambda s, w: needs.probe(s, w) | {"random_draws": s["random_draws"]},
        lambda s, w: [("sample", _task(w)), ("record", _cell(w)), ("probe", _cell(w))],
    ),
    "erase": Rule(
        f"{STUDY}/erasures/{{task}}/{{architecture}}/seed{{seed}}",
        "erase",
        ("task", "architecture", "seed"),
        lambda s, w: needs.edit(s, w) | {"random_draws": s["random_draws"]},
        lambda s, w: [("sample", _task(w)), ("base_probe", _task(w)), _weights(s, w), ("record", _cell(w))],
        needs.code,
        runs_model=True,
    ),
    "patch": Rule(
        f"{STUDY}/patches/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        needs.edit,
        lambda s, w: [("sample", _task(w)), _weights(s, w)],
        needs.code,
        runs_model=True,
    ),
    "collect": Rule(f"{STUDY}/tables/{{table}}", "analysis", ("table",), upstream=_collected),
    "derive": Rule(
        f"{STUDY}/tables/{{table}}",
        "analysis",
        ("table",),
        needs.derive,
        lambda s, w: [table_job(table) for table in DERIVED[w["table"]]],
        lambda s, w: [f"{w['table']}.py"],
    ),
    "judge": Rule(
        "claims",
        "analysis",
        (),
        needs.keys("scale", "tasks", "architectures"),
        _all_tables,
        data=("data/claims.yaml", "rules/schemas/claims.schema.yaml"),
    ),
    "plot": Rule(
        "figures/{figure}",
        "figures",
        ("figure",),
        needs.shown,
        lambda s, w: [table_job(table) for table in figure_tables(w["figure"])],
        lambda s, w: [f"figures/{w['figure']}.py"],
        data=("data/published.yaml", "docs/reference"),
    ),
    "scorecard": Rule(
        "report",
        "report",
        (),
        needs.shown,
        lambda s, w: [
            ("judge", {}),
            *_all_tables(s, w),
            *(("plot", {"figure": figure}) for figure in figures(s)),
        ],
        data=("data/claims.yaml", "data/published.yaml", "data/assumptions.yaml", "report", "docs/reference"),
    ),
}
