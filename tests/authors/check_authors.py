"""What the authors' own code computes is what ours computes (see authors.py; run by test_mamba_ssm.py)."""

import json

import authors  # noqa: F401 (first: it makes their packages importable)
import pytest
import tiny_models
import torch
from mamba_ssm.models.config_mamba import MambaConfig
from mamba_ssm.models.mixer_seq_simple import MambaLMHeadModel

from stateatlas import adapters, blocks, kernel_check, kernels, units
from stateatlas.residual import ResidualModel, matched_shape

FLOAT32 = 1e-5  # of the norm: sums of some hundred terms, in other orders


@pytest.fixture(autouse=True)
def _plain_again():
    yield
    kernels.use("torch")


def apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.detach() - expected.detach()).norm() / expected.detach().norm())


def in_both(work) -> tuple:
    """Return what `work` returns with the authors' kernels and with plain PyTorch."""
    found = []
    for backend in ("mamba_ssm", "torch"):
        kernels.use(backend)
        found.append(work())
    return tuple(found)


def formal(architecture: str) -> ResidualModel:
    torch.manual_seed(0)
    return ResidualModel(matched_shape(architecture, 32, 2, 6, 6))


TOKENS = torch.randint(0, 6, (2, 12), generator=torch.Generator().manual_seed(0))


def test_every_kernel_and_gradient(monkeypatch):
    monkeypatch.setattr(kernel_check, "LENGTHS", (1, 20, 260))
    monkeypatch.setattr(kernel_check, "SIZES", kernel_check.SIZES | {"ssd": ((2, 16, 32),)})
    rows = list(kernel_check.differences("cpu"))
    kernel_check.check(rows)
    assert max(row["difference"] for row in rows if row["dtype"] == "float32") < FLOAT32


@pytest.mark.parametrize("architecture", ["mamba", "mamba2"])
def test_states_and_gradients_of_a_model(architecture):
    model = formal(architecture)

    def work():
        model.zero_grad()
        blocks.use_backend(architecture, "mamba_ssm" if kernels._faster else "torch")
        states = model.states(TOKENS)
        torch.nn.functional.cross_entropy(model(TOKENS).flatten(0, 1), TOKENS.flatten()).backward()
        return [*states, *(p.grad.clone() for p in model.parameters())]

    theirs, ours = in_both(work)
    assert len(ours) > 10 and max(map(apart, theirs, ours)) < 10 * FLOAT32


@pytest.mark.parametrize("family", ["mamba", "mamba2"])
@pytest.mark.parametrize("intervention", ["gate_zero", "gate_one", "delta_zero", "delta_shift", "output_zero"])
@torch.no_grad()
def test_interventions_on_units(family, intervention, tmp_path):
    _, place = tiny_models.save(family, tmp_path)
    model = adapters.load(place)

    def work():
        with units.intervened(model, family, intervention, {0: [1, 3], 2: [0]}, {}):
            return model(TOKENS + 1)

    theirs, ours = in_both(work)
    assert apart(theirs, ours) < FLOAT32
    assert apart(ours, model(TOKENS + 1)) > FLOAT32


@pytest.mark.parametrize("layer", ["Mamba1", "Mamba2"])
@torch.no_grad()
def test_a_checkpoint_that_their_model_saved_has_their_logits(layer, tmp_path):
    torch.manual_seed(0)
    more = {"headdim": 16, "d_state": 16, "use_mem_eff_path": False} if layer == "Mamba2" else {"use_fast_path": False}
    config = MambaConfig(
        d_model=32, n_layer=3, vocab_size=24, ssm_cfg={"layer": layer, **more}, rms_norm=True, residual_in_fp32=True,
        fused_add_norm=False, pad_vocab_size_multiple=8,
    )  # fmt: skip
    theirs = MambaLMHeadModel(config)
    theirs.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["ssm_cfg"]["layer"] == layer
    expected = theirs(TOKENS + 1).logits
    assert apart(adapters.load(tmp_path)(TOKENS + 1), expected) < FLOAT32
