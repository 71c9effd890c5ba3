"""The conda environments and the plain .venv hold the same versions, none more than its rules need."""

import ast
import functools
import re
import sys
from pathlib import Path

import pytest
import yaml

from stateatlas import bootstrap, canonical, experiments, install, plan, settings

ENVS = bootstrap.ROOT / "envs"
NAMES = ("corpora", "train", "analysis", "erase", "units", "figures", "report", "mamba")
DISTRIBUTIONS = {
    "sklearn": "scikit-learn", "yaml": "pyyaml", "concept_erasure": "concept-erasure", "mamba_ssm": "mamba-ssm",
    "causal_conv1d": "causal-conv1d", "huggingface_hub": "huggingface-hub",
}  # fmt: skip
# What comes with jinja2; what a script builds into `mamba`, and `backend: mamba_ssm` alone imports.
ELSEWHERE = {"markupsafe", "mamba-ssm", "causal-conv1d"}
TO_BUILD = {"einops", "ninja", "setuptools", "wheel"}  # what mamba-ssm needs to be built and imported
# What scripts import beside the packages of their kind of work: stateatlas.job, tables, data files.
COMMON = {"numpy", "pandas", "pyarrow", "filelock", "psutil", "threadpoolctl"}


def pins(path: Path) -> dict[str, str]:
    """Return name -> version of a requirements file; every line must be an exact pin."""
    lines = [line.partition("#")[0].strip() for line in path.read_text().splitlines()]
    lines = [line for line in lines if line and not line.startswith("-c ")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+", line) for line in lines)
    found = dict(line.split("==") for line in lines)
    assert len(found) == len(lines), "a package stands there twice"
    return found


def packages(name: str) -> dict[str, str]:
    """Return name -> version of what pip installs in a conda environment."""
    environment = yaml.safe_load((ENVS / f"{name}.yaml").read_text())
    assert environment["channels"] == ["conda-forge"]
    python, pip, lists = environment["dependencies"]
    assert (python, pip) == ("python=3.11", "pip")
    return dict(pin.split("==") for pin in lists["pip"])


def test_every_environment_has_the_versions_of_the_plain_one():
    plain = pins(ENVS / "requirements.txt")
    for name in NAMES:
        found = {package: version for package, version in packages(name).items() if package not in TO_BUILD}
        assert found == {package: plain[package] for package in found}


def test_the_environment_of_mamba_ssm_is_the_one_of_units_with_what_builds_it():
    assert packages("mamba").keys() == packages("units").keys() | TO_BUILD


def test_a_script_that_completes_an_environment_is_part_of_it(tmp_path):
    (tmp_path / "a.yaml").write_text("- numpy==2.4.6\n")
    before = canonical.env_hash(tmp_path / "a.yaml")
    (tmp_path / "a.post-deploy.sh").write_text("pip install \\\n    mamba-ssm==2.3.2\n")
    assert canonical.env_hash(tmp_path / "a.yaml") != before


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_can_run_a_job(name):
    assert packages(name).keys() >= COMMON


def test_only_what_runs_models_has_torch_and_only_figures_have_matplotlib():
    assert [name for name in NAMES if "torch" in packages(name)] == ["train", "erase", "units", "mamba"]
    assert [name for name in NAMES if "matplotlib" in packages(name)] == ["figures"]


def test_constraints_bound_only_what_is_not_pinned_already():
    assert not pins(ENVS / "constraints.txt").keys() & pins(ENVS / "requirements.txt").keys()


def test_the_setup_checks_and_builds_only_what_is_pinned():
    plain = pins(ENVS / "requirements.txt")
    assert set(install.WHEELS_ONLY.split(",")) <= plain.keys()
    modules = bootstrap.IMPORTS.removeprefix("import ").replace("sklearn", "scikit-learn").split(", ")
    assert set(modules) <= plain.keys()


@functools.cache
def third_party(path: Path) -> set[str]:
    """Return the packages that a file of ours imports, wherever in it, by the names that pip knows them by."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())) if path.suffix == ".py" else ():
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        found |= {name.partition(".")[0] for name in names}
    return {DISTRIBUTIONS.get(name, name) for name in found - set(sys.stdlib_module_names) - {"stateatlas"}}


@pytest.fixture(scope="module", params=["torch", "mamba_ssm"])
def needed(request, root) -> dict[tuple[str, str], set[str]]:
    """What the code of every rule imports, by rule and environment."""
    changes = {"scale": "smoke", "gpu": True, "extras": list(experiments.RULES)[1:], "backend": request.param}
    made = plan.Plan(settings.resolve(settings.read(root / "config.yaml") | changes))
    found: dict[tuple[str, str], set[str]] = {}
    for rule, w in made.jobs():
        packages = {package for path in made.files(rule, w) for package in third_party(path)}
        found.setdefault((rule, made.env(rule)), set()).update(packages)
    return found


def test_an_environment_has_all_that_the_code_of_its_rules_imports(needed):
    """Snakemake's own packages stand behind those of the environment and would hide what is missing."""
    assert len(needed) > 20
    for (rule, environment), imported in needed.items():
        assert imported <= packages(environment).keys() | ELSEWHERE, rule
