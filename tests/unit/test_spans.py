"""The loss after a boundary: shared work changes no number."""

import numpy as np
import pytest
import tiny_models
from test_units import CHOSEN, NAMES, literal, means_of

from stateatlas import adapters, complements, interventions, spans, units

BOUNDARY = 12  # of 21 tokens: eight are measured


@pytest.fixture(params=[*NAMES, "gpt_neox"])
def model(request, tmp_path):
    _, folder = tiny_models.save(request.param, tmp_path)
    options = {"attention": "math"} if request.param == "gpt_neox" else {}
    return adapters.load(folder, **options).double()


def loss_of(logits, tokens):
    chances = logits[:, BOUNDARY:-1].log_softmax(-1)
    return -chances.gather(-1, tokens[:, BOUNDARY + 1 :, None]).squeeze(-1).mean(1).numpy()


def interventions_of(model):
    return [name for name in interventions.NAMES if units.applicable(model.family, name)]


def test_without_an_intervention_it_is_the_loss_of_a_whole_forward(model, monkeypatch):
    tokens = tiny_models.tokens()
    expected = loss_of(model(tokens), tokens)
    for chunk in (1, 2, 64):
        monkeypatch.setattr(spans, "CHUNK", chunk)
        windows = spans.Windows(model, tokens.numpy(), BOUNDARY, {})
        for span in spans.SPANS:
            np.testing.assert_allclose(windows.loss(span=span), expected, rtol=1e-10)


@pytest.mark.parametrize("chosen", [CHOSEN, {2: [0, 1]}, {1: []}])
def test_the_span_all_is_a_whole_forward_under_the_intervention(model, chosen):
    tokens, means = tiny_models.tokens(), means_of(model)
    windows = spans.Windows(model, tokens.numpy(), BOUNDARY, means)
    for name in interventions_of(model):
        with units.intervened(model, model.family, name, chosen, means):
            expected = loss_of(model(tokens), tokens)
        np.testing.assert_allclose(windows.loss(name, chosen), expected, rtol=1e-10)


def test_from_the_boundary_on_every_earlier_token_is_as_in_a_clean_run(model):
    tokens, means = tiny_models.tokens(), means_of(model)
    windows = spans.Windows(model, tokens.numpy(), BOUNDARY, means)
    for name in interventions_of(model):
        found = windows.loss(name, CHOSEN, "from_boundary")
        if not name.startswith("delta"):  # Δ of some models stands at its limit anyway
            assert not np.allclose(found, windows.loss(name, CHOSEN), rtol=1e-9)
        if model.family != "gpt_neox":
            expected = loss_of(literal(model, tokens, name, means, BOUNDARY), tokens)
            np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_an_unknown_span_is_refused(model):
    windows = spans.Windows(model, tiny_models.tokens().numpy(), BOUNDARY, {})
    with pytest.raises(ValueError, match="span 'after'"):
        windows.loss(span="after")


def test_complements_have_the_size_of_the_set_in_every_block():
    rng = np.random.default_rng(0)
    chosen = rng.random((3, 20)) < 0.3
    chosen[1] = False
    norms = rng.random((3, 20))
    for drawn in (complements.matched(chosen, rng), complements.norm_matched(chosen, norms, rng)):
        assert (drawn.sum(axis=1) == chosen.sum(axis=1)).all()
        assert not (drawn & chosen).any()
    assert complements.as_units(chosen) == {
        0: np.flatnonzero(chosen[0]).tolist(),
        2: np.flatnonzero(chosen[2]).tolist(),
    }
    most = np.ones((1, 4), bool)
    most[0, 0] = False
    assert complements.matched(most, rng) is None
    assert complements.norm_matched(most, norms[:1, :4], rng) is None


def test_norm_matched_units_write_as_much_as_the_set():
    rng = np.random.default_rng(1)
    norms = np.sort(rng.random((1, 400)))
    chosen = np.zeros((1, 400), bool)
    chosen[0, 300:400:10] = True
    means = [norms[complements.norm_matched(chosen, norms, rng)].mean() for _ in range(20)]
    assert abs(np.mean(means) - norms[chosen].mean()) < 0.01
    assert norms[complements.matched(chosen, rng)].mean() < 0.7


def test_the_top_units_are_the_largest_of_those_not_excluded():
    norms = np.array([[5.0, 1, 4], [3, 2, 6]])
    excluded = np.array([[True, False, False], [False, False, False]])
    assert (complements.top(norms, 2, excluded) == np.array([[False, False, True], [False, False, True]])).all()
