"""Language models through the whole workflow: a mini that is trained, and a checkpoint in a directory."""

import json

import pandas as pd
import pytest
import yaml
from tokenizers import Tokenizer, models
from transformers import MambaConfig, MambaForCausalLM, PreTrainedTokenizerFast
from workflow import Project

pytestmark = pytest.mark.slow
MODELS = ("mine", "mini-mamba")


@pytest.fixture(scope="module")
def ran(root, tmp_path_factory) -> Project:
    from workflow import copied

    folder = tmp_path_factory.mktemp("language")
    place = folder / "a user's checkpoint"
    MambaForCausalLM(MambaConfig(vocab_size=20, hidden_size=32, num_hidden_layers=3)).save_pretrained(place)
    inner = Tokenizer(models.WordLevel({token: i for i, token in enumerate("u0123456789")}, unk_token="u"))
    PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="u").save_pretrained(place)
    project = copied(root, folder / "it's a clone")
    project.config = project.config | {
        "architectures": ["lstm"],
        "extras": ["language"],
        "language": {"cells": {name: ["parity"] for name in MODELS} | {"mini-gpt-neox": []}, "seeds": 1},
        "tuning": {"steps": 10, "warmup": 2, "evaluate_every": 5},
    }
    config = project.config
    config["language_models"]["mine"] = {"family": "mamba", "learning_rate": 1e-3, "place": str(place)}
    project.config = config
    done = project.snakemake("--quiet", "rules", HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stdout
    return project


def table(project: Project, name: str) -> pd.DataFrame:
    return pd.read_parquet(project.work / f"results/smoke/tables/{name}/table.parquet")


def test_both_are_tuned_measured_and_shown(ran):
    for name in ("drops", "probes", "behaviour", "training"):
        assert set(MODELS) <= set(table(ran, name)["architecture"]), name
    assert set(table(ran, "minis")["model"]) == {"mini-mamba"}
    found = table(ran, "drops")
    assert set(found["family"]) == {"mamba"}
    blocks = found[found["metric"] == "drop"].groupby("architecture")["site"].max()
    assert blocks["mine"] == 3 and blocks["mini-mamba"] == 4
    page = (ran.work / "results/smoke/report/index.html").read_text()
    assert "mini Mamba" in page and "A12" in page


def test_a_checkpoint_lies_in_resources_with_its_manifest_and_nothing_is_to_do(ran):
    manifest = json.loads((ran.work / "resources/mine/manifest.json").read_text())
    assert manifest["rule"] == "fetch" and "weights" in manifest["outputs"]
    assert ran.planned() == set()


def test_another_recipe_of_tuning_tunes_again_and_trains_no_mini(ran):
    config = ran.config
    config["tuning"]["batch"] = 8
    (ran.root / "other.yaml").write_text(yaml.safe_dump({"tuning": {"batch": 8}}))
    made = {folder.removeprefix("results/smoke/") for folder in ran.planned("--configfile", "other.yaml")}
    assert {f"encoding/models/parity/{name}/seed0" for name in MODELS} <= made
    assert not [folder for folder in made if folder.startswith(("language/", "corpora/")) or "/lstm/" in folder]
