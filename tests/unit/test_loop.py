"""A job for a GPU says at once that its torch cannot use one, and the environment for GPUs is not made without CUDA."""

import os
import re
import subprocess
import sys

import pytest
import torch

from stateatlas import canonical, loop, sizing
from stateatlas.job import InputError

ON_GPUS = [rule for rule, size in sizing.sizes("paper").items() if size.gpu]


def test_a_gpu_that_torch_cannot_use_is_an_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"torch .* cannot use it: install a CUDA build .* `--resources gpu=0`"):
        loop.use_device("cuda", 1)


@pytest.mark.parametrize("rule", ON_GPUS)
def test_every_rule_that_takes_a_gpu_asks_first(rule):
    script = canonical.PACKAGE.parent / f"{rule}.py"
    job = re.findall(r"stateatlas(?:\.| import )(\w+_job)", script.read_text())
    files = [script, *(canonical.PACKAGE / f"{name}.py" for name in job)]
    assert any(re.search(r"^ *use_device\(", file.read_text(), flags=re.MULTILINE) for file in files)


@pytest.mark.parametrize(("cuda", "built"), [("None", False), ("'12.8'", True)])
def test_the_environment_for_gpus_is_not_built_around_a_torch_without_cuda(root, tmp_path, cuda, built):
    torch_of_the_environment = tmp_path / "lib" / "torch.py"
    torch_of_the_environment.parent.mkdir()
    torch_of_the_environment.write_text(f"class version:\n    cuda = {cuda}\n")
    for name, text in (("python", f'exec "{sys.executable}" "$@"'), ("pip", 'touch "$0.called"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(torch_of_the_environment.parent),
    }
    script = root / "envs" / "mamba.post-deploy.sh"
    done = subprocess.run(["sh", str(script)], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is built is (tmp_path / "pip.called").exists()
    assert built or "pip brought a torch without CUDA" in done.stderr
