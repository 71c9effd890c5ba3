"""A checkpoint comes from a directory or from a pinned revision on the hub; what cannot be used is refused."""

import json
import os
import subprocess
import sys

import hub_server
import pytest
import tiny_models
import torch
from tiny_models import tokens

from stateatlas import adapters, canonical, pretrained
from stateatlas.job import InputError

REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def gpt2(tmp_path):
    return tiny_models.save("gpt2", tmp_path / "gpt2")[1]


def configure(folder, **changes):
    """Change fields of a config; None takes a field out."""
    file = folder / "config.json"
    fields = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in fields.items() if value is not None}))


def original(name, folder, config):
    """Write a model as `mamba_ssm` does, and return what `transformers` computes with its weights."""
    hub = tiny_models.make(name)
    folder.mkdir()
    weights = {key.replace("embeddings.", "embedding."): tensor for key, tensor in hub.state_dict().items()}
    torch.save(weights, folder / "pytorch_model.bin")
    whole = {"d_model": 16, "n_layer": 3, "vocab_size": 19, "pad_vocab_size_multiple": 8, "rms_norm": True,
             "residual_in_fp32": True, "fused_add_norm": True} | config  # fmt: skip
    (folder / "config.json").write_text(json.dumps(whole))
    return hub


OTHER_SIZES = {"d_state": 5, "d_conv": 3, "expand": 3, "dt_rank": 4, "bias": True, "conv_bias": False}
GROUPED = {"layer": "Mamba2", "d_state": 6, "headdim": 4, "ngroups": 2, "d_conv": 3, "bias": True, "conv_bias": False,
           "dt_limit": [0.3, 0.9], "chunk_size": 8}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("mamba", {"ssm_cfg": {}}),
        ("mamba other sizes", {"ssm_cfg": OTHER_SIZES}),
        ("mamba2", {"ssm_cfg": {"layer": "Mamba2", "d_state": 6, "headdim": 8}, "attn_layer_idx": [], "attn_cfg": {},
                    "d_intermediate": 0, "tie_embeddings": True}),
        ("mamba2 grouped", {"ssm_cfg": GROUPED, "tie_embeddings": False}),
        ("mamba2 as published", {"d_model": 32, "d_intermediate": 0, "pad_vocab_size_multiple": 16,
                                 "ssm_cfg": {"layer": "Mamba2"}, "attn_layer_idx": [], "attn_cfg": {}}),
    ],
)  # fmt: skip
@torch.no_grad()
def test_the_format_of_mamba_ssm_holds_the_same_model(tmp_path, name, config):
    hub = original(name, tmp_path / "original", config)
    model = adapters.load(tmp_path / "original")
    torch.testing.assert_close(model(tokens()), hub(tokens(), use_cache=False).logits, rtol=0, atol=1e-5)
    model.hub.save_pretrained(tmp_path / "converted")
    assert torch.equal(adapters.load(tmp_path / "converted")(tokens()), model(tokens()))
    tied = model.hub.lm_head.weight is model.hub.get_input_embeddings().weight
    assert tied == config.get("tie_embeddings", True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ssm_cfg": {"layer": "Mamba3"}}, r"config\.json: ssm_cfg\.layer 'Mamba3' is not supported; choose"),
        ({"ssm_cfg": {"layer": "Mamba2", "norm_before_gate": True}}, r"ssm_cfg\.norm_before_gate True is not"),
        ({"ssm_cfg": {"layer": "Mamba2", "rmsnorm": False}}, r"ssm_cfg\.rmsnorm False is not supported"),
        ({"ssm_cfg": {"gate": 1}}, r"ssm_cfg\.gate 1 is not known"),
        ({"rms_norm": False}, r"rms_norm False is not supported"),
        ({"attn_layer_idx": [1]}, r"attn_layer_idx \[1\] is not supported"),
        ({"d_intermediate": 64}, r"d_intermediate 64 is not supported"),
        ({"n_layer": None}, r"n_layer None is no number"),
        ({"n_layer": 2}, r"too many weights for its config\.json: backbone\.layers\.2"),
        ({"n_layer": 4}, r"has no backbone\.layers\.3"),
        ({"vocab_size": 30}, r"vocab_size 30, padded to 32, does not fit the 24 rows of"),
    ],
)  # fmt: skip
def test_what_an_original_checkpoint_cannot_be_is_refused(tmp_path, change, message):
    original("mamba", tmp_path / "original", {})
    configure(tmp_path / "original", **change)
    with pytest.raises(InputError, match=message):
        adapters.load(tmp_path / "original")


class Code:
    def __reduce__(self):
        return os.system, ("touch was-run",)


def test_a_pickle_with_code_in_it_is_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    original("mamba", tmp_path / "original", {})
    torch.save({"backbone.embedding.weight": Code()}, tmp_path / "original" / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"pytorch_model\.bin holds more than tensors or is damaged"):
        adapters.load(tmp_path / "original")
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bert"}, r"config\.json: model_type 'bert' has no adapter; choose a model of gpt2, gpt_neox"),
        ({"model_type": None}, r"config\.json: model_type None has no adapter"),
        ({"n_layer": 2}, r"too many weights for its config\.json: transformer\.h\.2"),
        ({"n_layer": 4}, r"has no transformer\.h\.3\..* and \d+ more"),
        ({"vocab_size": 9}, r"does not have the shape .* transformer\.wte\.weight"),
        ({"n_layer": "three"}, r"config\.json: .*n_layer"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(gpt2, change, message):
    configure(gpt2, **change)
    with pytest.raises(InputError, match=message):
        adapters.load(gpt2)


def test_another_activation_is_refused(tmp_path):
    _, folder = tiny_models.save("mamba", tmp_path / "mamba")
    configure(folder, hidden_act="gelu")
    with pytest.raises(
        InputError, match=r"^\S*config\.json: hidden_act 'gelu' is not supported; .* 'silu' or 'swish'$"
    ):
        adapters.load(folder)


def test_pickled_weights_alone_are_refused(gpt2):
    torch.save({}, gpt2 / "pytorch_model.bin")
    (gpt2 / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"no model\.safetensors, and pickled weights are not loaded; choose"):
        adapters.load(gpt2)


def test_damaged_files_are_refused(gpt2):
    (gpt2 / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match="the weights cannot be read"):
        adapters.load(gpt2)
    (gpt2 / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config\.json is not JSON"):
        adapters.load(gpt2)
    (gpt2 / "config.json").unlink()
    with pytest.raises(InputError, match=r"no config\.json"):
        adapters.load(gpt2)


@torch.no_grad()
def test_half_precision_and_several_files_are_read_as_float32(tmp_path):
    hub = tiny_models.make("llama").half()
    hub.save_pretrained(tmp_path, max_shard_size="4KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    model = adapters.load(tmp_path)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    theirs = type(hub).from_pretrained(tmp_path, dtype=torch.float32)
    torch.testing.assert_close(model(tokens()), theirs(tokens()).logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("place", "revision", "message"),
    [
        ("no/such/directory", None, "no such directory; give a directory or a hub id"),
        ("EleutherAI/pythia-160m", None, "needs a revision of 40 hex digits, not None"),
        ("EleutherAI/pythia-160m", "main", "needs a revision of 40 hex digits, not 'main'"),
    ],
)
def test_a_hub_id_without_a_commit_is_refused(place, revision, message):
    with pytest.raises(InputError, match=message):
        adapters.load(place, revision)


def test_a_directory_has_no_revision(gpt2):
    with pytest.raises(InputError, match=f"leave out revision '{REVISION}'"):
        adapters.load(gpt2, REVISION)


def test_a_checkpoint_without_a_tokenizer_says_so(gpt2):
    with pytest.raises(InputError, match=r"no tokenizer that can be read .*; put the model's tokenizer\.json there"):
        pretrained.tokenizer(gpt2)


def python(program, home, **environment):
    """Run a program in a process of its own, whose hub and cache are those given."""
    command = [sys.executable, "-c", f"from stateatlas import pretrained\n{program}"]
    base = {key: value for key, value in os.environ.items() if not key.startswith("HF_") and "proxy" not in key.lower()}
    path = str(canonical.PACKAGE.parent)
    environment = base | {"HF_HOME": str(home), "PYTHONPATH": path, "HF_HUB_DISABLE_TELEMETRY": "1"} | environment
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_download_is_pinned_checked_and_without_pickles(gpt2, tmp_path):
    for name in ("pytorch_model.bin", "modeling.py", "onnx/model.json"):
        (gpt2 / name).parent.mkdir(exist_ok=True)
        (gpt2 / name).write_text("not wanted")
    program = f"from pathlib import Path\nprint(pretrained.download('me/gpt2', '{REVISION}', Path('{tmp_path}/got')))"
    with hub_server.serve(gpt2, "me/gpt2", REVISION) as (address, asked):
        done = python(program, tmp_path / "home", HF_ENDPOINT=address)
    assert done.returncode == 0, done.stderr
    wanted = ["config.json", "generation_config.json", "model.safetensors"]
    assert sorted(p.name for p in (tmp_path / "got").iterdir()) == wanted
    assert eval(done.stdout) == {name: canonical.sha256_file(gpt2 / name) for name in wanted}
    assert not any("pytorch_model" in path for path in asked)
    assert torch.equal(adapters.load(tmp_path / "got")(tokens()), adapters.load(gpt2)(tokens()))


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_file_that_changed_on_its_way_is_refused(gpt2, tmp_path, file):
    program = f"from pathlib import Path\npretrained.download('me/gpt2', '{REVISION}', Path('{tmp_path}/got'))"
    with hub_server.serve(gpt2, "me/gpt2", REVISION, broken=file) as (address, _):
        done = python(program, tmp_path / "home", HF_ENDPOINT=address)
    assert f"{file} is not what the hub's checksum says; fetch it again" in done.stderr


def test_pickles_come_where_there_is_nothing_else(tmp_path):
    original("mamba", tmp_path / "original", {})
    program = f"from pathlib import Path\npretrained.download('me/mamba', '{REVISION}', Path('{tmp_path}/got'))"
    with hub_server.serve(tmp_path / "original", "me/mamba", REVISION) as (address, _):
        done = python(program, tmp_path / "home", HF_ENDPOINT=address)
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "got").iterdir()) == ["config.json", "pytorch_model.bin"]


def test_after_the_download_no_network_is_needed(gpt2, tmp_path):
    program = f"print(pretrained.local('me/gpt2', '{REVISION}'))"
    with hub_server.serve(gpt2, "me/gpt2", REVISION) as (address, _):
        first = python(program, tmp_path / "home", HF_ENDPOINT=address)
    again = python(program, tmp_path / "home", HF_ENDPOINT="http://127.0.0.1:9", HF_HUB_OFFLINE="1")
    assert first.stdout == again.stdout != "", first.stderr + again.stderr
    empty = python(program, tmp_path / "other", HF_ENDPOINT="http://127.0.0.1:9", HF_HUB_OFFLINE="1")
    assert "the hub cannot be reached (or HF_HUB_OFFLINE is set) and it is not in the cache" in empty.stderr


def test_an_unknown_revision_says_so(gpt2, tmp_path):
    with hub_server.serve(gpt2, "me/gpt2", REVISION) as (address, _):
        done = python(f"pretrained.local('me/gpt2', '{REVISION[::-1]}')", tmp_path / "home", HF_ENDPOINT=address)
    assert "check the id and the revision" in done.stderr
