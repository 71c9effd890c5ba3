"""Minis: resumed is undisturbed, and what is saved is an ordinary checkpoint that computes what was trained."""

import json
import logging
import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from stateatlas import adapters, bigram, kernels, minis, packing, tokenization
from stateatlas.checkpoint import Checkpoint
from stateatlas.job import InputError
from stateatlas.loop import resume, train
from stateatlas.mini_job import pretrain
from stateatlas.minis import Mini
from stateatlas.pretraining import Recipe, Trainer, held_out_loss, learning_rate

RECIPE = Recipe(
    steps=12, batch=4, length=32, learning_rate=1e-2, betas=(0.9, 0.95), weight_decay=0.1, warmup=3, clip=1.0,
    evaluate_every=5,
)  # fmt: skip
VOCABULARY = 300
MINIS = {
    "gpt2": Mini("gpt2", 16, 2, 4, VOCABULARY),
    "gpt_neox": Mini("gpt_neox", 16, 2, 4, VOCABULARY),
    "mamba": Mini("mamba", 16, 2, 0, VOCABULARY),
    "mamba2": Mini("mamba2", 16, 2, 0, VOCABULARY),
}


@pytest.fixture(autouse=True)
def plain_kernels():
    kernels.use("torch")


def documents(seed: int, n: int = 12) -> list[np.ndarray]:
    """Walks over 20 tokens that mostly step by 1: a bigram model can learn them."""
    rng = np.random.default_rng(seed)
    steps = (rng.choice([1, 1, 1, 7], size=(n, 400)).cumsum(axis=1) % 20 + 1).astype(np.uint16)
    return list(steps)


def trainer(mini: str = "mamba2", seed: int = 0, recipe: Recipe = RECIPE) -> Trainer:
    validation = packing.windows(documents(1, n=2), 32, np.random.default_rng(0))
    return Trainer(minis.build(MINIS[mini], seed), documents(0), recipe, validation, 0, ("t",))


def to(it: Trainer, step: int) -> Trainer:
    for _ in it.run():
        if it.step == step:
            break
    return it


def equal(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize(("mini", "at"), [("gpt2", 7), ("gpt_neox", 1), ("mamba", 11), ("mamba2", 5)])
def test_resumed_training_is_bit_for_bit_the_undisturbed_one(mini, at, tmp_path):
    whole = to(trainer(mini), 12)
    checkpoint = Checkpoint(tmp_path)
    checkpoint.save(to(trainer(mini), at).state())
    second = trainer(mini, seed=1)  # other weights: all must come from the checkpoint
    resume(second, checkpoint)
    train(second, second.run(), checkpoint)
    assert second.step == 12
    assert equal(second.model.state_dict(), whole.model.state_dict())
    assert second.history == whole.history


def test_training_lowers_the_loss_and_records_the_curve(caplog, tmp_path):
    caplog.set_level("INFO")
    it = trainer("gpt2", recipe=Recipe(**RECIPE.__dict__ | {"steps": 40}))
    before = held_out_loss(it.model, it.validation, 4)
    train(it, it.run(), Checkpoint(tmp_path), every=0.0)
    curve = [row["value"] for row in it.history if row["metric"] == "validation_nats"]
    assert before == pytest.approx(math.log(VOCABULARY), abs=0.2)
    assert curve[-1] < before - 1
    assert [row["step"] for row in it.history[::2]] == [5, 10, 15, 20, 25, 30, 35, 40]
    assert "step 40 of at most 40, validation" in caplog.text


def test_learning_rate_warms_up_and_falls_to_zero():
    assert learning_rate(0, RECIPE) == pytest.approx(1e-2 / 3)
    assert learning_rate(3, RECIPE) == pytest.approx(1e-2)
    assert learning_rate(12, RECIPE) == pytest.approx(0, abs=1e-12)
    rates = [learning_rate(step, RECIPE) for step in range(3, 13)]
    assert all(a > b for a, b in pairwise(rates))


def test_held_out_loss_is_the_mean_over_tokens_whatever_the_batch():
    it = trainer("mamba2")
    windows = it.validation[:5]
    logits = it.model(torch.from_numpy(windows.astype(np.int64))).double().log_softmax(-1)
    expected = -np.mean([logits[n, t, windows[n, t + 1]].item() for n in range(5) for t in range(31)])
    for batch in (2, 5):
        assert held_out_loss(it.model, windows, batch) == pytest.approx(expected, abs=1e-5)
    assert it.model.training


@pytest.mark.parametrize("mini", MINIS)
def test_initial_weights_depend_on_the_seed_alone(mini):
    before = torch.get_rng_state()
    a, b, c = (minis.build(MINIS[mini], seed).state_dict() for seed in (0, 0, 1))
    assert equal(a, b)
    assert not equal(a, c)
    assert torch.equal(before, torch.get_rng_state())


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A tokenizer's folder."""
    path = tmp_path_factory.mktemp("tokenizer")
    tokenization.save(tokenization.train(["def double(x):\n    return 2 * x\n" * 3, "twice as much"] * 2, 280), path)
    return path


@pytest.mark.parametrize("mini", MINIS)
def test_what_is_saved_is_an_ordinary_checkpoint(mini, words, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = to(trainer(mini), 3).model.eval()
    minis.save(model, words, tmp_path)
    tokens = torch.randint(0, VOCABULARY, (2, 50))
    theirs, report = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    with torch.no_grad():
        expected = model(tokens)
        scale = expected.abs().max().item()
        torch.testing.assert_close(theirs(tokens).logits, expected, rtol=0, atol=1e-5 * scale)
        torch.testing.assert_close(adapters.load(tmp_path)(tokens), expected, rtol=0, atol=1e-5 * scale)
    text = "def twice(x):\n\treturn 34 * x  # é <b>\r\n"
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer(text).input_ids == AutoTokenizer.from_pretrained(words)(text).input_ids
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert theirs.config.bos_token_id == tokenizer.bos_token_id == packing.BOS


def test_mamba2_of_width_128_has_64_heads():
    config = minis.build(Mini("mamba2", 128, 4, 0, VOCABULARY), 0).hub.config
    assert config.num_heads * config.num_hidden_layers == 64
    assert config.num_heads * config.head_dim == config.expand * config.hidden_size


def test_the_positions_of_gpt2_start_as_sinusoids():
    table = minis.build(MINIS["gpt2"], 0).hub.transformer.wpe.weight.detach().double()
    assert table.square().mean().item() ** 0.5 == pytest.approx(minis.SPREAD, rel=1e-5)
    # One step back is one linear map, the same everywhere.
    step, residuals = np.linalg.lstsq(table[1:].numpy(), table[:-1].numpy(), rcond=None)[:2]
    assert step.shape == (16, 16)
    assert residuals.sum() < 1e-11  # float32 keeps each of 8192 entries to 4e-9


@pytest.mark.parametrize(
    ("mini", "message"),
    [
        (Mini("rwkv", 16, 2, 0, 300), "family 'rwkv': it must be one of gpt2, gpt_neox, mamba, mamba2"),
        (Mini("gpt2", 16, 2, 0, 300), "family gpt2: heads 0 must be 1 or more"),
        (Mini("gpt_neox", 20, 2, 4, 300), "width 20 must be a multiple of 8"),
        (Mini("mamba2", 12, 2, 0, 300), "width 12 must be a multiple of 8"),
    ],
)
def test_a_size_that_cannot_be_is_refused(mini, message):
    with pytest.raises(InputError, match=message):
        minis.build(mini, 0)


CFG = {
    "threads": 1, "backend": "torch", "root_seed": 0, "seed": 0, "name": "mamba2", "held_out": 8,
    "mini": MINIS["mamba2"].__dict__, "recipe": RECIPE.__dict__ | {"steps": 6, "learning_rate": 2e-2},
}  # fmt: skip


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "tokens.safetensors"
    packing.save(path, {"train": documents(0), "validation": documents(1), "test": documents(2)})
    return path


def test_a_job_writes_both_models_and_the_comparison(words, tokens, tmp_path, caplog):
    pretrain(CFG, tokens, words, tmp_path, tmp_path / "work", "cpu")
    history = json.loads((tmp_path / "history.json").read_text())
    splits = packing.Documents(tokens)
    from stateatlas.seeds import stream

    for split in ("validation", "test"):
        windows = packing.windows(splits.get(split), 32, stream(0, "minis", split))[:8]
        for name, metric in (("trained", split), ("trained", f"bigram_{split}")):
            assert (tmp_path / name / "model.safetensors").exists()
            assert f"{metric}_nats" in history
        model = adapters.load(tmp_path / "trained")
        assert history[f"{split}_nats"] == pytest.approx(held_out_loss(model, windows, 4), abs=1e-5)
    train_windows = packing.windows(splits.get("train"), 32, stream(0, "minis", "train", 0, "pass", 0))
    table = bigram.fit(train_windows, VOCABULARY)
    assert history["bigram_test_nats"] == pytest.approx(bigram.loss(table, windows), abs=1e-12)
    assert history["gain"] == pytest.approx(history["bigram_test_nats"] - history["test_nats"])
    assert history["good_enough"] is False
    assert "not good enough to study" in caplog.text
    untrained = adapters.load(tmp_path / "untrained")
    assert held_out_loss(untrained, windows, 4) == pytest.approx(math.log(VOCABULARY), abs=0.3)


def test_a_killed_job_goes_on_and_gives_the_same_bytes(words, tokens, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    pretrain(CFG, tokens, words, tmp_path / "whole", tmp_path / "unused", "cpu")
    monkeypatch.setattr("stateatlas.loop.train.__defaults__", (0.0,))
    update = Trainer.update

    def killed(self, windows):
        if self.step == 4:
            raise KeyboardInterrupt
        return update(self, windows)

    monkeypatch.setattr(Trainer, "update", killed)
    with pytest.raises(KeyboardInterrupt):
        pretrain(CFG, tokens, words, tmp_path / "first", tmp_path / "work", "cpu")
    monkeypatch.setattr(Trainer, "update", update)
    pretrain(CFG, tokens, words, tmp_path / "second", tmp_path / "work", "cpu")
    assert "going on from step 4" in caplog.text
    for name in ("trained/model.safetensors", "trained/config.json", "history.json", "untrained/model.safetensors"):
        assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
