"""Which form of the kernels a run and its jobs take, and what mamba-ssm's must prove first."""

import json

import pytest
import torch

from stateatlas import backend, compiler, kernel_check, kernels, plan, settings
from stateatlas.job import InputError
from stateatlas.kernels import mamba_ssm, plain

FIRST = {"train", "pretrain", "finetune", "observe"}  # the first rules that compute with the kernels


@pytest.fixture(scope="module")
def on_gpu(root) -> plan.Plan:
    """A run on GPUs with mamba-ssm, of all studies."""
    changes = {"scale": "smoke", "backend": "mamba_ssm", "gpu": True, "extras": ["attribution", "language"]}
    return plan.Plan(settings.resolve(settings.read(root / "config.yaml") | changes))


def cfgs(made: plan.Plan, rule: str) -> list[dict]:
    """The cfgs of a rule's jobs, of those that use the kernels at all."""
    found = (json.loads(made.cfg(rule, w)) for name, w in made.jobs() if name == rule)
    return [cfg for cfg in found if "backend" in cfg]


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("compiles", [True, False])
def test_auto_takes_what_is_there(monkeypatch, installed, compiles):
    monkeypatch.setattr(backend.importlib.util, "find_spec", lambda name: object() if installed else None)
    monkeypatch.setattr(compiler, "available", lambda: compiles)
    assert backend.resolve("auto", gpu=True) == ("mamba_ssm" if installed else "torch")
    assert backend.resolve("auto", gpu=False) == ("compiled" if compiles else "torch")


def test_mamba_ssm_without_a_gpu_is_refused():
    assert backend.resolve("mamba_ssm", gpu=True) == "mamba_ssm"
    with pytest.raises(settings.ConfigError, match=r"config\.yaml: backend is 'mamba_ssm'.*gpu: true.*backend: auto"):
        backend.resolve("mamba_ssm", gpu=False)


def test_every_backend_is_explained(root):
    known = settings.read(settings.SCHEMA)["properties"]["backend"]["enum"]
    assert {"auto", *backend.SAID} == set(known)


def test_jobs_on_a_gpu_take_mamba_ssm_and_the_others_plain_pytorch(on_gpu):
    found = {rule: {cfg["backend"] for cfg in cfgs(on_gpu, rule)} for rule in plan.RULES}
    assert found["pretrain"] == found["finetune"] == found["check_backend"] == {"mamba_ssm"}
    assert found["observe"] == found["intervene"] == found["teach"] == {"mamba_ssm"}
    assert found["record"] == found["ablate"] == {"torch"}


def test_the_convolution_is_taken_out_of_one_form_alone(on_gpu):
    """A difference between two backends must not be read as what the convolution does (A10)."""
    cells = {(cfg["task"], cfg["architecture"]): cfg["backend"] for cfg in cfgs(on_gpu, "train")}
    assert cells[("parity", "mamba")] == cells[("parity", "mamba-noconv")] == "torch"
    assert cells[("dyck", "mamba")] == "mamba_ssm"


def test_what_first_computes_with_mamba_ssm_waits_for_its_check(on_gpu):
    waiting = {rule for rule, w in on_gpu.jobs() if ("check_backend", {}) in on_gpu.upstream(rule, w)}
    assert waiting == FIRST
    others = [w for rule, w in on_gpu.jobs() if rule == "train" and "mamba" not in w["architecture"]]
    assert others and not any(("check_backend", {}) in on_gpu.upstream("train", w) for w in others)


def test_without_mamba_ssm_nothing_is_checked(on_gpu):
    made = plan.Plan(on_gpu.settings | {"backend": "torch"})
    assert "check_backend" not in {rule for rule, _ in made.jobs()}


CELL = {"task": "dyck", "architecture": "mamba", "seed": "0"}


def test_jobs_on_a_gpu_have_the_environment_with_mamba_ssm(on_gpu):
    assert on_gpu.env("train") == on_gpu.env("observe") == on_gpu.env("check_backend") == "mamba"
    assert (on_gpu.env("probe"), on_gpu.env("record")) == ("analysis", "train")
    made = plan.Plan(on_gpu.settings | {"backend": "torch"})
    assert made.env("train") == "train" and made.cfg("train", CELL) != on_gpu.cfg("train", CELL)


def test_without_the_packages_the_remedy_is_said():
    with pytest.raises(ImportError, match=r"(?s)mamba-ssm.*envs/mamba\.yaml.*backend: torch"):
        kernels.use("mamba_ssm")


def test_on_the_cpu_and_in_transforms_plain_pytorch_takes_over(monkeypatch):
    monkeypatch.setattr(mamba_ssm, "loaded", lambda: None)
    monkeypatch.setattr(mamba_ssm, "ssd", lambda *inputs: pytest.fail("called on the CPU"))
    values = kernel_check.draw("ssd", 7, 2, 16, 16)
    try:
        kernels.use("mamba_ssm")
        assert torch.equal(kernels.ssd(*values), plain.ssd(*values))
    finally:
        kernels.use("torch")
    monkeypatch.setattr(mamba_ssm, "DEVICE", "cpu")
    seen = []
    torch.func.vmap(lambda x: seen.append(mamba_ssm.fits(x)) or x)(torch.ones(2, 3))
    assert mamba_ssm.fits(*values) and seen == [False]


@pytest.fixture
def theirs(monkeypatch):
    """mamba-ssm on the CPU, as if it computed what plain PyTorch does."""
    monkeypatch.setattr(mamba_ssm, "loaded", lambda: None)
    monkeypatch.setattr(mamba_ssm, "DEVICE", "cpu")
    monkeypatch.setattr(kernel_check, "LENGTHS", (1, 40))
    for name in kernel_check.SIZES:
        monkeypatch.setattr(mamba_ssm, name, getattr(plain, name))


def test_kernels_that_agree_pass_in_both_dtypes(theirs):
    rows = list(kernel_check.differences("cpu"))
    kernel_check.check(rows)
    assert {row["kernel"] for row in rows} == set(kernel_check.SIZES)
    assert {row["dtype"] for row in rows} == {"float32", "bfloat16"}
    assert {row["of"] for row in rows} >= {"value", "weight", "delta", "a", "skip", "gate"}
    assert max(row["difference"] for row in rows if row["dtype"] == "float32") < 1e-5


WRONG = {
    "no gate": lambda u, delta, a, b, c, skip, gate: plain.ssd(u, delta, a, b, c, skip, gate * 0 + 1.2784645),
    "no skip": lambda u, delta, a, b, c, skip, gate: plain.ssd(u, delta, a, b, c, skip * 0, gate),
    "B and C swapped": lambda u, delta, a, b, c, skip, gate: plain.ssd(u, delta, a, c, b, skip, gate),
    "a gradient lost": lambda u, delta, a, *more: plain.ssd(u, delta, a.detach() + 0 * a, *more),
    "not a number": lambda *inputs: plain.ssd(*inputs) * torch.nan,
}


@pytest.mark.parametrize("form", WRONG.values(), ids=WRONG)
def test_kernels_that_differ_are_refused(theirs, monkeypatch, form):
    monkeypatch.setattr(mamba_ssm, "ssd", form)
    with pytest.raises(InputError, match=r"mamba-ssm's ssd is not what plain PyTorch computes.*backend: torch"):
        kernel_check.check(list(kernel_check.differences("cpu")))


def test_the_check_needs_a_gpu(monkeypatch):
    monkeypatch.setattr(mamba_ssm, "loaded", lambda: None)
    with pytest.raises(InputError, match="cpu is none; set backend: torch"):
        list(kernel_check.differences("cpu"))
