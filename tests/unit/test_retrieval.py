"""Teaching a model to find needles, and asking it with sets of its units silenced."""

import math
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from stateatlas import adapters, needles, packing, retrieval, teaching, tokenization
from stateatlas.signatures import sets

RECIPE = teaching.Recipe(
    steps=6, batch=3, learning_rate=1e-3, betas=(0.9, 0.95), weight_decay=0.1, warmup=2, cooldown=2, clip=1.0,
    stages=(60, 500), advance=-1.0, validated=2.0, evaluate_every=1, language_weight=0.5, digits=3,
)  # fmt: skip
WINDOWS = np.arange(24, dtype=np.uint16).reshape(2, 12)


@pytest.fixture(scope="module")
def encoder():
    texts = [needles.NOISE, needles.QUESTION, needles.PREFIX, needles.NEEDLE, *needles.words()[:300]]
    return teaching.Encoder(tokenization.train(texts * 3, 300))


@pytest.fixture
def model():
    tokens = {"bos_token_id": 0, "eos_token_id": None, "pad_token_id": None}
    config = {"model_type": "mamba", "vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}
    torch.manual_seed(0)
    return adapters.build(config | tokens, Path("mini")).train()


def trainer(model, encoder, recipe=RECIPE):
    return teaching.Trainer(model, encoder, lambda: repeat(WINDOWS), recipe, 4, 0, ("test",))


def test_the_loss_reads_the_answer_alone(encoder):
    pairs = [(np.array([0, 5, 6]), np.array([7, 8])), (np.array([0, 5]), np.array([9]))]
    read, wanted = teaching.batch(pairs)
    assert read.tolist() == [[0, 5, 6, 7], [0, 5, 0, 0]]
    assert wanted.tolist() == [[-100, -100, 7, 8], [-100, 9, -100, -100]]
    logits = torch.nn.functional.one_hot(wanted.clamp(min=0), 10).float()
    assert teaching.right(logits, wanted) == 1
    logits[1, 1] = 0
    assert teaching.right(logits, wanted) == 0.5


def test_an_answer_is_whole_tokens_behind_the_prompt(encoder):
    prompt = needles.Draw(needles.VARIANTS["niah_single_1"], np.random.default_rng(0)).prompt(6, 0.5)
    whole = encoder.prompt(prompt.text + prompt.answer)
    np.testing.assert_array_equal(whole, [*encoder.prompt(prompt.text), *encoder.answer(prompt)])
    assert encoder.count(prompt.text) == len(encoder.prompt(prompt.text))
    assert whole[0] == packing.BOS and not (whole[1:] == packing.BOS).any()


def test_stages_follow_each_other_and_a_resumed_teaching_goes_on_as_an_undisturbed_one(model, encoder):
    one = trainer(model, encoder)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    steps = one.run()
    for _ in range(3):
        next(steps)
    kept = torch.load(_saved(one.state()), weights_only=True)
    for _ in steps:
        pass
    assert (one.step, one.stage, one.taught) == (6, 1, 4)  # nothing validates twice: the cap begins the cool-down
    expected = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(start)
    other = trainer(model, encoder)
    other.restore(kept)
    for _ in other.run():
        pass
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())


def test_a_cool_down_after_which_fewer_are_answered_is_taken_back(model, encoder, monkeypatch):
    shares = iter([2.0, 0.0, 0.0, 2.0, 2.0])  # begins at 2, falls short at 4, begins at 6, holds at 8
    monkeypatch.setattr(teaching.Trainer, "validated", lambda self: next(shares))
    recipe = teaching.Recipe(**{**vars(RECIPE), "steps": 20, "stages": (60, 61)})
    one = trainer(model, encoder, recipe)
    begun = [(one.step, one.taught) for _ in one.run()]
    assert begun[:4] == [(1, None), (2, 2), (3, 2), (4, None)] and (one.step, one.taught) == (8, 6)
    again = trainer(model, encoder, recipe)
    again.restore(torch.load(_saved(one.state()), weights_only=True))
    assert list(again.run()) == [], "a checkpoint of the last step has nothing left to do"


def _saved(state):
    import io

    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return buffer


def test_the_first_stage_has_the_needle_and_the_question_alone(model, encoder):
    one = trainer(model, encoder)
    short, _ = one.pair(60, np.random.default_rng(0))
    long, _ = one.pair(900, np.random.default_rng(0))
    assert encoder.text(short[1:]).startswith("One of the special magic numbers for")
    assert len(short) < 200 < len(long) <= 900


def test_teaching_makes_the_answer_more_likely(model, encoder):
    recipe = teaching.Recipe(**{**vars(RECIPE), "steps": 40, "stages": (60,), "batch": 8, "learning_rate": 5e-3})
    one = trainer(model, encoder, recipe)
    for _ in one.run():
        pass
    nats = [row["value"] for row in one.history if row["metric"] == "answer_nats"]
    assert np.mean(nats[-5:]) < np.mean(nats[:5]) - 0.5


def given(encoder):
    chosen = {"variant": "niah_single_1", "depths": [0.15, 0.85], "samples": 3}
    return retrieval.samples(chosen, 900, encoder, [], np.random.default_rng(0))


def test_prompts_are_the_samples_at_every_depth(encoder):
    found = given(encoder)
    assert found.depths.tolist() == [0.15] * 3 + [0.85] * 3
    assert all(len(read) <= 900 for read in found.read)
    assert [prompt.before for prompt in found.prompts] == [
        round(depth * prompt.parts) for depth, prompt in zip(found.depths, found.prompts, strict=True)
    ]


def test_nats_are_those_of_a_forward_pass_and_a_right_answer_needs_no_generation(model, encoder, monkeypatch):
    model, found = model.eval(), given(encoder)
    nothing = np.zeros((2, 32), bool)
    scores, nats = retrieval.asked(model, encoder, found, nothing, "gate_zero", {}, 6)
    for i, (read, answer) in enumerate(zip(found.read, found.answers, strict=True)):
        logits = model(torch.from_numpy(np.concatenate([read, answer]))[None, :-1])[0, -len(answer) :]
        expected = torch.nn.functional.cross_entropy(logits, torch.from_numpy(answer)).item()
        np.testing.assert_allclose(nats[i], expected, rtol=1e-5)
    assert (scores == 0).all()
    # An answer that the model gives itself is right without being written.
    from stateatlas import generation

    own = generation.greedy(model, found.read, 3)
    same = retrieval.Samples(found.prompts, found.depths, found.read, own)
    monkeypatch.setattr(generation, "greedy", lambda model, prompts, number: [None] * len(prompts))
    assert (retrieval.asked(model, encoder, same, nothing, "gate_zero", {}, 3)[0] == 1).all()


def test_silenced_units_change_the_answer_and_come_back(model, encoder):
    model, found = model.eval(), given(encoder)
    all_of_them = np.ones((2, 32), bool)
    clean = retrieval.asked(model, encoder, found, ~all_of_them, "gate_zero", {}, 4)[1]
    silenced = retrieval.asked(model, encoder, found, all_of_them, "gate_zero", {}, 4)[1]
    assert not np.allclose(clean, silenced)
    np.testing.assert_array_equal(retrieval.asked(model, encoder, found, ~all_of_them, "gate_zero", {}, 4)[1], clean)


def test_arms_without_units_or_complement_are_left_out():
    signature = np.zeros((7, 2, 4))
    found = sets(signature)
    assert list(retrieval.arms(found, 2, np.random.default_rng(0))) == [("baseline", 0)]


def results(specialist, complement, baseline, n=40):
    rng = np.random.default_rng(0)
    made = {("baseline", 0): baseline, ("specialist", 0): specialist}
    made |= {("complement", draw): share for draw, share in enumerate(complement)}
    return {arm: ((np.arange(n) < share * n).astype(float), rng.random(n)) for arm, share in made.items()}


def measured(found, depths=None):
    depths = np.repeat([0.15, 0.85], 20) if depths is None else depths
    rows = retrieval.rows(found, depths, np.random.default_rng(0), 500)
    return {(row["metric"], row["depth"], row["draw"]): row for row in rows}


def test_shares_have_intervals_that_hold_where_all_are_right():
    rows = measured(results(0.0, [1.0, 0.9], 1.0))
    base = rows["baseline_accuracy", "pooled", 0]
    wilson = stats.binomtest(40, 40).proportion_ci(method="wilson")
    assert (base["value"], base["n"]) == (1, 40)
    np.testing.assert_allclose([base["low"], base["high"]], [wilson.low, wilson.high])
    complement = rows["complement_accuracy", "pooled", 0]
    np.testing.assert_allclose(complement["value"], 0.95)
    assert rows["complement_draw_accuracy", "pooled", 1]["value"] == 0.9
    assert complement["low"] < 0.9


def test_the_claims_difference_is_that_of_the_means_with_mover_limits():
    rows = measured(results(0.0, [0.8], 0.5))
    found = rows["complement_minus_nine_tenths_baseline", "pooled", 0]
    first, second = rows["complement_accuracy", "pooled", 0], rows["baseline_accuracy", "pooled", 0]
    np.testing.assert_allclose(found["value"], 0.8 - 0.45)
    below = math.hypot(first["value"] - first["low"], 0.9 * (second["high"] - second["value"]))
    np.testing.assert_allclose(found["low"], found["value"] - below)
    assert found["low"] < found["value"] < found["high"]


def test_every_depth_stands_beside_all_of_them():
    rows = measured(results(0.5, [1.0], 1.0))
    assert rows["specialist_accuracy", "0.15", 0]["value"] == 1
    assert rows["specialist_accuracy", "0.85", 0]["value"] == 0
    assert rows["specialist_accuracy", "pooled", 0]["value"] == 0.5
