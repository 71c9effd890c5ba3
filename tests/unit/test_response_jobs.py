"""The jobs of study B: every claim finds its numbers in the tables that they write."""

import numpy as np
import pytest
import tiny_models
import torch
from claim_tables import published

from stateatlas import adapters, packing, plan, prompted, tables, upstream
from stateatlas.invert_job import invert
from stateatlas.respond_job import respond
from stateatlas.transfer_job import transfer
from stateatlas.verdicts import evaluate

CFG = {
    "root_seed": 0, "bootstrap": 100, "prompts": 4, "length": 20, "eps": [0.001, 0.003, 0.01, 0.03, 0.1, 1.0],
    "directions": 2, "places": 3, "pairs": 2, "slices": 4, "scales": [0.5, 1.0], "draws": 2, "front": 3,
    "anchors": [0, 16], "small": "the small one",
}  # fmt: skip


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "tokens.safetensors"
    drawn = np.random.default_rng(0).integers(1, 24, (60, 50)).astype(np.uint16)
    packing.save(path, {"test": list(drawn)})
    return path


@pytest.fixture(scope="module", params=["gpt2", "mamba2"])
def made(request, tokens, tmp_path_factory):
    """The tables of one tiny model that was never trained."""
    _, folder = tiny_models.save(request.param, tmp_path_factory.mktemp("model"))
    cfg = CFG | {"architecture": "tiny", "family": request.param}
    found = respond(cfg, folder, tokens, "cpu")
    found["inverse"] = invert(cfg, folder, tokens, "cpu")
    found["transfer"] = transfer(cfg, {"small": folder, "large": folder}, tokens, "cpu")
    return {name: tables.frame(name, rows) for name, rows in found.items()}


def test_the_tables_are_those_of_the_rules(made):
    assert set(made) == {name for name, (rule, _) in plan.TABLES.items() if rule in upstream.OF_RESPONSE}
    assert all(len(frame) for frame in made.values())


@pytest.mark.parametrize("name", [f"B{k}" for k in range(1, 11)])
def test_every_claim_has_a_verdict(made, name):
    judged = evaluate([claim for claim in published() if claim["id"] == name], made, "laptop")
    whole, atoms = judged.iloc[0], judged.iloc[1:]
    assert not whole["verdict"].startswith("not evaluable")
    assert np.isfinite(atoms[["value", "low", "high"]].to_numpy(float)).all()


def test_an_identity_is_marked_and_exact(made):
    rows = made["composition"].set_index("tokens")
    assert rows.loc["all", "status"] == "by construction" and rows.loc["all", "value"] < 1e-9
    assert rows.drop("all")["status"].eq("evidence").all()


def test_a_model_predicts_its_own_map(made):
    rows = made["transfer"].query("predictor == 'map' and metric == 'spearman' and anchors == 0")
    assert rows["value"].item() == pytest.approx(1)


def test_the_same_job_writes_the_same_numbers(tokens, tmp_path):
    _, folder = tiny_models.save("gpt2", tmp_path)
    cfg = CFG | {"architecture": "tiny", "family": "gpt2"}
    assert invert(cfg, folder, tokens, "cpu") == invert(cfg, folder, tokens, "cpu")


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox"])
def test_a_model_is_what_it_was_but_for_its_digits(name, tmp_path):
    _, folder = tiny_models.save(name, tmp_path)
    model, tokens = prompted.load(folder, "cpu"), tiny_models.tokens()
    expected = adapters.load(folder, attention="math").double()(tokens)
    torch.testing.assert_close(model(tokens), expected, rtol=1e-12, atol=1e-12)
    assert ("tanh" in repr(model.hub)) == (name == "gpt2")


def test_new_weights_depend_on_their_seed_alone(tmp_path):
    _, folder = tiny_models.save("gpt2", tmp_path)
    one, same, other = (prompted.untrained(folder, seed, "cpu").state_dict() for seed in (1, 1, 2))
    name = next(name for name, values in one.items() if values.std() > 0)
    assert all((one[key] == same[key]).all() for key in one)
    assert not (one[name] == other[name]).all()
