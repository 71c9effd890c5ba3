"""Adapters compute what `transformers` computes, and their sites lie where the vocabulary says."""

import pytest
import tiny_models
import torch
from tiny_models import tokens

from stateatlas import adapters, canonical

SITES = range(4)  # of a model of three blocks


@pytest.fixture(params=tiny_models.CONFIGS, scope="module")
def pair(request, tmp_path_factory):
    """A model of `transformers` and the adapter that was loaded from what it saved."""
    hub, folder = tiny_models.save(request.param, tmp_path_factory.mktemp("model"))
    return hub, adapters.load(folder)


def close(x, y):
    """Compare to 1e-5 of the largest entry."""
    torch.testing.assert_close(x, y, rtol=0, atol=1e-5 * max(1.0, y.abs().max().item()))


def outputs_of_blocks(hub, x):
    """Return what the hub's own blocks put out, by hooks that we set here, and its logits."""
    (blocks,) = [m for m in hub.modules() if isinstance(m, torch.nn.ModuleList)]
    found = []
    hooks = [block.register_forward_hook(lambda _, __, output: found.append(output)) for block in blocks]
    logits = hub(x, use_cache=False).logits
    for hook in hooks:
        hook.remove()
    return found, logits


def test_logits_are_those_of_transformers(pair, backend):
    hub, model = pair
    close(model(tokens()), hub(tokens(), use_cache=False).logits)


@torch.no_grad()
def test_every_site_is_the_output_of_its_block(pair):
    hub, model = pair
    blocks, logits = outputs_of_blocks(hub, tokens())
    states = model.states(tokens())
    assert len(states) == model.sites == len(blocks) + 1 == 4
    assert states[0].shape == (*tokens().shape, model.width)
    for block, state in zip(blocks, states[1:], strict=True):
        close(state, block)
    close(model.read(states[-1]), logits)


@torch.no_grad()
def test_site_0_is_what_the_first_block_is_given(pair):
    hub, model = pair
    given = []
    (blocks,) = [m for m in hub.modules() if isinstance(m, torch.nn.ModuleList)]
    hook = blocks[0].register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    hub(tokens(), use_cache=False)
    hook.remove()
    close(model.embed(tokens()), given[0])


@torch.no_grad()
@pytest.mark.parametrize("site", SITES)
def test_resuming_from_a_site_gives_the_same_logits_and_a_replacement_others(pair, site):
    _, model = pair
    state, logits = model.states(tokens())[site], model(tokens())
    close(model.resume(state, site), logits)
    other = model.resume(state, site, lambda stream: torch.randn(stream.shape) * stream.std())
    assert (other - logits).abs().max() > 0.1 * logits.std()


@torch.no_grad()
def test_a_sequence_alone_in_a_batch_and_padded_on_the_right(pair, backend):
    hub, model = pair
    x = tokens(batch=5)
    logits = model(x)
    for i in range(len(x)):
        close(model(x[i : i + 1])[0], logits[i])
    padded = torch.nn.functional.pad(x, (0, 9), value=0)
    close(model(padded)[:, : x.shape[1]], logits)
    mask = (torch.arange(padded.shape[1]) < x.shape[1]).expand(padded.shape).long()
    close(hub(padded, attention_mask=mask, use_cache=False).logits[:, : x.shape[1]], logits)


@torch.no_grad()
def test_bos_is_neither_added_nor_taken_away(pair):
    hub, model = pair
    without = tokens()[:, 1:]
    close(model(without), hub(without, use_cache=False).logits)
    assert not torch.allclose(model(tokens())[:, 1:], model(without), atol=1e-2)


@pytest.mark.parametrize("length", [1, 31, 32, 33, 70])
def test_gradients_are_those_of_transformers(pair, backend, length):
    hub, model = pair
    x = tokens(length=length)
    toward = torch.randn(*x.shape, hub.config.vocab_size, generator=torch.Generator().manual_seed(1))
    own = dict(model.hub.named_parameters())
    theirs = dict(hub.named_parameters())
    assert own.keys() == theirs.keys()
    model.requires_grad_(True)
    found = torch.autograd.grad((model(x) * toward).sum(), list(own.values()))
    expected = torch.autograd.grad((hub(x, use_cache=False).logits * toward).sum(), list(theirs.values()))
    model.requires_grad_(False)
    # Some are zero but for rounding: a norm behind a single head takes out the head's scale.
    least = 1e-2 * max(other.abs().max().item() for other in expected)
    for name, mine, other in zip(own, found, expected, strict=True):
        scale = max(other.abs().max().item(), least)
        torch.testing.assert_close(mine / scale, other / scale, rtol=0, atol=1e-4, msg=lambda text, n=name: n + text)


@torch.no_grad()
def test_a_saved_adapter_is_the_same_model(pair, tmp_path):
    hub, model = pair
    model.hub.save_pretrained(tmp_path)
    close(adapters.load(tmp_path)(tokens()), model(tokens()))
    close(type(hub).from_pretrained(tmp_path).eval()(tokens(), use_cache=False).logits, model(tokens()))


def test_in_float64_the_math_form_has_forward_derivatives(tmp_path, pair):
    _, model = pair
    model.hub.save_pretrained(tmp_path)
    model64 = adapters.load(tmp_path, attention="math")
    model64 = model64.double()
    close(model64(tokens()).float(), model(tokens()))
    stream, step = model64.states(tokens())[1].detach(), 1e-6
    toward = torch.randn_like(stream)
    slope = torch.func.jvp(lambda s: model64.resume(s, 1), (stream,), (toward,))[1]
    ahead, behind = (model64.resume(stream + sign * step * toward, 1) for sign in (1, -1))
    torch.testing.assert_close(slope, (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-5)


def test_more_tokens_than_positions_are_refused(tmp_path):
    _, folder = tiny_models.save("gpt2", tmp_path)
    with pytest.raises(ValueError, match="129 tokens: this model has 128 positions"):
        adapters.load(folder)(tokens(length=129))


@pytest.mark.parametrize("family", adapters.FAMILIES)
def test_a_family_hangs_on_its_own_file_alone(family):
    folder = canonical.PACKAGE / "adapters"
    files = canonical.closure(folder / f"{family}.py")
    assert {path.name for path in files if path.parent == folder} <= {f"{family}.py", "__init__.py", "attention.py"}
    assert any(path.parent.name == "kernels" for path in files) == family.startswith("mamba")
