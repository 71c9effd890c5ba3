"""Ours beside the authors' mamba-ssm and causal-conv1d, built without CUDA in an environment of its own."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

TRITON = "triton==3.7.1"  # the one that this torch's CUDA build asks for; its CPU build comes without


def run(*command, **more) -> None:
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.fixture(scope="module")
def python(root, tmp_path_factory) -> Path:
    """A Python that sees all packages of this one, and theirs."""
    folder = tmp_path_factory.mktemp("authors")
    venv.create(folder, with_pip=False, symlinks=True)
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    here = [path for path in sys.path if path.endswith("site-packages")]
    (site / "here.pth").write_text("\n".join(here) + "\n")
    tools = re.findall(r"(?:einops|ninja|setuptools|wheel)==\S+", (root / "envs/mamba.yaml").read_text())
    theirs = re.findall(r"[\w-]+==[\w.]+", (root / "envs/mamba.post-deploy.sh").read_text())
    assert len(tools) == 4 and len(theirs) == 2
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps")
    build = {
        f"{name}_{what}": "TRUE" for name in ("MAMBA", "CAUSAL_CONV1D") for what in ("FORCE_BUILD", "SKIP_CUDA_BUILD")
    }
    run(*pip, TRITON, *tools)
    run(*pip, "--no-build-isolation", *theirs, env=os.environ | build | {"PATH": f"{folder}/bin:{os.environ['PATH']}"})
    return folder / "bin" / "python"


@pytest.mark.slow
def test_ours_is_what_the_authors_code_computes(python, root):
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/authors/check_authors.py", cwd=root)
