"""The residual model records every site once, resumes from any of them, and an edit does what it says and no more."""

import pytest
import torch

from stateatlas.residual import ResidualModel, matched_shape

SITES = range(4)  # of a model of three blocks


@pytest.fixture(params=["transformer", "mamba", "mamba2", "lstm", "gru"], scope="module")
def model(request):
    torch.manual_seed(0)
    return ResidualModel(matched_shape(request.param, 16, 3, 6, 6)).eval()


@pytest.fixture(scope="module")
def tokens():
    return torch.randint(0, 6, (4, 12), generator=torch.Generator().manual_seed(0))


def close(x, y):
    torch.testing.assert_close(x, y, rtol=0, atol=1e-5)


def test_states_are_those_of_a_forward_pass_by_hand(model, tokens):
    states = model.states(tokens)
    assert len(states) == model.sites == 4
    stream = model.embedding(tokens)
    if model.position is not None:
        stream = stream + model.position.weight[:12]
    close(states[0], stream)
    for block, state in zip(model.blocks, states[1:], strict=True):
        stream = stream + block.mixer(block.norm(stream))
        stream = stream + block.mlp(block.mlp_norm(stream))
        close(state, stream)


def test_the_last_site_is_before_the_final_norm(model, tokens):
    last = model.states(tokens)[-1]
    close(model.head(model.norm(last)), model(tokens))
    assert not torch.allclose(model.head(last), model(tokens), atol=1e-2)


@pytest.mark.parametrize("site", SITES)
def test_resuming_from_a_site_gives_the_same_logits(model, tokens, site):
    assert torch.equal(model.resume(model.states(tokens)[site], site), model(tokens))


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_every_site_records_exactly_once(model, tokens, mode):
    seen = []
    parts = [model.embedding, *model.blocks, model.norm, model.head]
    hooks = [part.register_forward_hook(lambda part, *_: seen.append(part)) for part in parts]
    try:
        with mode():
            model(tokens)
            assert seen == parts
            seen.clear()
            states = model.states(tokens)
            assert seen == parts[:-2]
    finally:
        for hook in hooks:
            hook.remove()
    assert len({state.data_ptr() for state in states}) == model.sites


@pytest.mark.parametrize("site", SITES)
def test_a_random_replacement_changes_the_logits(model, tokens, site):
    replaced = model.resume(model.states(tokens)[site], site, torch.randn_like)
    assert not torch.allclose(replaced, model(tokens), atol=1e-2)


@pytest.mark.parametrize("site", SITES)
def test_patching_one_row_leaves_the_others_bit_identical(model, tokens, site):
    def patch(stream):
        patched = stream.clone()
        patched[1] = 0
        return patched

    clean = model(tokens)
    patched = model.resume(model.states(tokens)[site], site, patch)
    assert torch.equal(patched[[0, 2, 3]], clean[[0, 2, 3]])
    assert not torch.allclose(patched[1], clean[1], atol=1e-2)


@pytest.mark.parametrize("site", SITES)
def test_patching_all_or_nothing(model, tokens, site):
    other = model.states(tokens.flip(0))[site]
    stream = model.states(tokens)[site]
    assert torch.equal(model.resume(stream, site, lambda _: other), model(tokens.flip(0)))
    assert torch.equal(model.resume(stream, site, lambda x: x), model(tokens))


def test_after_an_exception_in_an_edit_the_clean_logits_come_back(model, tokens):
    clean, states = model(tokens), model.states(tokens)

    def fail(stream):
        raise RuntimeError("in the edit")

    with pytest.raises(RuntimeError, match="in the edit"):
        model.resume(states[1], 1, fail)
    assert torch.equal(model(tokens), clean)
    assert torch.equal(model.resume(states[1], 1), clean)


@pytest.mark.parametrize("site", [-1, 4])
def test_a_site_that_does_not_exist_is_refused(model, tokens, site):
    with pytest.raises(ValueError, match="sites 0 to 3"):
        model.resume(model.embed(tokens), site)
