"""`--sdm conda`: environments made from envs/ with a network, everything after them without one.

conda itself is a test double (conda.py) over a local channel; the packages under `pip:` come from the package index.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from workflow import NOTHING, Project, copied

HERE = Path(__file__).parent
CUT_OFF = ("unshare", "--net", "--map-root-user")
ACTIVATE = 'export CONDA_PREFIX="$1"\nexport PATH="$1/bin:$PATH"\n'


@pytest.fixture(scope="module")
def conda(tmp_path_factory) -> dict[str, str]:
    """The environment variables with which there is a `conda`."""
    base = tmp_path_factory.mktemp("conda")
    (base / "bin").mkdir()
    library = base / "rattler"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", library, "py-rattler==0.28.0"]
    subprocess.run(command, check=True)
    program = base / "bin" / "conda"
    program.write_text((HERE / "conda.py").read_text().replace("/usr/bin/env python3", sys.executable, 1))
    program.chmod(0o755)
    (base / "bin" / "activate").write_text(ACTIVATE)
    known = {"PYTHONPATH": str(library), "LOCAL_CHANNELS": str(base / "channels")}
    subprocess.run(
        [sys.executable, HERE / "channel.py", base / "channels" / "conda-forge"], env=os.environ | known, check=True
    )
    return known | {"PATH": f"{base / 'bin'}:{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def made(root, conda, tmp_path_factory) -> Project:
    """A project whose environments are made and nothing else."""
    project = copied(root, tmp_path_factory.mktemp("deployed") / "a clone")
    done = project.snakemake("--sdm", "conda", "--conda-create-envs-only", **conda)
    assert done.returncode == 0, done.stdout
    assert not (project.work / "results").exists()
    return project


@pytest.fixture(scope="module")
def without_network(made, conda) -> subprocess.CompletedProcess:
    command = [*CUT_OFF, sys.executable, "-P", "-m", "snakemake", "--sdm", "conda", "--quiet", "rules"]
    return subprocess.run(
        command, cwd=made.work, env=os.environ | conda, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip


def environments(project: Project) -> dict[str, Path]:
    """Return the prefix of every environment by its pins."""
    folder = project.work / ".snakemake" / "conda"
    return {path.read_text(): path.with_suffix("") for path in folder.glob("*.yaml")}


@pytest.mark.slow
def test_every_environment_holds_its_pins_and_no_more_of_ours(made, root):
    found = environments(made)
    wanted = {
        path.read_text()
        for path in (root / "envs").glob("*.yaml")
        if path.stem in ("analysis", "train", "erase", "figures", "report")
    }
    assert set(found) == wanted
    for text, prefix in found.items():
        pins = dict(pin.split("==") for pin in yaml.safe_load(text)["dependencies"][-1]["pip"])
        command = [
            prefix / "bin" / "python",
            "-c",
            "import importlib.metadata as m; print(*(f'{d.name}=={d.version}' for d in m.distributions()))",
        ]
        installed = dict(
            pin.lower().replace("_", "-").split("==")
            for pin in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        )
        assert {name: installed[name].partition("+")[0] for name in pins} == pins
        assert "snakemake" not in installed and ("torch" in installed) == ("torch" in pins)


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*CUT_OFF, "true"], check=False).returncode,
    reason="no network namespace can be made here",
)
def test_after_that_it_runs_without_a_network(made, without_network):
    assert without_network.returncode == 0, without_network.stdout
    assert (made.work / "results/smoke/report/index.html").exists()
    assert NOTHING in made.snakemake("--dry-run").stdout, "the environment is part of no result"


@pytest.mark.slow
def test_its_tables_are_those_of_a_run_without_conda(root, made, without_network, tmp_path):
    plain = copied(root, tmp_path / "a clone")
    done = plain.snakemake("--quiet", "rules", "--until", "collect", "derive")
    assert done.returncode == 0, done.stdout
    tables = sorted((plain.work / "results/smoke/tables").glob("*/table.parquet"))
    assert len(tables) > 5
    for path in tables:
        assert (made.work / path.relative_to(plain.work)).read_bytes() == path.read_bytes(), path


@pytest.fixture(scope="module")
def other_python(root, tmp_path_factory) -> Path:
    """A Python of another minor version with what the driver itself needs, and so without torch."""
    names = [f"python3.{minor}" for minor in (13, 12) if minor != sys.version_info.minor]
    places = [*map(shutil.which, names), *(p for n in names for p in Path.home().glob(f".pyenv/versions/*/bin/{n}"))]
    found = [
        p
        for p in filter(None, places)
        if not subprocess.run([p, "-c", ""], capture_output=True, check=False).returncode
    ]
    if not found:
        pytest.skip("there is no other Python here")
    place = tmp_path_factory.mktemp("other")
    subprocess.run([found[0], "-m", "venv", place], check=True)
    workflow = (root / "envs" / "requirements.txt").read_text().partition("# workflow")[2].partition("\n\n")[0]
    pins = re.findall(r"^[a-z0-9-]+==\S+", workflow, flags=re.MULTILINE)
    assert any(pin.startswith("snakemake==") for pin in pins)
    subprocess.run([place / "bin" / "python", "-m", "pip", "install", "--quiet", *pins], check=True)
    return place / "bin" / "python"


@pytest.mark.slow
def test_jobs_take_the_python_and_the_torch_of_their_environment_whatever_the_drivers(made, conda, other_python, root):
    fresh = made.work / "results"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(made.work / ".snakemake" / "metadata", ignore_errors=True)
    command = [other_python, "-P", "-m", "snakemake", "--sdm", "conda", "--quiet", "rules", "--until", "train"]
    done = subprocess.run(
        command, cwd=made.work, env=os.environ | conda, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    pins = (root / "envs" / "train.yaml").read_text()
    manifests = list(fresh.glob("smoke/encoding/models/*/*/*/manifest.json"))
    assert len(manifests) == 2
    for path in manifests:
        assert f"torch=={json.loads(path.read_text())['versions']['torch'].partition('+')[0]}" in pins
