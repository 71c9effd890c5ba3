"""What every job depends on: rule and wildcards -> cfg, the one string that decides whether a job runs again.

A cfg holds what the rule needs from the settings, the hash of its code and of its environment, the checksums of
the committed data files it reads, and the hashes of the cfgs of the jobs whose results it reads. So an edit changes
the cfg of exactly the jobs that it touches and of those behind them; a touched file, another folder or another
module prefix changes none. The Snakefile and `./reproduce verify` both ask here (no heavy imports).
"""

import functools
import json
from collections.abc import Iterator
from pathlib import Path

from stateatlas import experiments
from stateatlas.canonical import PACKAGE, ROOT, canonical, closure, code_hash, env_hash, sha256, sha256_file
from stateatlas.rulebook import RULES
from stateatlas.sizing import sizes
from stateatlas.upstream import DERIVED, FIGURES, TABLES, Settings, Wildcards, figure_tables, table_job

__all__ = ["DERIVED", "FIGURES", "RULES", "TABLES", "Plan", "figure_tables", "parse", "table_job"]

CHECKED = ("train", "pretrain", "finetune", "observe")  # the first rules that compute with the kernels


class Plan:
    """The jobs of one run: their cfgs and where their results lie.

    `settings` are resolved and checked, with the backend decided ("compiled", "mamba_ssm" or "torch").
    """

    def __init__(self, settings: Settings, root: Path = ROOT):
        self.settings, self.root = settings, root
        self._known: dict[tuple, str] = {}
        self._jobs: list[tuple[str, Wildcards]] = []

    def cfg(self, rule: str, wildcards: Wildcards) -> str:
        """Return the canonical JSON that decides whether this job runs again."""
        wildcards = {key: str(wildcards[key]) for key in RULES[rule].wildcards}
        key = (rule, *sorted(wildcards.items()))
        if key not in self._known:
            self._known[key] = canonical(self._cfg(rule, wildcards))
        return self._known[key]

    def _cfg(self, rule: str, wildcards: Wildcards) -> dict:
        spec = RULES[rule]
        upstream = [self.cfg(*job) for job in self.upstream(rule, wildcards)]
        backend = self.backend(rule, wildcards)
        numbers = {key: int(value) if key == "seed" else value for key, value in wildcards.items()}
        return {
            "rule": rule,
            **numbers,
            **spec.fields(self.settings, wildcards),
            "code": self.code(rule, wildcards),
            "env": env_hash(self.root / "envs" / f"{self.env(rule)}.yaml"),
            "data": {name: _data_hash(self.root / name) for name in spec.data},
            "upstream": sha256(canonical(upstream)),
            "threads": self.settings["threads"] if spec.runs_model else 1,
        } | ({"backend": backend} if backend else {})

    def backend(self, rule: str, wildcards: Wildcards) -> str | None:
        """Return the form of the kernels that a job is given; None where it has no use for one."""
        if not _has_kernels(self.files(rule, wildcards)):
            return None
        chosen = self.settings["backend"]
        if chosen != "mamba_ssm":
            return chosen
        # With and without a convolution it must be the same form (A10), and mamba-ssm needs one.
        plain = experiments.attributed(self.settings, wildcards) or not self._on_gpu(rule)
        return "torch" if plain else "mamba_ssm"

    def env(self, rule: str) -> str:
        """Return the name of the environment that a rule's jobs run in."""
        return "mamba" if self.settings["backend"] == "mamba_ssm" and self._on_gpu(rule) else RULES[rule].env

    def _on_gpu(self, rule: str) -> bool:
        return sizes(self.settings["scale"])[rule].gpu

    def upstream(self, rule: str, wildcards: Wildcards) -> list[tuple[str, Wildcards]]:
        """Return the jobs whose results a job reads; those that use mamba-ssm first wait until it is checked."""
        jobs = RULES[rule].upstream(self.settings, wildcards)
        if self.settings["backend"] == "mamba_ssm" and rule in CHECKED and self.backend(rule, wildcards) == "mamba_ssm":
            return [*jobs, ("check_backend", {})]
        return jobs

    def files(self, rule: str, wildcards: Wildcards) -> tuple[Path, ...]:
        """Return the code files that a job depends on."""
        return _closure(rule, tuple(RULES[rule].modules(self.settings, wildcards)))

    def code(self, rule: str, wildcards: Wildcards) -> str:
        """Return the hash of a job's code."""
        return _hash(self.files(rule, wildcards))

    def place(self, rule: str) -> str:
        """Return where a rule's results lie, with its wildcards left open: in `results/<scale>` or `resources`."""
        root = "resources" if RULES[rule].shared else f"results/{self.settings['scale']}"
        return f"{root}/{RULES[rule].folder}"

    def folder(self, rule: str, wildcards: Wildcards) -> str:
        """Return where a job's results lie."""
        return self.place(rule).format(**wildcards)

    def jobs(self) -> list[tuple[str, Wildcards]]:
        """Every job of the whole run."""
        if not self._jobs:
            self._jobs = list(self._walk())
        return self._jobs

    def _walk(self) -> Iterator[tuple[str, Wildcards]]:
        seen = set()
        todo = [("scorecard", {})]
        while todo:
            rule, wildcards = todo.pop()
            if (key := (rule, *sorted(wildcards.items()))) not in seen:
                seen.add(key)
                yield rule, wildcards
                todo.extend(self.upstream(rule, wildcards))

    def expected(self) -> list[tuple[str, Wildcards, Path]]:
        """Return (rule, wildcards, manifest) of every job, manifests relative to the working directory."""
        return [(rule, w, Path(self.folder(rule, w), "manifest.json")) for rule, w in self.jobs()]


@functools.cache
def _closure(rule: str, modules: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(closure(PACKAGE.parent / f"{rule}.py", *(PACKAGE / module for module in modules)))


@functools.cache
def _has_kernels(files: tuple[Path, ...]) -> bool:
    return any(path.parent.name == "kernels" for path in files)


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
