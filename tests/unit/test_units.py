"""Unit interventions against the definitions written out token by token in float64."""

import copy

import pytest
import recurrences
import tiny_models
import torch

from stateatlas import adapters, units
from stateatlas.interventions import NAMES as NAMES_OF_ALL
from stateatlas.interventions import OF_ATTENTION, OF_STATE_SPACE
from stateatlas.units import state_space

NAMES = ["mamba", "mamba other sizes", "mamba2", "mamba2 grouped"]
CHOSEN = {0: [1, 3], 2: [0]}
SSM = ["output_zero", *OF_STATE_SPACE]


@pytest.fixture(params=NAMES)
def model(request, tmp_path):
    _, folder = tiny_models.save(request.param, tmp_path)
    return adapters.load(folder).double()


def means_of(model) -> dict:
    """Draw reference means: SiLU(z), Δ and outputs, which interventions only read."""
    generator = torch.Generator().manual_seed(5)
    kind, found = units.family(model.family), {}
    for index, block in enumerate(model.blocks):
        mixer = kind.mixer(block)
        inner, number = kind.output(mixer).in_features, kind.number(mixer)
        gate, output = torch.rand(2, inner, generator=generator, dtype=torch.float64)
        found[index] = units.Means(gate - 0.25, torch.rand(number, generator=generator, dtype=torch.float64), output)
    return found


def literal(model, tokens, intervention, means, start=0):
    """The logits with the intervention written into the recurrence, at every token from `start` on."""
    stream = model.embed(tokens)
    for index in range(model.depth):
        chosen = CHOSEN.get(index, []) if intervention else []
        mixer = model.blocks[index].mixer
        edited = literal_mamba if model.family == "mamba" else literal_mamba2
        stream = stream + edited(model, mixer, model.normed(index, stream), intervention, chosen, means[index], start)
    return model.read(stream)


def edit_gate(silu, intervention, channels, means, start):
    silu = silu.clone()
    edited = silu[:, start:]
    if intervention in ("gate_zero", "gate_one"):
        edited[..., channels] = float(intervention == "gate_one")
    if intervention == "gate_mean":
        edited[..., channels] = means.gate[channels]
    return silu


def edit_delta(step, intervention, chosen, means, limits, start):
    step = step.clone()
    if intervention == "delta_shift":
        step[:, start:, chosen] -= torch.log(torch.tensor(2.0, dtype=torch.float64))
    delta = torch.nn.functional.softplus(step).clamp(*limits)
    edited = delta[:, start:]
    if intervention == "delta_zero":
        edited[..., chosen] = max(0.0, limits[0])  # where a checkpoint limits Δ from below, it stops there
    if intervention == "delta_mean":
        edited[..., chosen] = means.delta[chosen].clamp(*limits)
    return delta


def literal_mamba(model, mixer, x, intervention, chosen, means, start):
    u, gate = mixer.in_proj(x).chunk(2, dim=-1)
    bias = mixer.conv1d.bias if mixer.conv1d.bias is not None else torch.zeros(u.shape[-1], dtype=u.dtype)
    u = recurrences.conv_silu(u, mixer.conv1d.weight, bias)
    states = mixer.A_log.shape[1]
    dt, b, c = mixer.x_proj(u).split([mixer.dt_proj.in_features, states, states], dim=-1)
    delta = edit_delta(mixer.dt_proj(dt), intervention, chosen, means, (0, torch.inf), start)
    silu = edit_gate(recurrences.silu(gate), intervention, chosen, means, start)
    ones = torch.full_like(gate, 40.0)  # a gate of nearly itself: divided out below
    y = recurrences.selective_scan(u, delta, -torch.exp(mixer.A_log), b, c, mixer.D, ones)
    y = y / recurrences.silu(ones) * silu
    if intervention == "output_zero":
        y[:, start:, chosen] = 0
    return mixer.out_proj(y)


def literal_mamba2(model, mixer, x, intervention, chosen, means, start):
    eps, groups, limits = model.options
    inner, convolved, heads = mixer.out_proj.in_features, mixer.conv1d.in_channels, len(mixer.A_log)
    size = inner // heads
    channels = [head * size + i for head in chosen for i in range(size)]
    gate, xbc, dt = mixer.in_proj(x).split([inner, convolved, heads], dim=-1)
    bias = mixer.conv1d.bias if mixer.conv1d.bias is not None else torch.zeros(convolved, dtype=x.dtype)
    xbc = recurrences.conv_silu(xbc, mixer.conv1d.weight, bias)
    states = (convolved - inner) // 2
    u, b, c = xbc.split([inner, states, states], dim=-1)
    delta = edit_delta(dt + mixer.dt_bias, intervention, chosen, means, limits, start)
    silu = edit_gate(recurrences.silu(gate), intervention, channels, means, start)
    ones = torch.full_like(gate, 40.0)
    parts = [t.chunk(groups, dim=-1) for t in (u, delta, -torch.exp(mixer.A_log), b, c,
             mixer.D.repeat_interleave(size), ones)]  # fmt: skip
    y = torch.cat([recurrences.ssd(*part) for part in zip(*parts, strict=True)], dim=-1)
    y = y / recurrences.silu(ones) * silu
    normed = [recurrences.rms_norm(part, weight, eps)
              for part, weight in zip(y.chunk(groups, -1), mixer.norm.weight.chunk(groups), strict=True)]  # fmt: skip
    y = torch.cat(normed, dim=-1)
    if intervention == "output_zero":
        y[:, start:, channels] = 0
    return mixer.out_proj(y)


@pytest.mark.parametrize("intervention", SSM)
def test_an_intervention_is_its_definition(model, intervention):
    tokens, means = tiny_models.tokens(), means_of(model)
    torch.testing.assert_close(model(tokens), literal(model, tokens, None, means), rtol=1e-10, atol=1e-10)
    with units.intervened(model, model.family, intervention, CHOSEN, means):
        found = model(tokens)
    torch.testing.assert_close(found, literal(model, tokens, intervention, means), rtol=1e-9, atol=1e-9)
    limited = model.family == "mamba2" and model.options[2][0] > 0  # Δ may stand at its limit already
    assert torch.allclose(found, model(tokens), atol=1e-6) <= (intervention.startswith("delta") and limited)


@pytest.mark.parametrize("intervention", SSM)
def test_it_acts_on_the_model_of_transformers_alike(model, intervention):
    tokens, means = tiny_models.tokens(), means_of(model)
    with units.intervened(model, model.family, intervention, CHOSEN, means):
        # theirs takes part of the recurrence in float32, whatever the model is in
        torch.testing.assert_close(model.hub(tokens).logits.double(), model(tokens), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("intervention", SSM)
def test_it_is_taken_back_exactly_also_after_an_exception(model, intervention):
    before = copy.deepcopy(model.state_dict())
    with (
        pytest.raises(RuntimeError, match="stop"),
        units.intervened(model, model.family, intervention, CHOSEN, means_of(model)),
    ):
        raise RuntimeError("stop")
    after = model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_two_interventions_compose_in_either_order(model):
    tokens, means, other = tiny_models.tokens(), means_of(model), {1: [1]}
    found = []
    for first, second in (
        (("gate_one", CHOSEN), ("delta_shift", other)),
        (("delta_shift", other), ("gate_one", CHOSEN)),
    ):
        with (
            units.intervened(model, model.family, *first, means),
            units.intervened(model, model.family, *second, means),
        ):
            found.append(model(tokens))
    clean = model(tokens)
    torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=1e-12)
    assert not torch.allclose(found[0], clean, atol=1e-6)


def test_a_wrong_unit_or_intervention_is_refused(model):
    with pytest.raises(ValueError, match="block 0 has the units 0 to"):
        with units.intervened(model, model.family, "gate_zero", {0: [10_000]}, {}):
            pass
    with pytest.raises(ValueError, match="not applicable"):
        with units.intervened(model, model.family, "uniform_attention", {0: [0]}, {}):
            pass
    with pytest.raises(ValueError, match="must be one of output_zero"):
        units.applicable(model.family, "gate_two")


def test_silu_is_inverted_on_its_rising_side():
    z = torch.linspace(-1.27, 30, 200, dtype=torch.float64)
    torch.testing.assert_close(state_space.inverse_silu(recurrences.silu(z)), z, rtol=1e-6, atol=1e-6)


ATTENTION = ["output_zero", *OF_ATTENTION]


@pytest.fixture(params=["gpt_neox", "gpt_neox sequential"])
def attention_model(request, tmp_path):
    _, folder = tiny_models.save(request.param, tmp_path)
    return adapters.load(folder, attention="math").double()


@pytest.mark.parametrize("intervention", ATTENTION)
def test_an_intervention_on_attention_is_its_definition(attention_model, intervention, monkeypatch):
    model, tokens, means = attention_model, tiny_models.tokens(), means_of(attention_model)
    kind = units.family("gpt_neox")
    with units.intervened(model, "gpt_neox", intervention, CHOSEN, means):
        found = model(tokens)
    stream = model.embed(tokens)
    for index in range(model.depth):
        block = model.blocks[index]
        weights, memory = kind.attend(model, index, stream)
        chosen = CHOSEN.get(index, [])
        if intervention == "uniform_attention":
            length = tokens.shape[1]
            uniform = torch.ones(length, length, dtype=torch.float64).tril()
            weights[:, chosen] = uniform / uniform.sum(-1, keepdim=True)
        heads = weights @ memory.values  # (batch, heads, length, size)
        for head in chosen:
            if intervention == "output_zero":
                heads[:, head] = 0
            if intervention == "output_mean":
                heads[:, head] = means[index].output.unflatten(0, (-1, heads.shape[-1]))[head]
        written = block.attention.dense(heads.transpose(1, 2).flatten(2))
        read = stream if model.hub.config.use_parallel_residual else stream + written
        stream = stream + written + block.mlp(block.post_attention_layernorm(read))
    torch.testing.assert_close(found, model.read(stream), rtol=1e-9, atol=1e-9)


def test_what_attention_has_no_meaning_for_is_not_applicable():
    assert [name for name in NAMES_OF_ALL if not units.applicable("gpt_neox", name)] == [*OF_STATE_SPACE]
    for family in ("mamba", "mamba2"):
        assert [name for name in NAMES_OF_ALL if not units.applicable(family, name)] == [*OF_ATTENTION]


@pytest.mark.parametrize("name", [*NAMES, "gpt_neox", "gpt_neox sequential"])
@pytest.mark.parametrize("start", [1, 2, 7, 20])
def test_tokens_after_others_go_on_as_in_one_run(name, start, tmp_path):
    _, folder = tiny_models.save(name, tmp_path)
    model = (
        adapters.load(folder, attention="math").double() if name.startswith("gpt") else adapters.load(folder).double()
    )
    kind = units.family(model.family)
    stream = model.embed(tiny_models.tokens())
    before, after = stream[:, :start], stream[:, start:]
    for index in range(model.depth):
        memory = kind.remember(model, index, before)
        stream = model.block(index, stream)
        before, after = model.block(index, before), kind.advance(model, index, after, memory)
        torch.testing.assert_close(after, stream[:, start:], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", [*NAMES, "gpt_neox", "gpt_neox sequential"])
def test_what_is_observed_is_what_the_block_computes(name, tmp_path):
    _, folder = tiny_models.save(name, tmp_path)
    model = adapters.load(folder)
    kind, stream = units.family(model.family), model.embed(tiny_models.tokens())
    for index in range(model.depth):
        seen = kind.observe(model, index, stream)
        number = kind.number(kind.mixer(model.blocks[index]))
        assert seen.signal.shape == (3, 21, number)
        assert seen.delta.shape[-1] in (0, number)
        stream = model.block(index, stream)
        torch.testing.assert_close(seen.stream, stream, rtol=1e-5, atol=1e-5)
