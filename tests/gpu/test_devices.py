"""What a GPU computes is what the CPU computes: states, edits, a training step, interventions on units.

    python -m pytest tests/gpu -m gpu

needs torch, numpy, transformers and pytest alone. STATEATLAS_TEST_DEVICE=cpu tries the tests themselves without a GPU.
"""

import copy
import os
from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch

from stateatlas import adapters, blocks, kernel_check, tasks, units
from stateatlas.residual import matched_shape
from stateatlas.seeds import stream
from stateatlas.training import Batches, Recipe, Trainer, initialise

DEVICE = os.environ.get("STATEATLAS_TEST_DEVICE", "cuda")
ARCHITECTURES = ("transformer", "mamba", "mamba2", "lstm", "gru")
FAMILIES = ("gpt2", "gpt_neox", "llama", "mamba", "mamba2")
# Of the norm of what is compared: sums of some hundred terms, in float32 (a GPU may take 10 bits of mantissa for
# convolutions and recurrent layers) and in bfloat16 (8 bits), through a few blocks.
FLOAT32, BFLOAT16 = 5e-3, 5e-2
RECIPE = Recipe(
    steps=10, batch=16, learning_rate=1e-3, betas=(0.9, 0.98), weight_decay=0.1, warmup=5, decay=1.0, clip=1.0,
    embedding_std=0.1, curriculum=0, advance=0.95, evaluate_every=5, stop_accuracy=0.998, stops=2,
)  # fmt: skip

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="no CUDA device here"),
]


def apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Return how far two tensors are apart, in units of the norm of the second."""
    found, expected = found.detach().cpu().double(), expected.detach().cpu().double()
    return float((found - expected).norm() / expected.norm())


def pair(model: torch.nn.Module, dtype: torch.dtype = torch.float32) -> tuple:
    """Return a model on the CPU and the same on the device."""
    model = model.to(dtype).eval()
    return model, copy.deepcopy(model).to(DEVICE)


def formal(architecture: str):
    blocks.use_backend(architecture, "torch")
    return initialise(matched_shape(architecture, 32, 2, 6, 6), RECIPE, 0)


def language(family: str, folder: Path):
    _, place = tiny_models.save(family, folder)
    return adapters.load(place)


@pytest.fixture(params=[*ARCHITECTURES, *(f"hub {name}" for name in FAMILIES)])
def model(request, tmp_path):
    name = request.param.removeprefix("hub ")
    return language(name, tmp_path) if request.param.startswith("hub ") else formal(name)


def tokens(model) -> torch.Tensor:
    high = model.embedding.num_embeddings if hasattr(model, "embedding") else 24
    return torch.from_numpy(np.random.default_rng(0).integers(1, high, (3, 20)))


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, FLOAT32), (torch.bfloat16, BFLOAT16)])
@torch.no_grad()
def test_states_at_every_site_agree(model, dtype, bound):
    cpu, gpu = pair(model, dtype)
    read = tokens(model)
    found, expected = gpu.states(read.to(DEVICE)), cpu.states(read)
    assert all(state.device.type == DEVICE for state in found)
    assert max(map(apart, found, expected)) < bound
    assert apart(gpu(read.to(DEVICE)), cpu(read)) < bound


@torch.no_grad()
def test_an_edit_at_every_site_agrees_and_bites(model):
    cpu, gpu = pair(model)
    read = tokens(model)
    clean = gpu(read.to(DEVICE))
    for site in range(cpu.sites):
        direction = torch.randn(cpu.states(read)[0].shape[-1], generator=torch.Generator().manual_seed(site))
        logits = [
            one.resume(one.states(read.to(device))[site] + direction.to(device), site)
            for one, device in ((cpu, "cpu"), (gpu, DEVICE))
        ]
        assert apart(logits[1], logits[0]) < FLOAT32
        assert apart(logits[1], clean) > FLOAT32


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_training_step_agrees(architecture):
    task = tasks.load("parity", 12)
    held = task.sample(stream(0, "validation"), 32, 12)
    after = []
    models = [formal(architecture).train(), formal(architecture).train().to(DEVICE)]
    for one in models:
        batches = Batches(task, RECIPE, [held], 0, ("t",))
        trainer = Trainer(one, batches, RECIPE, (held, task.label(held)["state"]), held)
        after.append(trainer.update())
    assert abs(after[1] - after[0]) < FLOAT32 * after[0]
    start = formal(architecture).state_dict()
    for name, value in models[0].state_dict().items():
        moved = value - start[name]
        if moved.norm() > 0:
            # AdamW's first step is the sign of the gradient: where that is rounding alone, it may be either.
            same = (torch.sign(models[1].state_dict()[name].cpu() - start[name]) == torch.sign(moved)).double()
            assert same.mean() > 0.95, name


@pytest.mark.parametrize("family", ["mamba", "mamba2"])
@pytest.mark.parametrize("intervention", ["gate_zero", "gate_one", "delta_zero", "delta_shift", "output_zero"])
@torch.no_grad()
def test_interventions_on_units_agree_and_are_taken_back(family, intervention, tmp_path):
    cpu, gpu = pair(language(family, tmp_path))
    read, found = tokens(cpu), []
    before = copy.deepcopy(gpu.state_dict())
    for one, device in ((cpu, "cpu"), (gpu, DEVICE)):
        with units.intervened(one, family, intervention, {0: [1, 3], 2: [0]}, {}):
            found.append(one(read.to(device)))
    assert apart(found[1], found[0]) < FLOAT32
    assert apart(found[1], gpu(read.to(DEVICE))) > FLOAT32
    assert all(torch.equal(value, before[name]) for name, value in gpu.state_dict().items())


@pytest.mark.skipif(DEVICE != "cuda", reason="mamba-ssm computes on a GPU alone")
def test_mamba_ssms_kernels_are_plain_pytorchs_values_and_gradients():
    pytest.importorskip("mamba_ssm", exc_type=ImportError)
    kernel_check.check(list(kernel_check.differences(DEVICE)))
