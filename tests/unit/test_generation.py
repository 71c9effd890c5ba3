"""Greedy answers: those of `generate`, whatever is batched or kept."""

import numpy as np
import pytest
import tiny_models
import torch

from stateatlas import adapters, generation, units


@pytest.fixture(params=["mamba", "mamba2", "gpt_neox"])
def model(request, tmp_path):
    return adapters.load(tiny_models.save(request.param, tmp_path)[1])


def test_answers_are_those_of_the_librarys_generate(model, monkeypatch):
    monkeypatch.setattr(generation, "PIECE", 5)  # the state after a prompt is put together from pieces
    tokens = tiny_models.tokens()
    prompts = [row[: 9 + 4 * (i % 2)].numpy() for i, row in enumerate(tokens)]
    for prompt, answer in zip(prompts, generation.greedy(model, prompts, 7), strict=True):
        whole = torch.from_numpy(prompt)[None]
        options = {"attention_mask": torch.ones_like(whole), "max_new_tokens": 7, "do_sample": False}
        expected = model.hub.generate(whole, eos_token_id=None, pad_token_id=0, **options)
        np.testing.assert_array_equal(answer, expected[0, len(prompt) :].numpy())


def test_a_prompt_alone_has_the_answer_that_it_has_among_others(model):
    prompts = list(tiny_models.tokens().numpy())
    together = generation.greedy(model, prompts, 5)
    for prompt, answer in zip(prompts, together, strict=True):
        np.testing.assert_array_equal(generation.greedy(model, [prompt], 5)[0], answer)


def test_what_is_known_after_two_pieces_is_what_is_known_after_both(model):
    kind, model = units.family(model.family), model.double()
    stream = model.embed(tiny_models.tokens())
    whole = kind.remember(model, 0, stream)
    pieces = kind.remember(model, 0, stream[:, 2:], kind.remember(model, 0, stream[:, :2]))
    for one, other in zip(whole, pieces, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_batches_hold_prompts_of_one_length():
    prompts = [np.zeros(n, int) for n in (3, 5, 3, 3, 5)]
    assert generation.batches(prompts, most=2) == [[0, 2], [3], [1, 4]]
