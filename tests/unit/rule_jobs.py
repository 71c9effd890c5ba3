"""Runs the scripts of rules in this process, as Snakemake would, on a tiny cell."""

import contextlib
import logging
from pathlib import Path
from types import SimpleNamespace

from stateatlas import canonical, plan, settings

TASK = {"task": "parity"}
CELL = {"task": "parity", "architecture": "lstm", "seed": "0"}
TABLE = {"table": "refits"}
SEQUENCES = {
    "sequences_manifest": ("sample", TASK, "manifest.json"),
    "sequences": ("sample", TASK, "sequences.safetensors"),
}
WEIGHTS = {"weights_manifest": ("train", CELL, "manifest.json"), "weights": ("train", CELL, "weights")}
STATES = {"states_manifest": ("record", CELL, "manifest.json"), "states": ("record", CELL, "states")}
BASE = {"base_manifest": ("base_probe", TASK, "manifest.json"), "base": ("base_probe", TASK, "table.parquet")}
PROBES = {"probes_manifest": ("probe", CELL, "manifest.json"), "probes": ("probe", CELL, "probes.safetensors")}
ACCURACY = {"accuracy": ("probe", CELL, "table.parquet")}
REFITS = {"manifests": ("refit", CELL, "manifest.json"), "parts": ("refit", CELL, "table.parquet")}
# rule: wildcards, inputs, outputs
JOBS = {
    "sample": (TASK, {}, ["sequences.safetensors"]),
    "train": (CELL, SEQUENCES, ["weights"]),
    "record": (CELL, SEQUENCES | WEIGHTS, ["states", "behaviour.parquet"]),
    "base_probe": (TASK, SEQUENCES, ["table.parquet"]),
    "probe": (CELL, SEQUENCES | STATES, ["table.parquet", "probes.safetensors"]),
    "ablate": (CELL, SEQUENCES | WEIGHTS | STATES | PROBES | ACCURACY, ["table.parquet", "drops.parquet"]),
    "refit": (CELL, SEQUENCES | STATES | PROBES, ["table.parquet"]),
    "erase": (CELL, SEQUENCES | BASE | WEIGHTS | STATES, ["table.parquet", "damage.parquet"]),
    "patch": (CELL, SEQUENCES | WEIGHTS, ["table.parquet"]),
    "collect": (TABLE, REFITS, ["table.parquet"]),
}
TINY = settings.resolve(
    settings.merged(
        settings.read(canonical.ROOT / "config.yaml"),
        {
            "scale": "smoke", "backend": "torch", "tasks": ["parity"], "architectures": ["lstm"], "seeds": 1,
            "extras": [], "width": 16, "layers": 1, "train_length": {"default": 12}, "length_factors": [1],
            "steps": {"default": 2},
            "validation": 16, "fit": 16, "test": 16, "subspace_sizes": [1], "random_draws": 1, "bootstrap": 100,
            "threads": 1, "gpu": False,
            "training": {"batch": 4, "warmup": 1, "evaluate_every": 1},
        },
    )
)  # fmt: skip


class Named(list):
    """Files of a job: a list of all, with names for some, as Snakemake gives them."""

    def __init__(self, named: dict[str, str | list]):
        super().__init__(path for value in named.values() for path in ([value] if isinstance(value, str) else value))
        self._named = named

    def items(self):
        return self._named.items()

    def __getattr__(self, name: str) -> str:
        try:
            return self._named[name]
        except KeyError:
            raise AttributeError(name) from None


def folder(rule: str) -> Path:
    """Return where a rule's results lie, seen from the working directory."""
    return Path("results", "smoke", plan.RULES[rule].folder.format(**JOBS[rule][0]))


def described(rule: str, **change) -> SimpleNamespace:
    """Return what Snakemake hands to a rule's script; `change` goes into the settings."""
    wildcards, inputs, outputs = JOBS[rule]
    names = {name.split(".")[0]: name for name in ["manifest.json", *outputs]}
    return SimpleNamespace(
        params=SimpleNamespace(cfg=plan.Plan(TINY | change).cfg(rule, wildcards)),
        input=Named({name: str(folder(source) / file) for name, (source, _, file) in inputs.items()} | {"corpus": []}),
        output=Named({name: str(folder(rule) / file) for name, file in names.items()}),
        wildcards=wildcards,
        log=[f"logs/{rule}.log"],
        threads=7,
        resources={"gpu": 0},
    )


def run(rule: str, **change) -> None:
    """Run the script of a rule in the working directory."""
    snakemake = described(rule, **change)
    folder(rule).mkdir(parents=True, exist_ok=True)
    script = canonical.PACKAGE.parent / f"{rule}.py"
    with kept_logging():
        exec(compile(script.read_bytes(), str(script), "exec"), {"snakemake": snakemake})


@contextlib.contextmanager
def kept_logging():
    """Put logging back as it was: a job sets it for its whole process."""
    root, raises = logging.getLogger(), logging.raiseExceptions
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        for handler in set(root.handlers) - set(handlers):
            with contextlib.suppress(OSError):  # a full disk
                handler.close()
        root.handlers[:], logging.raiseExceptions = handlers, raises
        root.setLevel(level)
        logging.captureWarnings(False)
