"""Which jobs a job reads, and which tables and figures a run has."""

from stateatlas import experiments, needs
from stateatlas.canonical import PACKAGE
from stateatlas.literals import literal

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
    "sets": ("find_sets", "sets.parquet"),
    "writes": ("find_sets", "writes.parquet"),
    "signatures": ("find_sets", "signatures.parquet"),
    "thresholds": ("find_sets", "thresholds.parquet"),
    "interventions": ("intervene", "effects.parquet"),
    "cells": ("intervene", "cells.parquet"),
    "needles": ("find_needles", "table.parquet"),
    "linearity": ("respond", "linearity.parquet"),
    "superposition": ("respond", "superposition.parquet"),
    "prediction": ("respond", "prediction.parquet"),
    "effects": ("respond", "effects.parquet"),
    "propagation": ("respond", "propagation.parquet"),
    "composition": ("respond", "composition.parquet"),
    "concentration": ("respond", "concentration.parquet"),
    "green": ("respond", "green.parquet"),
    "displacement": ("respond", "displacement.parquet"),
    "prompts": ("respond", "prompts.parquet"),
    "inverse": ("invert", "table.parquet"),
    "transfer": ("transfer", "table.parquet"),
}
OF_LANGUAGE = ("drops",)  # tables that only tuned language models have
OF_SINK = ("find_sets", "intervene", "find_needles")  # the rules of study C that make tables
OF_RESPONSE = ("respond", "invert", "transfer")  # those of study B
DERIVED = {  # table -> the tables that it is derived from
    "profiles": ("probes", "behaviour"),
    "recipes": ("profiles",),
}
FIGURES = sorted(p.stem for p in (PACKAGE / "figures").glob("[a-z]*.py") if p.stem not in ("style",))

Wildcards = dict[str, str]
Settings = dict
Job = tuple[str, Wildcards]


def cell(w: Wildcards) -> Wildcards:
    return {key: w[key] for key in ("task", "architecture", "seed")}


def task(w: Wildcards) -> Wildcards:
    return {"task": w["task"]}


def weights(s: Settings, w: Wildcards) -> Job:
    return ("finetune" if needs.language_model(s, w) else "train"), cell(w)


def checkpoint(s: Settings, w: Wildcards) -> Job:
    """The job that brings the language model `w["architecture"]`."""
    return ("pretrain" if "mini" in needs.language_model(s, w) else "fetch"), {"model": w["architecture"]}


def model(s: Settings, name: str) -> Job:
    """The job that brings a language model, or teaches it."""
    if name.endswith(experiments.TAUGHT):
        return "teach", {"model": name.removesuffix(experiments.TAUGHT)}
    return checkpoint(s, {"architecture": name})


def observed(s: Settings, w: Wildcards) -> list[Job]:
    """The models and their activity on a corpus, in one order."""
    names = sorted(experiments.observed(s, w["corpus"]))
    return [model(s, name) for name in names] + [("observe", {"model": name, "corpus": w["corpus"]}) for name in names]


def asked(s: Settings, w: Wildcards) -> list[Job]:
    """The model that is asked for needles, and its activity."""
    name = experiments.asked_as(s, w["model"])
    return [model(s, name), ("observe", {"model": name, "corpus": s["sink"]["needles"]["corpus"]})]


def prompted(s: Settings, w: Wildcards) -> list[Job]:
    """The model, the smaller one that predicts it where it is transferred to, and the text that minis are asked on."""
    names = [w["model"], *([w["small"]] if "small" in w else [])]
    text = [("train_tokenizer", {})] if w["model"] in experiments.all_minis(s) else []
    return [model(s, name) for name in names] + text


def corpus_of(w: Wildcards) -> list[Job]:
    """The corpus that a task reads, if any."""
    name = needs.reads(w)
    return [("corpus", {"corpus": name})] if name else []


def collected(s: Settings, w: Wildcards) -> list[Job]:
    """The jobs that make the parts of a table."""
    rule, _ = TABLES[w["table"]]
    if rule == "train":
        return [weights(s, cell) for cell in experiments.cells(s)]
    if w["table"] in OF_LANGUAGE:
        return [(rule, cell) for cell in experiments.cells(s, "finetune")]
    base = [("base_probe", {"task": task}) for task in experiments.tasks(s)] if w["table"] == "probes" else []
    return base + [(rule, part) for part in _parts(s, rule)]


def _parts(s: Settings, rule: str) -> list[Wildcards]:
    """Every part that a rule makes of a table: its wildcards."""
    of_models = {
        "pretrain": experiments.minis,
        "find_needles": experiments.seekers,
        "respond": experiments.responding,
        "invert": experiments.responding,
        "transfer": experiments.transferred,
    }
    if rule in of_models:
        return [{"model": name} for name in of_models[rule](s)]
    if rule == "find_sets":
        return [{"corpus": corpus} for corpus in s["sink"]["corpora"]]
    if rule == "intervene":
        return [{"model": name, "corpus": corpus} for name, corpus in experiments.units(s)]
    return experiments.cells(s, rule)


def all_tables(s: Settings, w: Wildcards) -> list[Job]:
    return [table_job(table) for table in tables(s)]


def tables(s: Settings) -> list[str]:
    """Return the tables of this run."""
    missing = {"recipes"} - set(s["extras"])
    missing |= {
        table for table, (rule, _) in TABLES.items() if rule in ("erase", "patch") and not experiments.cells(s, rule)
    }
    missing |= set() if experiments.cells(s, "finetune") else set(OF_LANGUAGE)
    missing |= set() if experiments.minis(s) else {"minis"}
    missing |= set() if "sink" in s["studies"] else {t for t, (rule, _) in TABLES.items() if rule in OF_SINK}
    missing |= set() if experiments.seekers(s) else {"needles"}
    missing |= set() if "response" in s["studies"] else {t for t, (rule, _) in TABLES.items() if rule in OF_RESPONSE}
    missing |= set() if experiments.transferred(s) else {"transfer"}
    return [table for table in (*TABLES, *DERIVED) if table not in missing]


def figures(s: Settings) -> list[str]:
    """Return the figures of this run: those whose tables it has."""
    return [name for name in FIGURES if set(figure_tables(name)) <= {*tables(s), "claims"}]


def figure_tables(figure: str) -> tuple[str, ...]:
    """Return the tables that a figure's module names in its literal `TABLES`."""
    return literal(PACKAGE / "figures" / f"{figure}.py", "TABLES")


def table_job(table: str) -> Job:
    """Return the job that makes a whole-study table."""
    if table == "claims":
        return "judge", {}
    return ("derive" if table in DERIVED else "collect"), {"table": table}
