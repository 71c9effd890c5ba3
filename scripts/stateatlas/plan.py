"""What every job depends on: rule and wildcards -> cfg, the one string that decides whether a job runs again.

A cfg holds what the rule needs from the settings, the hash of its code and of its environment, the checksums of
the committed data files it reads, and the hashes of the cfgs of the jobs whose results it reads. So an edit changes
the cfg of exactly the jobs that it touches and of those behind them; a touched file, another folder or another
module prefix changes none. The Snakefile and `./reproduce verify` both ask here (no heavy imports).
"""

import ast
import functools
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from stateatlas.canonical import PACKAGE, ROOT, canonical, closure, code_hash, env_hash, sha256, sha256_file
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


def _ablate_fields(s: Settings, w: Wildcards) -> dict:
    sizes = [k for k in s["subspace_sizes"] if k <= s["width"] / 2]
    return {
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
        lambda s, w: {"train_length": per_task(s["train_length"], w["task"])},
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


class Plan:
    """The jobs of one run: their cfgs and where their results lie.

    `settings` are resolved and checked, with the backend decided ("compiled" or "torch").
    """

    def __init__(self, settings: Settings, root: Path = ROOT):
        self.settings, self.root = settings, root
        self._known: dict[tuple, str] = {}

    def cfg(self, rule: str, wildcards: Wildcards) -> str:
        """Return the canonical JSON that decides whether this job runs again."""
        wildcards = {key: str(wildcards[key]) for key in RULES[rule].wildcards}
        key = (rule, *sorted(wildcards.items()))
        if key not in self._known:
            self._known[key] = canonical(self._cfg(rule, wildcards))
        return self._known[key]

    def _cfg(self, rule: str, wildcards: Wildcards) -> dict:
        spec = RULES[rule]
        upstream = [self.cfg(*job) for job in spec.upstream(self.settings, wildcards)]
        numbers = {key: int(value) if key == "seed" else value for key, value in wildcards.items()}
        return {
            "rule": rule,
            **numbers,
            **spec.fields(self.settings, wildcards),
            "code": self.code(rule, wildcards),
            "env": env_hash(self.root / "envs" / f"{spec.env}.yaml"),
            "data": {name: _data_hash(self.root / name) for name in spec.data},
            "upstream": sha256(canonical(upstream)),
            "threads": self.settings["threads"] if spec.runs_model else 1,
        } | ({"backend": self.settings["backend"]} if spec.runs_model else {})

    def files(self, rule: str, wildcards: Wildcards) -> tuple[Path, ...]:
        """Return the code files that a job depends on."""
        return _closure(rule, tuple(RULES[rule].modules(wildcards)))

    def code(self, rule: str, wildcards: Wildcards) -> str:
        """Return the hash of a job's code."""
        return _hash(self.files(rule, wildcards))

    def folder(self, rule: str, wildcards: Wildcards) -> str:
        """Return where a job's results lie, under `results/<scale>`."""
        return RULES[rule].folder.format(**wildcards)

    def jobs(self) -> Iterator[tuple[str, Wildcards]]:
        """Every job of the whole run."""
        seen = set()
        todo = [("scorecard", {})]
        while todo:
            rule, wildcards = todo.pop()
            if (key := (rule, *sorted(wildcards.items()))) not in seen:
                seen.add(key)
                yield rule, wildcards
                todo.extend(RULES[rule].upstream(self.settings, wildcards))

    def expected(self) -> list[tuple[str, Wildcards, Path]]:
        """Return (rule, wildcards, manifest) of every job, manifests relative to the working directory."""
        results = Path("results", self.settings["scale"])
        return [(rule, w, results / self.folder(rule, w) / "manifest.json") for rule, w in self.jobs()]


@functools.cache
def _closure(rule: str, modules: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(closure(PACKAGE.parent / f"{rule}.py", *(PACKAGE / module for module in modules)))


@functools.cache
def _hash(files: tuple[Path, ...]) -> str:
    return code_hash(list(files))


@functools.cache
def _data_hash(path: Path) -> str:
    found = path.rglob("*") if path.is_dir() else [path]
    files = sorted(p for p in found if p.is_file() and not p.name.startswith("."))
    return sha256(canonical([[p.relative_to(path.parent).as_posix(), sha256_file(p)] for p in files]))


def parse(cfg: str) -> dict:
    """Return a cfg string as a dict."""
    return json.loads(cfg)
