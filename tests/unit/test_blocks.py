"""Blocks agree with implementations that we did not write, value and gradient, and all kinds of model are one size."""

import itertools
import sys
from dataclasses import replace

import pytest
import recurrences
import torch

from stateatlas import blocks, tasks
from stateatlas.kernels import plain
from stateatlas.residual import POSITIONS, ResidualModel, matched_shape, parameters

ARCHITECTURES = ["transformer", "mamba", "mamba2", "lstm", "gru"]
C = plain.CHUNK


@pytest.fixture(scope="session")
def transformers():
    import transformers

    transformers.logging.set_verbosity_error()  # it recommends kernels for GPUs
    return transformers


def unlike_the_start(module):
    """Move all parameters, so that no bias is zero and no norm is one."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return module


def model_of(architecture, width=32, layers=4, **form):
    torch.manual_seed(0)
    return unlike_the_start(ResidualModel(matched_shape(architecture, width, layers, 6, 6, **form)))


def tokens(batch=3, length=40):
    return torch.randint(0, 6, (batch, length), generator=torch.Generator().manual_seed(0))


def assert_same(found, expected, tolerance=1e-5):
    """Compare up to `tolerance` times the largest entry."""
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * max(expected.abs().max().item(), 1e-20))


def last_stream_normed(model):
    """What `transformers` calls the last hidden state."""
    return lambda x: model.norm(model.states(x)[-1])


def assert_same_function_and_gradients(ours, theirs, same_parameter, x):
    """`same_parameter` maps their names to ours; where the shapes are each other's transposes, so are the entries."""
    parameters = dict(ours.named_parameters())
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            own = parameters[same_parameter(name)]
            parameter.copy_(own if linear_as_ours(name) else own.T)
    mine, other = last_stream_normed(ours)(x), theirs(x, use_cache=False).last_hidden_state
    assert_same(mine, other)
    toward = torch.randn(mine.shape, generator=torch.Generator().manual_seed(1))
    mine.backward(toward)
    other.backward(toward)
    for name, parameter in theirs.named_parameters():
        own = parameters[same_parameter(name)].grad
        assert_same(own if linear_as_ours(name) else own.T, parameter.grad)


def linear_as_ours(name):
    """GPT-2 keeps the weights of its linear maps (input, output)."""
    return not (name.startswith("h.") and name.endswith("weight") and ".ln_" not in name)


def state_space_name(name):
    for theirs, ours in (("embeddings.", "embedding."), ("layers.", "blocks."), ("norm_f.", "norm.")):
        name = name.replace(theirs, ours)
    return name


GPT2_NAMES = {
    "wte.": "embedding.", "wpe.": "position.", "h.": "blocks.", "ln_f.": "norm.",
    "ln_1.": "norm.", "ln_2.": "mlp_norm.",
    "attn.c_attn.": "mixer.qkv.", "attn.c_proj.": "mixer.out.", "mlp.c_fc.": "mlp.up.", "mlp.c_proj.": "mlp.down.",
}  # fmt: skip


def gpt2_name(name):
    for theirs, ours in GPT2_NAMES.items():
        if theirs == "h." and not name.startswith("h."):
            continue
        name = name.replace(theirs, ours)
    return name


def test_stock_mamba_is_that_of_transformers(transformers, backend):
    ours = model_of("mamba", mlp_width=0)
    config = transformers.MambaConfig(vocab_size=6, hidden_size=32, num_hidden_layers=4, state_size=16)
    assert_same_function_and_gradients(ours, transformers.MambaModel(config), state_space_name, tokens())


def test_stock_mamba2_is_that_of_transformers(transformers, backend):
    ours = model_of("mamba2", mlp_width=0)
    config = transformers.Mamba2Config(
        vocab_size=6, hidden_size=32, num_hidden_layers=4, state_size=32,
        head_dim=16, num_heads=4, n_groups=1, chunk_size=8,
    )  # fmt: skip
    assert_same_function_and_gradients(ours, transformers.Mamba2Model(config), state_space_name, tokens())


def test_the_transformer_is_gpt2(transformers):
    ours = model_of("transformer")
    config = transformers.GPT2Config(
        vocab_size=6, n_positions=POSITIONS, n_embd=32, n_layer=4, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0
    )
    assert_same_function_and_gradients(ours, transformers.GPT2Model(config), gpt2_name, tokens())


@pytest.mark.parametrize("architecture", ["mamba", "mamba2"])
def test_mixers_are_those_of_transformers_with_the_same_names(transformers, backend, architecture):
    if architecture == "mamba":
        config = transformers.MambaConfig(hidden_size=64, state_size=16)
        theirs = transformers.models.mamba.modeling_mamba.MambaMixer(config, layer_idx=0)
    else:
        config = transformers.Mamba2Config(hidden_size=64, state_size=32, head_dim=16, num_heads=8, n_groups=1)
        theirs = transformers.models.mamba2.modeling_mamba2.Mamba2Mixer(config, layer_idx=0)
    ours = unlike_the_start(blocks.load(architecture)(64))
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 3 * C + 5, 64)
    assert_same(ours(x), theirs(x))


@pytest.mark.parametrize(("architecture", "cell"), [("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)])
def test_recurrent_mixers_are_those_of_torch(architecture, cell):
    ours = unlike_the_start(blocks.load(architecture)(32))
    theirs = cell(32, 32, batch_first=True)
    theirs.load_state_dict(ours.rnn.state_dict())
    x = torch.randn(3, 40, 32)
    mine, other = ours(x), theirs(x)[0]
    assert torch.equal(mine, other)
    assert torch.equal(ours(x), mine), "a state was kept from the call before"
    mine.square().sum().backward()
    other.square().sum().backward()
    for own, parameter in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_same(own.grad, parameter.grad)


@pytest.mark.parametrize("length", [1, C - 1, C, C + 1, 3 * C + 5])
@pytest.mark.parametrize("architecture", ["mamba", "mamba2"])
def test_mixers_in_float64_are_the_literal_recurrence(backend, monkeypatch, architecture, length):
    mixer = unlike_the_start(blocks.load(architecture)(32)).double()
    x = torch.randn(2, length, 32, dtype=torch.float64, requires_grad=True)

    def value_and_gradients():
        y = mixer(x)
        return [y.detach(), *torch.autograd.grad(y.square().sum(), [x, *mixer.parameters()])]

    found = value_and_gradients()
    module = sys.modules[f"stateatlas.blocks.{architecture}"]
    scan = "selective_scan" if architecture == "mamba" else "ssd"
    monkeypatch.setattr(module, scan, getattr(recurrences, scan))
    monkeypatch.setattr(sys.modules["stateatlas.blocks.convolution"], "conv_silu", recurrences.conv_silu)
    monkeypatch.setattr(sys.modules["stateatlas.blocks.norm"], "rms_norm", recurrences.rms_norm)
    for own, expected in zip(found, value_and_gradients(), strict=True):
        assert_same(own, expected, 1e-10)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_later_tokens_and_padding_change_nothing_before_them(backend, architecture):
    model, x = model_of(architecture), tokens(length=C + 9)
    y = model(x)
    longer = torch.cat([x, tokens(length=11)], dim=1)
    assert_same(model(longer)[:, : x.shape[1]], y)
    changed = x.clone()
    changed[:, 20:] = 5 - changed[:, 20:]
    assert_same(model(changed)[:, :20], y[:, :20])
    assert not torch.allclose(model(changed)[:, 20:], y[:, 20:], atol=1e-3)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_sequence_alone_and_in_a_batch(backend, architecture):
    model, x = model_of(architecture), tokens(batch=8)
    y = model(x)
    for i in range(len(x)):
        assert_same(model(x[i : i + 1])[0], y[i])


def task_sizes():
    for name in ("parity", "s3", "dyck"):
        task = tasks.load(name, 40)
        yield task.vocabulary, task.targets["state"]


@pytest.mark.parametrize("width", [32, 64, 128])
def test_all_architectures_are_within_one_per_cent_of_the_transformer(width):
    for (vocabulary, classes), architecture in itertools.product(task_sizes(), ARCHITECTURES):
        shape = matched_shape(architecture, width, 4, vocabulary, classes)
        reference = parameters(matched_shape("transformer", width, 4, vocabulary, classes))
        assert abs(parameters(shape) / reference - 1) < 0.01, (shape, reference)


@pytest.mark.parametrize("width", [32, 64, 128])
def test_the_transformer_is_matched_to_itself(width):
    for vocabulary, classes in task_sizes():
        assert matched_shape("transformer", width, 4, vocabulary, classes).mlp_width == 4 * width


def test_variants_leave_out_what_they_name():
    stock = model_of("mamba", mlp_width=0)
    assert all(block.mlp is None and block.mlp_norm is None for block in stock.blocks)
    no_positions = matched_shape("transformer", 32, 4, 6, 6, positions=False)
    with_positions = matched_shape("transformer", 32, 4, 6, 6)
    assert replace(no_positions, positions=True) == with_positions
    assert parameters(with_positions) - parameters(no_positions) == POSITIONS * 32


@pytest.mark.parametrize("backend", ["torch", "compiled"])
def test_mamba_without_its_convolution_is_mamba_with_one_that_does_nothing(backend):
    blocks.use_backend("mamba", backend)
    full, free = model_of("mamba"), model_of("mamba", conv=False)
    assert full.shape.mlp_width == free.shape.mlp_width
    state = full.state_dict()
    with torch.no_grad():
        for block in full.blocks:
            block.mixer.conv1d.weight.zero_()[:, :, -1] = 1  # the last tap is the token itself
            block.mixer.conv1d.bias.zero_()
    free.load_state_dict({name: tensor for name, tensor in state.items() if "conv1d" not in name})
    tokens = torch.randint(0, full.shape.vocabulary, (3, 9))
    torch.testing.assert_close(free(tokens), full(tokens), rtol=1e-5, atol=1e-6)


def test_models_are_made_of_our_blocks_alone():
    for architecture in ARCHITECTURES:
        modules = list(model_of(architecture, layers=1).modules())
        assert not any(isinstance(m, torch.nn.TransformerEncoderLayer | torch.nn.MultiheadAttention) for m in modules)
    assert "mamba_ssm" not in sys.modules
