"""The manifest beside every result: what made it, with which code, from what, and its bytes' checksums.

A manifest is deterministic. Wall time, peak memory and device go to `run.json` beside the log.
"""

import importlib.metadata
import json
import os
from pathlib import Path

from stateatlas.canonical import sha256_file

PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "concept-erasure",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "pyarrow",
    "safetensors",
    "matplotlib",
    "jinja2",
)


def describe(
    cfg: dict, wildcards: dict, inputs: list[Path], outputs: list[Path], modules: set[str], home: Path
) -> dict:
    """Return the manifest of a finished job whose outputs lie in `home`.

    `modules` are the names of the imported modules; only packages among them are listed with their version.
    """
    names = {"scikit-learn": "sklearn", "concept-erasure": "concept_erasure"}
    used = [package for package in PACKAGES if names.get(package, package) in modules]
    return {
        "rule": cfg["rule"],
        "wildcards": wildcards,
        "cfg": cfg,
        "inputs": {relative(path, home): checksum(path) for path in inputs},
        "outputs": {relative(path, home): checksum(path) for path in outputs},
        "versions": {package: importlib.metadata.version(package) for package in used},
        "backend": cfg.get("backend"),
        "seed": cfg.get("seed"),
    }


def relative(path: Path, home: Path) -> str:
    """Return `path` as seen from `home`, so that a moved results folder keeps its manifests."""
    return Path(os.path.relpath(path, home)).as_posix()


def checksum(path: Path) -> str | dict[str, str]:
    """Return a file's sha256; a folder's files' sha256 by name."""
    if path.is_dir():
        # Snakemake puts a hidden time stamp into folders that it makes.
        files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
        return {p.relative_to(path).as_posix(): sha256_file(p) for p in files}
    return sha256_file(path)


def write(path: Path, content: dict) -> None:
    """Write a manifest with sorted keys."""
    path.write_text(json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def version(package: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
