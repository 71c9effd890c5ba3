"""The form of the workflow: lint, formats, what every rule and profile must say, the size of the largest run."""

import re
import subprocess
import sys
import time

import pytest
import yaml
from workflow import Project

from stateatlas import plan

RULES = [
    f"rules/{name}.smk" for name in ("models", "language", "units", "response", "measurements", "claims", "figures")
]
STUDIES = ("encoding",)
STAGES = ("all", "sequences", "models", "measurements", "tables", "verdicts", "figures")


@pytest.fixture(scope="module")
def blocks(root) -> dict[str, str]:
    """The text of every rule that runs a script."""
    text = "\n\n\n".join((root / name).read_text() for name in RULES)
    found = re.split(r"^rule (\w+):\n", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def tool(root, *command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", *command],
        cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_snakemake_lint_is_clean(clone):
    tool(clone.root, "snakemake", "--lint")


def test_snakefmt_is_clean(root):
    tool(root, "snakefmt", "--check", "Snakefile", "rules")


def test_ruff_is_clean(root):
    tool(root, "ruff", "check", "scripts", "tests")


def test_no_source_file_is_longer_than_300_lines(root):
    sources = [*(root / "scripts").rglob("*.py"), *(root / "tests").rglob("*.py"), *(root / "rules").glob("*.smk")]
    long = {path.name: lines for path in sources if (lines := len(path.read_text().splitlines())) > 300}
    assert not long


def test_every_rule_of_the_plan_is_one_of_the_workflow_and_has_its_script(root, blocks):
    assert blocks.keys() == plan.RULES.keys()
    for rule in blocks:
        assert (root / "scripts" / f"{rule}.py").is_file()


@pytest.mark.parametrize("rule", plan.RULES)
def test_a_rule_says_all_that_a_cluster_needs(blocks, rule):
    for directive in ("output", "log", "benchmark", "conda", "threads", "resources", "params", "script"):
        assert re.search(rf"^    {directive}:", blocks[rule], flags=re.MULTILINE), directive
    for resource in (f'mem_mb=memory("{rule}")', f'runtime=minutes("{rule}")', f'gpu=gpu("{rule}")'):
        assert f"        {resource},\n" in blocks[rule], resource
    assert f'cfg=cfg("{rule}")' in blocks[rule] and f'"../scripts/{rule}.py"' in blocks[rule]
    assert f'env("{rule}")' in blocks[rule]
    params = re.search(r"^    params:\n((?:        .*\n)+)", blocks[rule], flags=re.MULTILINE)
    assert params[1].count("=") == 1, "a second param would escape the rerun rules"


def test_scripts_see_their_cfg_and_never_the_config(root):
    for path in (root / "scripts").rglob("*.py"):
        assert "snakemake.config" not in path.read_text(), path


def test_the_profiles_say_the_same_where_both_must(root):
    profiles = {path.parent.name: yaml.safe_load(path.read_text()) for path in (root / "profiles").glob("*/*.yaml")}
    assert {"default", "slurm"} <= profiles.keys()
    for name, profile in profiles.items():
        assert profile["rerun-triggers"] == ["mtime", "params", "input"], name
        assert profile["rerun-incomplete"] is True, name
    assert all(len(list(folder.glob("*.yaml"))) == 1 for folder in (root / "profiles").iterdir())


def test_no_rule_waits_for_a_checkpoint_to_know_the_rest_of_the_dag(root):
    for name in ("Snakefile", *RULES):
        assert not re.search(r"^checkpoint\b", (root / name).read_text(), flags=re.MULTILINE), name


@pytest.mark.parametrize("rule", ["fetch", "corpus"])
def test_what_needs_the_network_runs_where_snakemake_does_and_is_tried_again(blocks, rule):
    assert re.search(r"^    localrule: True$", blocks[rule], flags=re.MULTILINE)
    assert re.search(r"^    retries:", blocks[rule], flags=re.MULTILINE)


def test_every_study_and_stage_is_a_target(finished):
    done = finished.snakemake("--dry-run", "--", *STUDIES, *STAGES)
    assert done.returncode == 0 and "Nothing to be done" in done.stdout, done.stdout


def test_the_largest_run_is_planned_fast(clone, root):
    started = time.monotonic()
    (clone.root / "config.yaml").write_text((root / "config.yaml").read_text())
    done = clone.snakemake("--dry-run", "--quiet", "all", "--config", "scale=paper")
    print(f"paper scale planned in {time.monotonic() - started:.1f} s")
    assert done.returncode == 0, done.stdout
    assert time.monotonic() - started < 60


def test_targets_outside_the_config_are_no_targets(finished):
    for folder in ("models/parity/mamba/seed01", "models/s3/mamba/seed0"):
        done = finished.snakemake("--dry-run", "--", f"results/smoke/encoding/{folder}/manifest.json")
        assert done.returncode != 0 and "MissingRuleException" in done.stdout


def test_jobs_on_other_machines_are_told_the_backend(clone):
    """Each would else look for a compiler of its own, and results of both forms would mix."""
    clone.append(
        "Snakefile",
        "\n\nonstart:\n"
        "    settings = workflow.executor_plugin.common_settings\n"
        "    print(workflow.spawned_job_args_factory.general_args(executor_common_settings=settings))\n",
    )
    done = clone.snakemake("--cores", "1", "--", "results/smoke/encoding/sequences/parity/manifest.json")
    assert done.returncode == 0 and re.search(r"--config .*backend=(compiled|torch)", done.stdout), done.stdout


def test_the_report_of_snakemake_is_made(project: Project):
    done = project.snakemake("--report", "it's a report.html")
    assert done.returncode == 0, done.stdout
    page = (project.root / "it's a report.html").read_text()
    assert "Scorecard" in page and "Figures" in page
    assert all(figure in page for figure in plan.FIGURES)
