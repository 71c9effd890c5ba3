"""What a user sees of a mistake: one message, no traceback, and nothing started or written."""

import subprocess

import pytest
import yaml
from workflow import Project

TARGET = "results/smoke/encoding/sequences/parity/manifest.json"
BAD_LINES = [
    (["seed=3"], "--config: unknown key 'seed'; did you mean seeds?"),
    (["tasks=parity"], "--config: tasks is 'parity'; a list such as [a, b] is needed"),
    (["steps={default: 60}"], "--config: steps.default is '60'; --config takes what stands in braces or lists as text"),
    (["seeds=1e-3"], "--config: seeds is 0.001; a whole number without a point or an exponent is needed"),
]
BROKEN = [("", "config.yaml: it is empty"), ("scale: [smoke\nseeds: 2\n", "config.yaml, line 2: not YAML")]


def refused(project: Project, *arguments: str) -> str:
    """Return what Snakemake says, after checking that it says so cleanly and does nothing."""
    done = project.snakemake("--cores", "1", *arguments)
    assert done.returncode != 0
    assert "Traceback" not in done.stdout and "Building DAG" not in done.stdout
    assert not (project.work / "results").exists() and not (project.work / "logs").exists()
    return done.stdout


@pytest.mark.parametrize(("entries", "told"), BAD_LINES)
def test_a_mistake_on_the_command_line_is_told(clone, entries, told):
    assert f"\n{told}" in refused(clone, "--config", *entries)


def test_a_mistake_in_a_config_file_is_told_with_the_file(clone):
    path = clone.root / "it's mine.yaml"
    path.write_text(yaml.safe_dump({"training": {"learning_rate": "1e-3"}}))
    told = f"--configfile {path}: training.learning_rate is '1e-3'; that is text"
    assert f"\n{told}" in refused(clone, "--configfile", path.name)


@pytest.mark.parametrize(("content", "told"), BROKEN)
def test_a_broken_config_is_told_with_the_line(clone, content, told):
    (clone.root / "config.yaml").write_text(content)
    assert told in refused(clone)


def test_a_mistake_in_the_claims_file_is_told_before_any_job(clone):
    path = clone.root / "data" / "claims.yaml"
    path.write_text(path.read_text().replace("\n  study:", "\n  stduy:", 1).replace("\n- study:", "\n- stduy:", 1))
    said = refused(clone)
    assert "claims.yaml" in said and "stduy" in said


@pytest.mark.parametrize("place", ["results/smoke", "logs"])
def test_a_file_where_a_folder_should_be_is_told(clone, place):
    path = clone.root / place
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    done = clone.snakemake("--cores", "1", "--", TARGET)
    assert done.returncode != 0 and "Traceback" not in done.stdout
    assert f"{place} is in the way of a folder; move it" in done.stdout


def test_a_results_folder_that_cannot_be_written_is_told(clone):
    results = clone.root / "results"
    results.mkdir()
    if subprocess.run(["mount", "--bind", results, results], capture_output=True, check=False).returncode:
        pytest.skip("no right to mount here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", results], check=True)
        done = clone.snakemake("--cores", "1", "--", TARGET)
    finally:
        subprocess.run(["umount", "--lazy", results], check=True)
    assert done.returncode != 0 and "Traceback" not in done.stdout
    assert f"{results} cannot be written; make it writable, or work elsewhere with --directory" in done.stdout


def test_a_damaged_result_is_told_by_the_job_that_reads_it(project):
    """As a user meets it: the line is on the terminal, the traceback is not, and the advice works."""
    damaged = project.work / "results/smoke/encoding/sequences/parity/sequences.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:100])
    project.append("scripts/stateatlas/probing.py", "\nEDITED = 1\n")
    target = "results/smoke/encoding/base/parity/manifest.json"
    done = project.snakemake("--cores", "1", "--quiet", "rules", "--", target)
    folder = "results/smoke/encoding/sequences/parity"
    told = f"base_probe: {folder}/sequences.safetensors: not what its manifest says; delete {folder} and run again"
    assert done.returncode != 0 and told in done.stdout and "Traceback" not in done.stdout
    assert "The traceback is in logs/smoke/base_probe/encoding/base/parity.log" in done.stdout
    for path in damaged.parent.iterdir():
        path.unlink()
    damaged.parent.rmdir()
    assert project.snakemake("--cores", "1", "--quiet", "rules", "--", target).returncode == 0
    assert project.planned() >= {"results/smoke/encoding/probes/parity/mamba/seed0"}
