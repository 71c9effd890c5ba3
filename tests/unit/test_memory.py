"""A batch that a GPU's memory is too small for is run in parts, with the same result."""

import numpy as np
import pytest
import torch
from torch import nn

from stateatlas import job, tasks
from stateatlas.descent import Descent
from stateatlas.memory import in_parts
from stateatlas.pretraining import held_out_loss, text_share
from stateatlas.residual import matched_shape
from stateatlas.seeds import stream
from stateatlas.training import Batches, Recipe, Trainer, accuracy, initialise

RECIPE = Recipe(
    steps=6, batch=12, learning_rate=1e-2, betas=(0.9, 0.98), weight_decay=0.1, warmup=2, decay=0.5, clip=1.0,
    embedding_std=0.1, curriculum=4, advance=0.3, evaluate_every=3, stop_accuracy=0.995, stops=2,
)  # fmt: skip
ROUNDING = 1e-5  # of the norm, in float32, of sums of some hundred terms in another order, through six updates


class Small:
    """A device whose memory takes at most `rows` sequences at a time."""

    def __init__(self, model: nn.Module, rows: int):
        self.seen: list[int] = []
        self.rows = rows
        model.register_forward_pre_hook(self.take)

    def take(self, model, inputs) -> None:
        self.seen.append(len(inputs[0]))
        if len(inputs[0]) > self.rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")


def trained(rows: int | None, steps: int = 6) -> tuple[Trainer, Small | None]:
    task = tasks.load("parity", 12)
    held = task.sample(stream(0, "validation"), 32, 12)
    model = initialise(matched_shape("gru", 16, 1, 2, 2), RECIPE, 0)
    device = Small(model, rows) if rows is not None else None
    it = Trainer(model, Batches(task, RECIPE, [held], 0, ("t",)), RECIPE, (held, task.label(held)["state"]), held)
    for _ in it.run(to_cap=True):
        if it.step == steps:
            break
    return it, device


@pytest.mark.parametrize("rows", [11, 5, 1])
def test_a_training_in_parts_ends_with_the_weights_of_one_in_whole_batches(rows):
    (whole, _), (parted, device) = trained(None), trained(rows)
    for name, expected in whole.model.state_dict().items():
        assert (parted.model.state_dict()[name] - expected).norm() <= ROUNDING * expected.norm(), name
    for one, other in zip(parted.history, whole.history, strict=True):
        assert one["step"] == other["step"] and one["value"] == pytest.approx(other["value"], rel=1e-4)
    assert sum(seen > rows for seen in device.seen) < 20 and min(device.seen) <= rows


def test_what_fits_is_found_once():
    _, device = trained(5, steps=2)
    assert device.seen == [12, 6, 3, 3, 3, 3, 3, 3, 3, 3]


def test_a_failed_attempt_leaves_no_gradient():
    """Out of memory in the middle of a batch: what its first part has added must not count twice."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(8, 3)
    calls = []

    def share(part: slice) -> tuple[torch.Tensor]:
        calls.append(part)
        if len(calls) == 2:
            raise torch.OutOfMemoryError
        return (model(x[part]).square().sum() / len(x),)

    descent = Descent(model, RECIPE)
    descent.parts = 2
    descent.update(0.0, (share, len(x)))
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).square().mean().backward()
    nn.utils.clip_grad_norm_(model.parameters(), RECIPE.clip)
    for one, p in zip(found, model.parameters(), strict=True):
        torch.testing.assert_close(one, p.grad)
    assert len(calls) == 2 + 4


def test_two_losses_of_other_sizes_add_up():
    torch.manual_seed(0)
    model = nn.Embedding(7, 7)
    windows = torch.randint(0, 7, (5, 4))
    (_, plain), (weighted, same) = (
        Descent(model, RECIPE).update(0.0, text_share(model, windows, weight))[0] for weight in (1.0, 0.5)
    )
    torch.testing.assert_close(weighted, 0.5 * plain)
    torch.testing.assert_close(same, plain)
    parted = Descent(model, RECIPE)
    parted.parts = 3
    (one,), (both, _) = parted.update(0.0, (lambda part: (model.weight[part].sum(),), 2), text_share(model, windows))
    torch.testing.assert_close(both, plain)
    torch.testing.assert_close(one, model.weight[:2].sum().detach())


def test_what_is_measured_in_parts_is_the_same():
    it, _ = trained(None, steps=1)
    tokens, states = it.validation
    expected, text = accuracy(it.model, tokens, states), held_out_loss(it.model, tokens, 32)
    Small(it.model, 5)
    assert accuracy(it.model, tokens, states) == expected
    assert held_out_loss(it.model, tokens, 32) == pytest.approx(text, rel=ROUNDING)


def test_parts_are_in_order_and_whole():
    def work(part: slice) -> list[int]:
        if part.stop - part.start > 3:
            raise torch.OutOfMemoryError
        return list(range(10))[part]

    assert np.concatenate(in_parts(work, 10, 8)).tolist() == list(range(10))
    assert in_parts(work, 0, 8) == []


def test_without_room_for_one_sequence_it_says_what_to_do():
    with pytest.raises(torch.OutOfMemoryError) as found:
        trained(0)
    assert "GPU's memory is not enough" in (said := job._say(found.value)) and "--resources gpu=0" in said
    with pytest.raises(torch.OutOfMemoryError):
        in_parts(lambda part: (_ for _ in ()).throw(torch.OutOfMemoryError()), 4, 2)
