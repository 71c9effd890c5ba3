"""A copy of the project with a tiny config, and what Snakemake says about it."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from stateatlas import settings

MADE = (".git", ".venv", ".snakemake", "results", "resources", "logs", "benchmarks", "__pycache__", ".*_cache", ".ci")
NOTHING = "Nothing to be done"
TINY = {
    "scale": "smoke",
    "studies": ["encoding"],
    "tasks": ["parity"],
    "architectures": ["transformer", "mamba"],
    "seeds": 1,
    "extras": ["edited"],
    "edited": {"tasks": ["parity"], "architectures": ["transformer", "mamba"]},
    "layers": 1,
    "steps": {"default": 20},
    "length_factors": [1, 2],
    "validation": 32,
    "fit": 24,
    "test": 32,
    "subspace_sizes": [1],
    "random_draws": 1,
    "bootstrap": 100,
    "training": {"warmup": 5, "evaluate_every": 10},
}


@dataclass
class Project:
    """A project folder, `root`, and the folder where its results are, `work`."""

    root: Path
    work: Path

    @property
    def config(self) -> dict:
        return yaml.safe_load((self.root / "config.yaml").read_text())

    @config.setter
    def config(self, content: dict) -> None:
        (self.root / "config.yaml").write_text(yaml.safe_dump(content, sort_keys=False))

    def snakemake(self, *arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess:
        """Run Snakemake in the project; stdout and stderr come together."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "snakemake", *arguments],
            cwd=cwd or self.work,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            timeout=900,
        )  # fmt: skip

    def planned(self, *arguments: str, **options) -> set[str]:
        """Return the folders of the results that a run would make."""
        done = self.snakemake("--dry-run", *arguments, **options)
        assert done.returncode == 0, done.stdout
        made = re.findall(r"^    output: (.*?)/manifest\.json", done.stdout, flags=re.MULTILINE)
        assert bool(made) != (NOTHING in done.stdout), done.stdout
        return set(made)

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.root / name
        content = path.read_text()
        assert old in content, (name, old)
        path.write_text(content.replace(old, new))

    def append(self, name: str, text: str) -> None:
        path = self.root / name
        path.write_text(path.read_text() + text)


def copied(root: Path, target: Path) -> Project:
    """Copy the project without what it makes, with the tiny config."""
    shutil.copytree(root, target, ignore=shutil.ignore_patterns(*MADE), symlinks=True)
    project = Project(target, target)
    project.config = settings.merged(project.config, TINY)
    return project
