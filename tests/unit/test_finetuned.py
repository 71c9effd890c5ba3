"""A fine-tuned model reads a task's symbols through a pretrained backbone, and is trained and kept like any other."""

import copy

import numpy as np
import pytest
import tiny_models
import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from stateatlas import adapters, finetuned, pretrained, recording, states, tasks, weights
from stateatlas.descent import adamw
from stateatlas.job import InputError
from stateatlas.training import Batches, Recipe, Trainer

DYCK = tasks.load("dyck", 12)
FAMILIES = ["gpt2", "gpt_neox", "llama grouped", "mamba", "mamba2"]  # tied embeddings among them
# A stand-in for a real vocabulary: a symbol is nowhere at its own number.
VOCABULARY = ["<s>", "<unk>", "(0", "7", "]", "0", "Ġ(", "(", ")", "[", "<0x31>", "2", "3", "4", "5"]


def save_tokenizer(folder):
    inner = Tokenizer(models.WordLevel({token: i for i, token in enumerate(VOCABULARY)}, unk_token="<unk>"))
    PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", unk_token="<unk>").save_pretrained(folder)


@pytest.fixture(params=FAMILIES, scope="module")
def place(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tiny_models.save(request.param, folder)
    save_tokenizer(folder)
    return folder


@pytest.fixture
def gpt2(tmp_path):
    tiny_models.save("gpt2", tmp_path / "gpt2")
    save_tokenizer(tmp_path / "gpt2")
    return tmp_path / "gpt2"


def brackets(n=4, length=12):
    return torch.from_numpy(DYCK.sample(np.random.default_rng(0), n, length))


def recipe(**changes):
    known = {"steps": 30, "batch": 32, "learning_rate": 3e-3, "betas": (0.9, 0.98), "weight_decay": 0.1, "warmup": 5,
             "decay": 1.0, "clip": 1.0, "embedding_std": 0.02, "curriculum": 0, "advance": 1.0, "evaluate_every": 10,
             "stop_accuracy": 1.1, "stops": 1}  # fmt: skip
    return Recipe(**known | changes)


def trainer(model, recipe, length=12):
    tokens = DYCK.sample(np.random.default_rng(1), 64, length)
    validation = (tokens, DYCK.label(tokens)["state"])
    return Trainer(model, Batches(DYCK, recipe, [tokens], 0, ("test",)), recipe, validation, tokens)


def test_symbols_are_the_tokens_of_the_characters_themselves(gpt2):
    assert finetuned.task_symbols(DYCK) == "([)]"
    assert finetuned.task_symbols(tasks.load("s3", 12)) == "012345"
    words = pretrained.tokenizer(gpt2)
    assert finetuned.symbol_ids(words, "([)]") == [7, 9, 8, 4]
    assert finetuned.symbol_ids(words, "0123") == [5, 10, 11, 12]  # 1 by its byte
    with pytest.raises(InputError, match="gpt2: its vocabulary has no token '6'"):
        finetuned.symbol_ids(words, "0123456")


def test_the_tokenizer_may_lie_elsewhere(gpt2, tmp_path):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((gpt2 / name).read_bytes())
        (gpt2 / name).unlink()
    with pytest.raises(InputError, match="or name the place of its tokenizer"):
        finetuned.build(gpt2, DYCK, seed=0)
    assert finetuned.build(gpt2, DYCK, seed=0, tokenizer=tmp_path).symbols.tolist() == [7, 9, 8, 4]


@torch.no_grad()
def test_the_head_reads_the_backbone_after_its_final_norm(place):
    backbone = adapters.load(place)
    model = finetuned.build(place, DYCK, seed=0).eval()
    x = brackets()
    ids = torch.tensor([7, 9, 8, 4])[x]
    for own, other in zip(model.states(x), backbone.states(ids), strict=True):
        assert torch.equal(own, other)
    assert model.sites == backbone.sites and model.width == backbone.width
    assert torch.equal(model(x), model.head(backbone.norm(backbone.states(ids)[-1])))
    for site, state in enumerate(model.states(x)):
        torch.testing.assert_close(model.resume(state, site), model(x), rtol=0, atol=1e-5)


def test_the_seed_decides_the_head_alone(gpt2):
    one, same, other = (finetuned.build(gpt2, DYCK, seed=s).state_dict() for s in (0, 0, 1))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert {name for name in one if not torch.equal(one[name], other[name])} == {"head.weight", "head.bias"}


@torch.no_grad()
def test_a_saved_model_is_the_same_model(place, tmp_path):
    model = finetuned.build(place, DYCK, seed=0)
    weights.save(model, tmp_path / "saved")
    assert sorted(p.name for p in (tmp_path / "saved").iterdir()) == ["config.json", "model.safetensors"]
    loaded = weights.load(tmp_path / "saved")
    assert torch.equal(loaded(brackets()), model.eval()(brackets()))
    assert not loaded.training and not any(p.requires_grad for p in loaded.parameters())
    weights.save(loaded, tmp_path / "again")
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "saved" / name).read_bytes()
    assert str(place) not in (tmp_path / "saved" / "config.json").read_text()


def test_all_weights_are_tuned(place):
    model = finetuned.build(place, DYCK, seed=0)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    training = trainer(model, recipe(steps=2))
    for _ in training.run(to_cap=True):
        pass
    kept = [name for name, p in model.named_parameters() if torch.equal(p, before[name])]
    assert not kept


def test_training_goes_on_from_a_checkpoint_as_if_undisturbed(place):
    straight = trainer(finetuned.build(place, DYCK, seed=0), recipe(steps=6))
    for _ in straight.run(to_cap=True):
        pass
    first = trainer(finetuned.build(place, DYCK, seed=0), recipe(steps=6))
    for _ in first.run(to_cap=True):
        if first.step == 3:
            break
    second = trainer(finetuned.build(place, DYCK, seed=0), recipe(steps=6))
    second.restore(copy.deepcopy(first.state()))
    for _ in second.run(to_cap=True):
        pass
    for name, tensor in straight.model.state_dict().items():
        assert torch.equal(tensor, second.model.state_dict()[name]), name


def test_tuning_learns(place):
    training = trainer(finetuned.build(place, DYCK, seed=0), recipe(steps=40))
    losses = []
    for _ in training.run(to_cap=True):
        losses.append(training.update())
    assert losses[-1] < 0.8 * losses[0]


def test_neither_embeddings_nor_norms_decay(place):
    model = finetuned.build(place, DYCK, seed=0)
    decayed, free = (set(map(id, group["params"])) for group in adamw(model, recipe()).param_groups)
    for name, p in model.named_parameters():
        kept = p.ndim == 1 or "A_log" in name or any(part in name for part in (".wte.", ".wpe.", "embed"))
        assert id(p) in (free if kept else decayed), name
    assert len(decayed) + len(free) == len(list(model.parameters()))


def test_there_is_no_dropout(gpt2):
    assert adapters.load(gpt2).hub.config.resid_pdrop == 0
    model = finetuned.build(gpt2, DYCK, seed=0)
    assert model.training
    assert torch.equal(model(brackets()), model(brackets()))
    assert torch.equal(model.eval()(brackets()), model.train()(brackets()))


def test_mixed_precision_is_for_training_alone(place, monkeypatch):
    model = finetuned.build(place, DYCK, seed=0)
    full = model(brackets())
    assert torch.equal(full, model.eval()(brackets()))  # there is none on the CPU
    monkeypatch.setattr(finetuned, "MIXED", ("cpu",))
    assert torch.equal(full, model(brackets()))
    mixed = model.train()(brackets())
    assert mixed.dtype == torch.float32 and not torch.equal(full, mixed)
    # bfloat16 has 8 bits, and three blocks are little to add up in
    torch.testing.assert_close(mixed, full, rtol=0, atol=0.05 * full.abs().max().item())
    training = trainer(model, recipe(steps=3))
    for _ in training.run(to_cap=True):
        pass
    assert all(p.dtype == torch.float32 and p.isfinite().all() for p in model.parameters())


def test_states_are_recorded_like_those_of_formal_models(gpt2, tmp_path):
    model = finetuned.build(gpt2, DYCK, seed=0).eval()
    x = brackets()
    recording.record(model, x.numpy(), tmp_path, "test")
    assert states.sites(tmp_path) == [0, 1, 2, 3]
    found = states.load(tmp_path, "test", 3)
    assert found.shape == (*x.shape, model.width) and found.dtype == np.float32
    np.testing.assert_array_equal(found, model.states(x)[3].detach().numpy())
