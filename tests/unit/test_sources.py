"""What the experiments of study B measure, on numbers and models whose answer is known."""

import numpy as np
import pytest
import torch
from toy_fields import LENGTH, Toy, fields

from stateatlas import concentration, displacement, inversion, linearity, propagation, transferring
from stateatlas.over_prompts import Intervals
from stateatlas.response import Source


def intervals(draws=500):
    return Intervals(draws, np.random.default_rng(0))


def rng():
    return np.random.default_rng(0)


def test_concentration_of_equal_and_of_single_scores():
    equal, single = np.ones(10), np.eye(10)[3]
    assert concentration.gini(equal) == pytest.approx(0) and concentration.gini(single) == pytest.approx(0.9)
    assert concentration.participation(equal) == pytest.approx(1)
    assert concentration.participation(single) == pytest.approx(0.1)
    assert concentration.top_share(equal, 0.2) == pytest.approx(0.2)
    assert concentration.top_share(single, 0.1) == 1


def test_inner_sites_leave_out_the_first_token_and_the_final_site():
    scores = np.arange(12.0).reshape(3, 4)
    assert concentration.of(scores, "inner").tolist() == [1, 2, 3, 5, 6, 7]
    assert len(concentration.of(scores, "no_first_token")) == 9


def test_effective_rank_counts_equal_directions():
    assert concentration.effective_rank(np.array([2.0, 2.0, 2.0, 0.0])) == pytest.approx(3)


def test_slices_come_from_the_backward_cone_with_that_along_the_own_token():
    found = concentration.slices(fields(Toy(0))[0], 6, rng())
    assert sum(one["drawn"] for one in found) == 6
    assert any(one["own"] for one in found)
    assert all((1 if one["own"] else 0) <= one["rank"] <= 6 + 1e-9 for one in found)


def test_an_interval_of_a_mean_covers_it_and_single_prompts_have_none():
    found = intervals().mean([1.0, 2.0, 3.0, np.nan])
    assert found["value"] == 2 and found["n"] == 3 and 1 <= found["low"] < 2 < found["high"] <= 3
    assert np.isnan(intervals().mean([1.0, np.nan])["value"])


def test_the_median_of_cases_resamples_prompts():
    parts = [np.array([1.0, 2.0]), np.array([3.0] * 8)]
    found = intervals().median(parts)
    assert found == {"value": 3.0, "n": 2, "low": 1.0, "high": 3.0}


def test_spearman_of_all_draws_at_once_is_that_of_scipy():
    x = rng().normal(size=(6, 4))
    y = x + rng().normal(size=(6, 4))[::-1]
    found = intervals().spearman(x, y)
    assert found["value"] == pytest.approx(linearity.spearman(x.ravel(), y.ravel()))
    assert found["low"] < found["value"] < found["high"]


def test_a_linear_model_has_no_nonlinearity_and_predicts_itself():
    eps = [0.01, 1.0]
    found = [linearity_of(field, eps) for field in fields(Toy(0))]
    rows = {(row["eps"], row["metric"]): row["value"] for row in linearity.linearity(found, eps, intervals())
            if row["direction"] == "all"}  # fmt: skip
    assert rows[1.0, "median_nonlinearity_error"] < 1e-12 and rows[1.0, "share_under_20"] == 1
    told = {row["metric"]: row["value"] for row in linearity.prediction(found, [0.01], intervals()) if row["site"] < 0}
    assert told["slope"] == pytest.approx(1) and told["spearman"] == pytest.approx(1)


def linearity_of(field, eps):
    model = field.model
    model.hub = type("Hub", (), {"lm_head": type("Head", (), {"weight": model.head})})
    return linearity.measure(field, eps, 2, 3, rng())


def test_the_nonlinearity_of_a_quadratic_model_grows_with_the_source():
    eps = [0.01, 0.1]
    found = [linearity_of(field, eps) for field in fields(Toy())]
    small, large = (np.nanmedian(np.concatenate([one.errors()[:, k] for one in found])) for k in (0, 1))
    assert large == pytest.approx(10 * small, rel=0.2)


def test_tiny_predictions_are_left_out():
    place = np.zeros(3, int)
    case = linearity.Amplitudes(
        place, place, np.array(["random"] * 3), np.array([[1.0], [1.0], [1e-9]]), np.ones((3, 1))
    )
    assert np.isnan(case.errors()[2, 0]) and not np.isnan(case.errors()[:2]).any()


def test_a_response_that_stays_at_its_token_has_no_energy_elsewhere():
    model = Toy()
    model.mix = torch.eye(LENGTH, dtype=torch.float64)
    found = propagation.measure(fields(model)[0], 2, rng())
    assert not found.later.any() and (found.own > 0).all()


def test_sending_on_all_tokens_is_an_identity_and_fewer_lose_something(monkeypatch):
    monkeypatch.setattr(propagation, "FEWEST", 3)
    field = fields(Toy())[0]
    monkeypatch.setattr(field.model, "depth", 2)
    cases = propagation.compose(field, 2, rng())
    assert cases and all(case["all"] < 1e-12 < case["source"] for case in cases)


def test_at_the_last_block_of_a_linear_model_the_displacement_brings_the_whole_shift():
    here, _, stranger, _ = fields(Toy(0))
    found = displacement.measure(here, stranger, [0.5, 1.0], 3, rng())
    key = "last", 1.0, "none"
    assert found.effect[key][1] == pytest.approx(found.full)
    assert found.effect["last", 0.5, "none"] == pytest.approx(found.effect[key] / 2)
    assert found.predicted[key] == pytest.approx(found.effect[key])
    assert set(found.effect) == {
        *((token, scale, "none") for token in ("last", "changed") for scale in (0.5, 1.0)),
        *((token, 1.0, control) for token in ("last", "changed") for control in displacement.CONTROLS),
    }


def test_controls_have_the_norm_of_the_displacement(monkeypatch):
    here, _, stranger, _ = fields(Toy(0))
    seen = []
    monkeypatch.setattr(
        displacement, "measured", lambda m, c, cases, r: seen.append(cases) or torch.zeros(len(cases), 2)
    )
    displacement.measure(here, stranger, [1.0], 3, rng())
    norms = [{round(source.vector.norm().item(), 9) for (source,) in cases if source.site == 1} for cases in seen]
    assert norms[0] == norms[1] == norms[2] and len(norms[0]) == 1


def test_the_sparsest_sources_of_a_linear_model_reach_the_wanted_change_at_once():
    field = fields(Toy(0))[0]
    problem = inversion.Problem(field)
    found = problem.sparse()
    assert found.passes == 2 * inversion.GRADIENT
    assert found.reached[-1] == pytest.approx(min(1, 0.999 * most(problem) / abs(problem.wanted)), rel=1e-6)
    for source in found.sources:
        assert source.site < 2 and source.vector.norm() <= problem.limits[source.site, source.token] * (1 + 1e-9)


def most(problem) -> float:
    return float((problem.field.scores[:-1] * problem.limits).sum())


def test_no_other_sources_of_less_norm_reach_as_much():
    problem = inversion.Problem(fields(Toy(0))[0])
    sources = problem._convex(problem.field.a, 0.5 * most(problem))
    used = {(source.site, source.token) for source in sources}
    score = problem.field.scores[:-1]
    weakest = min(score[place] for place in used)
    assert all(score[place] <= weakest + 1e-9 for place in np.ndindex(*score.shape) if place not in used)


def test_sweeping_all_places_costs_half_a_forward_each_and_more_sources_cost_more():
    problem = inversion.Problem(fields(Toy())[0])
    assert problem.sweep == 1 + LENGTH * (1 + 0.5) and problem.number == 2 * LENGTH
    found = problem.exhaustive(4)
    assert problem.sweep < found.passes <= problem.sweep + 4 and len(found.reached) == 4
    assert problem.top(3).passes <= inversion.GRADIENT + 3


def test_a_source_that_does_nothing_has_no_side_effect():
    others = fields(Toy())[1:]
    nothing = inversion.Solution([Source(0, 1, torch.zeros(6, dtype=torch.float64))], np.array([1.0]), 0)
    something = inversion.Solution([Source(1, LENGTH - 1, torch.ones(6, dtype=torch.float64))], np.array([1.0]), 0)
    assert inversion.side_effect(nothing, others) == pytest.approx(0, abs=1e-12)
    assert inversion.side_effect(something, others) > 0.01


def test_a_model_predicts_itself_and_the_baselines_do_not():
    field = fields(Toy())[0]
    found = transferring.measure(field, field, [0, 1, 4], rng())
    assert found.spearman[0] == pytest.approx(1) and found.recall[0] == pytest.approx(1)
    assert (found.spearman[1:] < 1).all()


def test_anchors_correct_a_guess_that_is_off_by_depth():
    guess = np.zeros((4, 5))
    truth = guess + np.linspace(-3, 3, 4)[:, None]
    known = np.arange(0, 20, 3)
    assert np.abs(transferring.corrected(guess, truth, known) - truth).max() < np.abs(guess - truth).max() / 2
    assert transferring.corrected(guess, truth, known[:0]) is guess


def test_recall_is_of_the_largest_tenth():
    truth = np.arange(20.0)
    assert transferring.recall(truth, truth) == 1 and transferring.recall(-truth, truth) == 0
    swapped = truth.copy()
    swapped[[0, 19]] = swapped[[19, 0]]
    assert transferring.recall(swapped, truth) == 0.5
