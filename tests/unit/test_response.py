"""Response objects are what calculus says they are, on a model in closed form and on every family."""

import os
from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch
from toy_fields import BEND, LENGTH, WIDTH, Toy, fields, prompts

from stateatlas import adapters, llama2c
from stateatlas.response import Observable, Place, Source, green, interaction, measured, push, response, sensitivity

FAMILIES = ["gpt2", "gpt_neox", "llama grouped", "mamba", "mamba2"]
OBSERVED = Observable(3, 5)


@pytest.fixture(params=FAMILIES)
def model(request, tmp_path):
    _, folder = tiny_models.save(request.param, tmp_path)
    adapters.use_backend(request.param.split()[0], "torch")
    return adapters.load(folder, attention="math").double()


def clean_of(model, tokens):
    with torch.no_grad():
        return model.states(tokens[None])


def vector(seed=0, width=16):
    return torch.randn(width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def scaled(case, size):
    return tuple(Source(source.site, source.token, size * source.vector) for source in case)


def test_the_sensitivity_of_the_toy_is_its_closed_form():
    model, tokens = Toy(), prompts()[0].tokens
    y, found = sensitivity(model, tokens, OBSERVED)
    clean = clean_of(model, tokens)
    final = torch.zeros(LENGTH, WIDTH, dtype=torch.float64)
    final[-1] = model.head[3] - model.head[5]
    middle = final * (1 + 2 * BEND * clean[1][0])
    first = middle + model.mix.T @ middle @ model.turn.T
    torch.testing.assert_close(found, torch.stack([first, middle, final]))
    assert y == pytest.approx((clean[2][0, -1] @ final[-1]).item())


def test_the_sensitivity_of_all_sites_runs_every_block_once():
    model = Toy()
    sensitivity(model, prompts()[0].tokens, OBSERVED)
    assert model.calls == [0, 1]


def test_sources_of_a_quadratic_model_add_up_but_for_the_mixed_derivative():
    model, (field, *_) = Toy(), fields(Toy())
    one, other = (Source(1, LENGTH - 1, vector(seed, WIDTH)) for seed in (1, 2))
    mixed = interaction(model, field.clean, OBSERVED, ((one,), (other,)))
    assert mixed == pytest.approx(2 * BEND * ((model.head[3] - model.head[5]) @ (one.vector * other.vector)).item())
    both, first, second = field.effects([(one, other), (one,), (other,)])
    assert both - first - second == pytest.approx(mixed)


def test_a_green_block_of_the_toy_is_its_closed_form():
    model, (field, *_) = Toy(), fields(Toy())
    block = green(model, field.clean, Place(0, (1,)), Place(1, (3,)))
    torch.testing.assert_close(block, model.mix[3, 1] * model.turn.T)
    assert not green(model, field.clean, Place(0, (4, 3)), Place(2, (2,))).any(), "nothing answers what comes later"


@pytest.mark.parametrize("site", range(4))
def test_the_error_of_the_linear_response_falls_a_hundredfold_per_tenfold(model, site):
    tokens = tiny_models.tokens(1, 12)[0]
    clean = clean_of(model, tokens)
    y, a = sensitivity(model, tokens, OBSERVED)
    token = 11 if site == 3 else 9
    errors = []
    for eps in (1e-4, 1e-5):
        source = Source(site, token, eps * vector())
        effect = measured(model, clean, [(source,)], OBSERVED)[0].item() - y
        errors.append(abs(effect - (a[site, token] @ source.vector).item()))
    assert errors[0] / errors[1] == pytest.approx(100, rel=0.1)


def test_a_measured_effect_is_that_of_an_edited_forward(model, monkeypatch):
    tokens = tiny_models.tokens(1, 12)[0]
    clean = clean_of(model, tokens)
    cases = [(Source(2, 3, vector(1)),), (Source(0, 4, vector(2)), Source(2, 9, vector(3))), (Source(3, 11, vector()),)]
    expected = []
    for case in cases:
        stream = model.embed(tokens[None])
        for site in range(model.sites):
            stream = stream if site == 0 else model.block(site - 1, stream)
            for source in case:
                if source.site == site:
                    stream = stream.clone()
                    stream[0, source.token] += source.vector
        expected.append(OBSERVED(model.read(stream)[0, -1]))
    for chunk in (1, 24, 10_000):
        monkeypatch.setattr("stateatlas.response.CHUNK", chunk)
        torch.testing.assert_close(measured(model, clean, cases, OBSERVED), torch.stack(expected))


def test_a_response_field_is_patched_minus_clean_and_keeps_the_causal_cone(model):
    tokens = tiny_models.tokens(1, 12)[0]
    clean = clean_of(model, tokens)
    source = Source(1, 5, vector())
    field = response(model, clean, [(source,)])[0]
    assert not field[0].any() and not field[:, :5].any()
    torch.testing.assert_close(field[1, 5], source.vector)
    torch.testing.assert_close(field[3], model.block(2, clean[2] + field[2])[0] - clean[3][0])


def test_a_green_block_is_the_jacobian_in_either_mode(model):
    clean = clean_of(model, tiny_models.tokens(1, 9)[0])

    def respond(part):
        stream = clean[1].clone()
        stream[0, [2, 4]] = part
        return model.block(2, model.block(1, stream))[0, [6]]

    expected = torch.func.jacrev(respond)(clean[1][0, [2, 4]]).view(16, 32)
    torch.testing.assert_close(green(model, clean, Place(1, (2, 4)), Place(3, (6,))), expected)  # row by row
    wide = green(model, clean, Place(1, (4,)), Place(3, (5, 6)))  # column by column
    torch.testing.assert_close(wide[16:], expected[:, 16:])


def test_a_green_block_is_what_finite_differences_see(model):
    clean = clean_of(model, tiny_models.tokens(1, 9)[0])
    block = green(model, clean, Place(0, (3,)), Place(2, (3, 7)))
    step = 1e-5
    for k in (0, 9):
        unit = torch.eye(16, dtype=torch.float64)[k]
        ends = [response(model, clean, [(Source(0, 3, sign * step * unit),)])[0, 2, [3, 7]] for sign in (1, -1)]
        torch.testing.assert_close(block[:, k], (ends[0] - ends[1]).flatten() / (2 * step), rtol=1e-6, atol=1e-9)


def test_blocks_compose_and_vectors_pushed_on_are_their_products(model):
    clean = clean_of(model, tiny_models.tokens(1, 6)[0])
    every = tuple(range(6))
    whole = green(model, clean, Place(0, (2,)), Place(3, every))
    first, second = (
        green(model, clean, Place(0, (2,)), Place(1, every)),
        green(model, clean, Place(1, every), Place(3, every)),
    )
    torch.testing.assert_close(second @ first, whole)
    tangent = torch.zeros(6, 16, dtype=torch.float64)
    tangent[2] = vector()
    torch.testing.assert_close(push(model, clean, 0, 3, tangent).flatten(), whole @ vector())
    torch.testing.assert_close(push(model, clean, 1, 3, push(model, clean, 0, 1, tangent)).flatten(), whole @ vector())


def test_small_sources_add_up_to_the_mixed_derivative(model):
    tokens = tiny_models.tokens(1, 9)[0]
    clean = clean_of(model, tokens)
    y, _ = sensitivity(model, tokens, OBSERVED)
    pair = (Source(1, 3, vector(1)),), (Source(2, 5, vector(2)),)
    cases = [scaled(case, 1e-3) for case in (pair[0] + pair[1], *pair)]
    both, first, second = (measured(model, clean, cases, OBSERVED) - y).tolist()
    assert (both - first - second) / 1e-6 == pytest.approx(interaction(model, clean, OBSERVED, pair), rel=0.02)


def test_with_a_case_sensitivities_are_those_of_the_edited_model(model):
    tokens = tiny_models.tokens(1, 9)[0]
    clean, case, small = clean_of(model, tokens), (Source(1, 3, vector(1)),), Source(2, 4, 1e-6 * vector(2))
    y, a = sensitivity(model, tokens, OBSERVED, case)
    more = measured(model, clean, [case, (*case, small)], OBSERVED)
    assert y == pytest.approx(more[0].item())
    assert (more[1] - more[0]).item() == pytest.approx((a[2, 4] @ small.vector).item(), rel=1e-4)


def test_real_weights_obey_the_same_law(tmp_path):
    if "STATEATLAS_TEST_DATA" not in os.environ:
        pytest.skip("STATEATLAS_TEST_DATA is not set: no real model here")
    stories = Path(os.environ["STATEATLAS_TEST_DATA"], "stories260K")
    llama2c.convert(stories / "stories260K.bin", stories / "tok512.bin", tmp_path)
    model = adapters.load(tmp_path, attention="math").double()
    tokens = torch.tensor([1, *np.random.default_rng(0).integers(3, 512, 15)])
    clean = clean_of(model, tokens)
    first, second = model(tokens[None])[0, -1].topk(2).indices.tolist()
    observable = Observable(first, second)
    y, a = sensitivity(model, tokens, observable)
    for site in range(model.sites - 1):
        direction = vector(site, model.width)
        effects = [
            measured(model, clean, [(Source(site, 7, eps * direction),)], observable)[0].item() - y
            for eps in (1e-2, 1e-3)
        ]
        errors = [
            abs(effect - eps * (a[site, 7] @ direction).item())
            for effect, eps in zip(effects, (1e-2, 1e-3), strict=True)
        ]
        assert 60 < errors[0] / errors[1] < 160
    block = green(model, clean, Place(1, (7,)), Place(model.depth, (15,)))
    assert (block @ vector(0, model.width)).norm() == pytest.approx(
        push(model, clean, 1, model.depth, torch.zeros(16, model.width, dtype=torch.float64).index_add(
            0, torch.tensor([7]), vector(0, model.width)[None]))[15].norm().item()
    )  # fmt: skip
