"""Training: resumed is undisturbed, held-out sequences stay out, the stop is a rule on validation data alone."""

import numpy as np
import pytest
import torch

from stateatlas import tasks, weights
from stateatlas.checkpoint import Checkpoint
from stateatlas.loop import train
from stateatlas.residual import matched_shape
from stateatlas.seeds import stream
from stateatlas.training import Batches, Recipe, Trainer, initialise, learning_rate

RECIPE = Recipe(
    steps=30, batch=8, learning_rate=1e-2, betas=(0.9, 0.98), weight_decay=0.1, warmup=5, decay=0.5, clip=1.0,
    embedding_std=0.1, curriculum=4, advance=0.3, evaluate_every=5, stop_accuracy=0.995, stops=2,
)  # fmt: skip


def trainer(recipe: Recipe = RECIPE, architecture: str = "gru", seed: int = 0) -> Trainer:
    task = tasks.load("parity", 12)
    tokens = task.sample(stream(0, "validation"), 32, 12)
    test = task.sample(stream(0, "test"), 16, 12)
    model = initialise(matched_shape(architecture, 16, 1, 2, 2), recipe, seed)
    return Trainer(
        model, Batches(task, recipe, [tokens, test], 0, ("t",)), recipe, (tokens, task.label(tokens)["state"]), test
    )


def run(it: Trainer, steps: int) -> Trainer:
    for _ in it.run(to_cap=True):
        if it.step == steps:
            break
    return it


def equal(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("at", [1, 7, 29])
def test_resumed_training_is_bit_for_bit_the_undisturbed_one(at, tmp_path):
    whole = run(trainer(), 30)
    checkpoint = Checkpoint(tmp_path / "key")
    checkpoint.save(run(trainer(), at).state())
    second = trainer(seed=1)  # other weights: all must come from the checkpoint
    second.restore(checkpoint.load())
    run(second, 30)
    assert equal(second.model.state_dict(), whole.model.state_dict())
    assert second.history == whole.history
    np.testing.assert_array_equal(second.coverage.seen, whole.coverage.seen)


def test_damaged_checkpoint_costs_time_not_the_run(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    checkpoint.save(run(trainer(), 3).state())
    checkpoint.path.write_bytes(checkpoint.path.read_bytes()[:100])
    assert checkpoint.load() is None
    assert not checkpoint.path.exists()


def test_held_out_sequences_are_never_drawn():
    task = tasks.load("parity", 12)
    held = np.array([[int(bit) for bit in f"{i:012b}"] for i in range(4000)])
    batches = Batches(task, RECIPE, [held[:2000], held[2000:]], 0, ("t",))
    rows = {row.tobytes() for step in range(20) for row in batches.draw(step, 12).astype(np.uint8)}
    assert rows.isdisjoint({row.tobytes() for row in held.astype(np.uint8)})
    assert len(rows) > 1


def test_a_batch_depends_on_its_step_and_name_alone():
    task = tasks.load("s3", 12)
    first, second = (Batches(task, RECIPE, [], 0, ("t", seed)) for seed in (0, 1))
    np.testing.assert_array_equal(first.draw(5, 12), first.draw(5, 12))
    assert (first.draw(5, 12) != second.draw(5, 12)).any()
    assert (first.draw(5, 12) != first.draw(6, 12)).any()


def test_initial_weights_depend_on_the_seed_and_leave_the_global_stream_alone():
    shape = matched_shape("lstm", 16, 1, 2, 2)
    before = torch.get_rng_state()
    a, b, c = (initialise(shape, RECIPE, seed).state_dict() for seed in (0, 0, 1))
    assert equal(a, b)
    assert not equal(a, c)
    assert torch.equal(before, torch.get_rng_state())


def test_training_stops_after_two_good_evaluations_in_a_row_and_the_cap_goes_on(monkeypatch):
    values = iter([0.999, 0.5, 0.999, 0.996, 0.999, 0.999, 0.999])
    monkeypatch.setattr("stateatlas.training.accuracy", lambda *_: next(values))
    recipe = Recipe(**RECIPE.__dict__ | {"curriculum": 0})
    stopped = trainer(recipe)
    list(stopped.run(to_cap=False))
    assert stopped.step == stopped.stop["step"] == 20
    values = iter([0.999, 0.5, 0.999, 0.996, 0.999, 0.999, 0.999])
    capped = trainer(recipe)
    list(capped.run(to_cap=True))
    assert (capped.stop["step"], capped.step) == (20, 30)
    assert equal(capped.stop["model"], stopped.model.state_dict())


def test_no_stop_before_the_full_length(monkeypatch):
    monkeypatch.setattr("stateatlas.training.accuracy", lambda *_: 1.0)
    slow = trainer(Recipe(**RECIPE.__dict__ | {"advance": 0.999}))
    list(slow.run(to_cap=False))
    assert slow.length < 12
    assert slow.stop is None


def test_learning_rate_warms_up_and_falls_to_its_share_at_the_cap():
    assert learning_rate(0, RECIPE) == pytest.approx(1e-2 / 5)
    assert learning_rate(5, RECIPE) == pytest.approx(1e-2)
    assert learning_rate(30, RECIPE) == pytest.approx(5e-3)


def test_progress_says_step_accuracy_and_time_left(tmp_path, caplog):
    caplog.set_level("INFO")
    it = trainer()
    train(it, it.run(to_cap=True), Checkpoint(tmp_path), every=0.0)
    assert "step 30 of at most 30" in caplog.text
    assert "s left" in caplog.text


def test_model_directory_gives_the_model_back(tmp_path):
    model = run(trainer(architecture="mamba"), 2).model.eval()
    weights.save(model, tmp_path / "model")
    read = weights.load(tmp_path / "model")
    tokens = torch.randint(0, 2, (3, 12))
    assert read.shape == model.shape
    with torch.no_grad():
        assert torch.equal(read(tokens), model(tokens))
