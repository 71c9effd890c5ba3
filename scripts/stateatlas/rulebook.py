"""The rules as data: where each one's results lie, what it needs from the settings, and what it reads."""

from collections.abc import Callable
from dataclasses import dataclass, field

from stateatlas import experiments, needs, upstream
from stateatlas.canonical import PACKAGE
from stateatlas.sizes import lengths
from stateatlas.upstream import Job, Settings, Wildcards

STUDY = "encoding"


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
    upstream: Callable[[Settings, Wildcards], list[Job]] = lambda s, w: []
    modules: Callable[[Settings, Wildcards], list[str]] = lambda s, w: []
    data: tuple[str, ...] = ()
    runs_model: bool = field(default=False)
    shared: bool = field(default=False)


def _prompted(folder: str, fields: Callable[[Settings, Wildcards], dict], jobs: Callable = upstream.prompted) -> Rule:
    """A rule of study B: one language model with its prompts."""
    return Rule(
        f"response/{folder}/{{model}}",
        "units",
        ("model",),
        fields,
        jobs,
        needs.adapter,
        data=("data/prompts.yaml",),
        runs_model=True,
    )


RULES = {
    "corpus": Rule(
        "corpora/{corpus}",
        "corpora",
        ("corpus",),
        needs.corpus,
        modules=lambda s, w: [needs.source(s, w).relative_to(PACKAGE).as_posix()],
    ),
    "sample": Rule(
        f"{STUDY}/sequences/{{task}}",
        "analysis",
        ("task",),
        needs.sample,
        lambda s, w: upstream.corpus_of(w),
        modules=lambda s, w: [needs.task_file(w)],
    ),
    "check_backend": Rule("kernels", "train", runs_model=True),
    "train": Rule(
        f"{STUDY}/models/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        needs.train,
        lambda s, w: [("sample", upstream.task(w)), *upstream.corpus_of(w)],
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
        lambda s, w: [("sample", upstream.task(w)), upstream.checkpoint(s, w), *upstream.corpus_of(w)],
        lambda s, w: [needs.task_file(w), *needs.code(s, w)],
        runs_model=True,
    ),
    "record": Rule(
        f"{STUDY}/states/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        needs.record,
        lambda s, w: [("sample", upstream.task(w)), upstream.weights(s, w)],
        needs.code,
        runs_model=True,
    ),
    "base_probe": Rule(
        f"{STUDY}/base/{{task}}",
        "analysis",
        ("task",),
        lambda s, w: {"lengths": lengths(s, w["task"])} | needs.probe(s, w),
        lambda s, w: [("sample", upstream.task(w))],
    ),
    "probe": Rule(
        f"{STUDY}/probes/{{task}}/{{architecture}}/seed{{seed}}",
        "analysis",
        ("task", "architecture", "seed"),
        # Cells of other experiments have their profile alone.
        lambda s, w: needs.probe(s, w) | {"controls": experiments.of_paper(s, w) or bool(needs.language_model(s, w))},
        lambda s, w: [("sample", upstream.task(w)), ("record", upstream.cell(w))],
    ),
    "ablate": Rule(
        f"{STUDY}/ablations/{{task}}/{{architecture}}/seed{{seed}}",
        "erase",
        ("task", "architecture", "seed"),
        needs.ablate,
        lambda s, w: [
            ("sample", upstream.task(w)),
            upstream.weights(s, w),
            ("record", upstream.cell(w)),
            ("probe", upstream.cell(w)),
        ],
        needs.code,
        runs_model=True,
    ),
    "refit": Rule(
        f"{STUDY}/refits/{{task}}/{{architecture}}/seed{{seed}}",
        "analysis",
        ("task", "architecture", "seed"),
        lambda s, w: needs.probe(s, w) | {"random_draws": s["random_draws"]},
        lambda s, w: [("sample", upstream.task(w)), ("record", upstream.cell(w)), ("probe", upstream.cell(w))],
    ),
    "erase": Rule(
        f"{STUDY}/erasures/{{task}}/{{architecture}}/seed{{seed}}",
        "erase",
        ("task", "architecture", "seed"),
        lambda s, w: needs.edit(s, w) | {"random_draws": s["random_draws"]},
        lambda s, w: [
            ("sample", upstream.task(w)),
            ("base_probe", upstream.task(w)),
            upstream.weights(s, w),
            ("record", upstream.cell(w)),
        ],
        needs.code,
        runs_model=True,
    ),
    "patch": Rule(
        f"{STUDY}/patches/{{task}}/{{architecture}}/seed{{seed}}",
        "train",
        ("task", "architecture", "seed"),
        needs.edit,
        lambda s, w: [("sample", upstream.task(w)), upstream.weights(s, w)],
        needs.code,
        runs_model=True,
    ),
    "observe": Rule(
        "sink/activity/{model}/{corpus}",
        "units",
        ("model", "corpus"),
        needs.observe,
        lambda s, w: [upstream.model(s, w["model"]), ("corpus", {"corpus": w["corpus"]})],
        needs.units,
        runs_model=True,
    ),
    "find_sets": Rule(
        "sink/sets/{corpus}",
        "units",
        ("corpus",),
        needs.find_sets,
        upstream.observed,
        lambda s, w: [file for name in s["sink"]["models"] for file in needs.units(s, {"model": name})],
    ),
    "intervene": Rule(
        "sink/effects/{model}/{corpus}",
        "units",
        ("model", "corpus"),
        needs.intervene,
        lambda s, w: [upstream.model(s, w["model"]), ("corpus", {"corpus": w["corpus"]}), ("observe", w)],
        needs.units,
        runs_model=True,
    ),
    "teach": Rule(
        "sink/taught/{model}",
        "units",
        ("model",),
        needs.teach,
        lambda s, w: [upstream.model(s, w["model"]), ("train_tokenizer", {})],
        needs.adapter,
        runs_model=True,
    ),
    "find_needles": Rule(
        "sink/needles/{model}",
        "units",
        ("model",),
        needs.find_needles,
        upstream.asked,
        needs.units,
        runs_model=True,
    ),
    "respond": _prompted("fields", needs.respond),
    "invert": _prompted("inverse", needs.invert),
    "transfer": _prompted(
        "transfer",
        needs.transfer,
        lambda s, w: upstream.prompted(s, w | {"small": experiments.transferred(s)[w["model"]]}),
    ),
    "collect": Rule("tables/{table}", "analysis", ("table",), upstream=upstream.collected),
    "derive": Rule(
        "tables/{table}",
        "analysis",
        ("table",),
        needs.derive,
        lambda s, w: [upstream.table_job(table) for table in upstream.DERIVED[w["table"]]],
        lambda s, w: [f"{w['table']}.py"],
    ),
    "judge": Rule(
        "claims",
        "analysis",
        (),
        needs.keys("scale", "tasks", "architectures"),
        upstream.all_tables,
        data=("data/claims.yaml", "rules/schemas/claims.schema.yaml"),
    ),
    "plot": Rule(
        "figures/{figure}",
        "figures",
        ("figure",),
        needs.shown,
        lambda s, w: [upstream.table_job(table) for table in upstream.figure_tables(w["figure"])],
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
            *upstream.all_tables(s, w),
            *(("plot", {"figure": figure}) for figure in upstream.figures(s)),
        ],
        data=("data/claims.yaml", "data/published.yaml", "data/assumptions.yaml", "report", "docs/reference"),
    ),
}
