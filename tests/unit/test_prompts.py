"""Prompts of study B: pairs of equal length with one-token answers, and none that does not fit."""

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from toy_fields import Toy

from stateatlas import canonical, prompts
from stateatlas.job import InputError


def words(cut: str = "") -> Tokenizer:
    """A tokenizer with a token for every word of the templates, but for the one that it cuts in two."""
    texts = [f"{one.text}{one.answer}" for pair in everything() for one in pair]
    known = {word for text in texts for word in text.replace(",", " ").replace(".", " ").split()} - {cut}
    tokens = ["<bos>", ",", ".", cut[:3], cut[3:], *sorted(known)]
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="<bos>"))
    steps = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]
    steps += [pre_tokenizers.Split(cut[:3], "isolated")] if cut else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    return tokenizer


def everything():
    return prompts.written(canonical.ROOT / "data/prompts.yaml")


def test_the_committed_file_has_sixteen_prompts_of_either_set():
    found, skipped = prompts.from_templates(everything(), words(), 0)
    assert skipped == {"indirect_object": 0, "capital": 0}
    assert [sum(prompt.set == name for prompt in found) for name in skipped] == [16, 16]


def test_what_is_right_in_a_prompt_is_wrong_in_its_partner():
    found, _ = prompts.from_templates(everything(), words(), 0)
    for one, other in zip(found[::2], found[1::2], strict=True):
        assert (one.right, one.wrong) == (other.wrong, other.right) == (one.answer, one.partner_answer)
        assert torch.equal(one.tokens, other.partner) and torch.equal(other.tokens, one.partner)
        assert len(one.tokens) == len(other.tokens) and one.tokens[0] == 0
        assert one.tokens[one.changed] != other.tokens[one.changed]
        assert torch.equal(one.tokens[: one.changed], other.tokens[: one.changed])


def test_the_indirect_object_is_who_does_not_give():
    one, other = everything()[0]
    assert one.text == "Then, John and Mary went to the store. Mary gave a drink to" and one.answer == " John"
    assert other.answer == " Mary" and "John gave" in other.text


def test_a_pair_that_does_not_fit_the_tokenizer_is_skipped_and_counted():
    found, skipped = prompts.from_templates(everything(), words("Sarah"), 0)
    assert skipped == {"indirect_object": 2, "capital": 0} and len(found) == 30


def test_a_tokenizer_that_fits_no_pair_is_refused():
    letters = Tokenizer(models.WordLevel({"<bos>": 0, "a": 1}, unk_token="<bos>"))
    letters.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    with pytest.raises(InputError, match="fits fewer than 2 prompts"):
        prompts.from_templates(everything(), letters, 0)


def documents(number=30, length=40):
    return list(np.random.default_rng(0).integers(1, 8, (number, length)).astype(np.uint16))


def test_text_gives_windows_behind_bos_whose_first_choices_differ():
    model = Toy().requires_grad_(False)
    found = prompts.from_text(model, documents(), 8, 5, np.random.default_rng(0))
    assert len(found) == 8
    for prompt in found:
        logits = model(prompt.tokens[None])[0, -1]
        assert [prompt.right, prompt.wrong] == logits.topk(2).indices.tolist()
        assert prompt.partner_answer == model(prompt.partner[None])[0, -1].argmax() != prompt.answer == prompt.right
        assert prompt.tokens[0] == 0 and len(prompt.tokens) == len(prompt.partner) == 5


def test_a_model_that_always_says_the_same_still_has_pairs():
    model = Toy().requires_grad_(False)
    model.read = lambda stream: torch.arange(8.0).expand(*stream.shape[:2], 8)
    found = prompts.from_text(model, documents(), 4, 5, np.random.default_rng(0))
    assert {(prompt.answer, prompt.partner_answer) for prompt in found} == {(7, 6)}


def test_too_little_text_is_refused_with_a_remedy():
    with pytest.raises(InputError, match=r"4 are needed: lower response\.prompts"):
        prompts.from_text(Toy().requires_grad_(False), documents(1, 20), 4, 5, np.random.default_rng(0))
