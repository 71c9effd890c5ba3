"""The workflow as a module of another one."""

from pathlib import Path

import pytest
from workflow import NOTHING, Project

PARENT = """
module atlas:
    snakefile: {snakefile!r}
{config}
{prefix}

use rule * from atlas{name}


rule paper:
    default_target: True
    input: rules.{all}.input
    output: "paper.txt"
    shell: "echo {{input}} > {{output}}"


rule other:
    output: "{{task}}/other.txt"
    shell: "touch {{output}}"
"""


def parent(project: Project, folder: Path, config: dict | None, name: str = "", prefix: str = "") -> Project:
    """Write a workflow that takes all rules from the project, with their names changed or their results moved."""
    folder.mkdir(exist_ok=True)
    text = PARENT.format(
        snakefile=str(project.root / "Snakefile"),
        config="" if config is None else f"    config: {config!r}",
        prefix=f"    prefix: {prefix!r}" if prefix else "",
        name=f" as {name}*" if name else "",
        all=f"{name}all",
    )
    (folder / "Snakefile").write_text(text)
    return Project(folder, folder)


@pytest.mark.parametrize(("name", "prefix"), [("", ""), ("atlas_", "sub folder")])
def test_all_rules_can_be_used(clone, tmp_path, name, prefix):
    outer = parent(clone, tmp_path / "the user's paper", {"scale": "smoke", "seeds": 2}, name, prefix)
    done = outer.snakemake("--dry-run")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(f"\nrule {name}train:") == 4
    assert f"{prefix}/results/smoke/report/manifest.json".lstrip("/") in done.stdout
    assert "not present in the Snakefile" not in done.stdout


def test_the_results_of_a_plain_run_are_the_modules_too(project, tmp_path):
    """Rules by other names, from another folder: nothing hangs on either."""
    outer = parent(project, tmp_path / "paper", {}, "atlas_")
    for name in ("results", ".snakemake"):
        (project.work / name).rename(outer.work / name)
    done = outer.snakemake("--dry-run", "--rerun-triggers", "mtime", "params", "input", "--", "atlas_all")
    assert NOTHING in done.stdout, done.stdout


def test_a_mistake_in_the_modules_config_is_named(clone, tmp_path):
    outer = parent(clone, tmp_path / "paper", {"seed": 2}, "atlas_")
    done = outer.snakemake("--dry-run")
    assert done.returncode != 0
    assert "the importing Snakefile: unknown key 'seed'; did you mean seeds?" in done.stdout


@pytest.mark.parametrize("config", [{}, None])
def test_the_parents_own_config_and_wildcards_stay_its_own(clone, tmp_path, config):
    outer = parent(clone, tmp_path / "paper", config, "atlas_")
    done = outer.snakemake("--dry-run", "--config", "authors=4", "--", "anything/other.txt", "atlas_sequences")
    assert done.returncode == 0, done.stdout


def test_a_target_is_made(clone, tmp_path):
    outer = parent(clone, tmp_path / "paper", {"fit": 16}, "atlas_", "sub folder")
    target = "sub folder/results/smoke/encoding/base/parity/table.parquet"
    done = outer.snakemake("--cores", "1", "--quiet", "rules", "--", target)
    assert done.returncode == 0 and (outer.work / target).exists(), done.stdout
    again = outer.snakemake("--dry-run", "--", target)
    assert NOTHING in again.stdout, again.stdout
