"""Every mistake in the config is refused before any job, with one message: file or option, field, value, remedy."""

import copy
import itertools
import math

import pytest

from stateatlas import settings, sizes

# The project's config with sizes that these tests know, and with one scale only.
REAL = settings.read(settings.SCHEMA.parents[2] / "config.yaml")
SIZES = {
    "tasks": ["parity", "s3", "dyck"],
    "architectures": ["transformer", "mamba", "lstm-stock", "transformer-nope"],
    "seeds": 2,
    "layers": 2,
    "length_factors": [1, 1.5, 2],
    "validation": 64,
    "fit": 32,
    "test": 32,
    "subspace_sizes": [1, 2, 64],
    "random_draws": 2,
    "bootstrap": 100,
    "training": {"betas": [0.9, 0.98], "warmup": 10, "curriculum": 0, "evaluate_every": 50},
}
SMOKE = {"width": 16, "train_length": {"default": 12, "s3": 14}, "steps": {"default": 100}}
MORE = {key: value for key, value in REAL["scales"]["smoke"].items() if key not in REAL["defaults"] | SIZES}
GOOD = {
    **REAL,
    "scale": "smoke",
    "backend": "torch",
    "defaults": settings.merged(REAL["defaults"], SIZES) | {"training_by_task": {"s3": {"curriculum": 2}}},
    "scales": {"smoke": MORE | SMOKE},
}
RESPONSE = {"studies": ["encoding", "response"]}
FILE = "--configfile mine.yaml"


def refusal(config, given=None) -> str:
    with pytest.raises(settings.ConfigError) as caught:
        settings.resolve(config, given)
    return str(caught.value)


def in_defaults(**values):
    return {"defaults": values}


def in_recipe(**values):
    return {"defaults": {"training": values}}


# What is laid over the good config, what the message says is wrong, and part of its remedy.
BAD = [
    # Unknown and misspelt keys: the nearest right one is named.
    ({"seed": 3}, "unknown key 'seed'", "did you mean seeds?"),
    ({"sclae": "smoke"}, "unknown key 'sclae'", "did you mean scale?"),
    ({"Seeds": 3}, "unknown key 'Seeds'", "did you mean seeds?"),
    ({"größe": 3}, "unknown key 'größe'", "known are scale, studies"),
    ({True: 3}, "unknown key True", "known are"),
    ({"learning_rate": 1.0}, "unknown key 'learning_rate'", "it belongs under training"),
    (in_defaults(tasksk=["s3"]), "unknown key 'tasksk' under defaults", "did you mean tasks?"),
    (in_defaults(scale="smoke"), "unknown key 'scale' under defaults", "known are tasks"),
    ({"scales": {"smok": {}}}, "unknown key 'smok' under scales", "did you mean smoke?"),
    ({"scales": {"paper": {"widht": 16}}}, "unknown key 'widht' under scales.paper", "did you mean width?"),
    (in_recipe(learnign_rate=1.0), "'learnign_rate' under defaults.training", "did you mean learning_rate?"),
    (in_recipe(steps=10), "unknown key 'steps' under defaults.training", "at the top level"),
    ({"training": {"beta": [0.9, 0.9]}}, "unknown key 'beta' under training", "did you mean betas?"),
    (
        in_defaults(training_by_task={"s3": {"warmpu": 3}}),
        "unknown key 'warmpu' under defaults.training_by_task.s3",
        "did you mean warmup?",
    ),
    # Names without a file.
    ({"scale": "smoek"}, "scale is 'smoek'", "did you mean smoke?"),
    ({"scale": "paper"}, "scale is 'paper'", "add scales.paper"),
    ({"studies": ["sink"]}, "studies is ['sink']", "encoding must be one of them"),
    ({"studies": ["encoding", "sink"], "sink": {"models": ["mini-mambo"]}}, "sink.models", "did you mean mini-mamba"),
    ({"studies": ["encoding", "sink"], "sink": {"models": ["mini-gpt2"]}}, "sink.models", "no units of gpt2"),
    ({"studies": ["encoding", "sink"], "sink": {"corpora": ["cod"]}}, "sink.corpora", "did you mean code?"),
    ({**RESPONSE, "response": {"models": ["mini-gpt3"]}}, "response.models", "did you mean mini-gpt2"),
    (
        {**RESPONSE, "response": {"models": ["mini-gpt2"], "transfers": [["mini-gpt2", "mini-gpt2-large"]]}},
        "response.transfers.0",
        "one of response.models",
    ),
    (
        {**RESPONSE, "response": {"models": ["mini-gpt2", "mini-mamba"], "transfers": [["mini-gpt2", "mini-mamba"]]}},
        "response.transfers.0",
        "both must be of one family",
    ),
    ({**RESPONSE, "response": {"transfers": [["mini-gpt2", "mini-gpt2-large"]] * 2}}, "transfers.1", "predicted twice"),
    ({**RESPONSE, "response": {"anchors": [0, 30]}}, "response.anchors is [0, 30]", "at most response.length"),
    ({"studies": ["encoding", "sink"], "sink": {"observed": 8, "groups": 9}}, "sink.observed is 8", "raise it"),
    (
        {"corpora": {"mine": {"source": "text", "name": "a/b"}}},
        "corpora.mine is {'source': 'text'",
        "revision is missing: name a data set and its commit, or files",
    ),
    ({"corpora": {"mine": {"source": "text", "revision": "main"}}}, "corpora.mine.revision is 'main'", "{40}"),
    ({"studies": ["decoding"]}, "studies.0 is 'decoding'", "did you mean encoding?"),
    ({"backend": "cuda"}, "backend is 'cuda'", "known are auto, compiled, torch, mamba_ssm"),
    (in_defaults(tasks=["parity", "dick"]), "defaults.tasks is ['parity', 'dick']", "no task dick: did you mean dyck?"),
    ({"tasks": ["pärität"]}, "tasks is ['pärität']", "no task pärität: did you mean parity?"),
    ({"tasks": ["__init__"]}, "tasks is ['__init__']", "no task __init__"),
    ({"train_length": {"parit": 14}}, "train_length.parit is 14", "no task parit: did you mean parity?"),
    ({"steps": {"dycks": 300}}, "steps.dycks is 300", "did you mean dyck?"),
    (in_defaults(training_by_task={"s4": {"clip": 2}}), "defaults.training_by_task.s4 is {'clip': 2", "no task s4"),
    (in_defaults(training_by_task={"default": {}}), "defaults.training_by_task.default", "no task default"),
    ({"architectures": ["mambo"]}, "architectures is ['mambo']", "did you mean mamba?"),
    ({"architectures": ["step"]}, "architectures is ['step']", "no architecture step"),
    ({"architectures": ["norm"]}, "architectures is ['norm']", "no architecture norm"),
    ({"architectures": ["mamba-stok"]}, "architectures is ['mamba-stok']", "did you mean mamba-stock?"),
    ({"architectures": ["mamba-"]}, "architectures is ['mamba-']", "no architecture mamba-"),
    ({"architectures": ["gru-stock-nope"]}, "architectures is ['gru-stock-nope']", "gru has no positions"),
    ({"architectures": ["lstm-noconv"]}, "architectures is ['lstm-noconv']", "has no convolution that lstm-noconv"),
    ({"architectures": ["lstm-std"]}, "architectures is ['lstm-std']", "no architecture lstm-std"),
    ({"tasks": ["dyck-party"]}, "tasks is ['dyck-party']", "no task dyck-party: did you mean dyck-parity?"),
    ({"extras": ["recipe"]}, "extras.0 is 'recipe'", "did you mean recipes?"),
    ({"held_out": {"tasks": ["mod4"]}}, "held_out.tasks is ['mod4']", "no task mod4: did you mean mod3?"),
    ({"attribution": {"architectures": ["manba"]}}, "attribution.architectures is ['manba']", "did you mean mamba?"),
    ({"recipes": {"embedding_std": [0]}}, "recipes.embedding_std.0 is 0", "more than 0"),
    ({"architectures": ["mamba-nope"]}, "architectures is ['mamba-nope']", "write mamba"),
    ({"architectures": ["transformer-stock"]}, "architectures is ['transformer-stock']", "write transformer"),
    # Wrong types.
    (in_recipe(learning_rate="1e-3"), "defaults.training.learning_rate is '1e-3'", "1.0e-3 for 1e-3"),
    (in_defaults(length_factors=[1, "2e0"]), "defaults.length_factors.1 is '2e0'", "text: write it without quotes"),
    ({"seeds": "3"}, "seeds is '3'", "write it without quotes"),
    ({"seeds": "three"}, "seeds is 'three'", "a whole number is needed"),
    ({"seeds": True}, "seeds is True", "a whole number is needed"),
    ({"seeds": 2.0}, "seeds is 2.0", "without a point"),
    ({"seeds": [3]}, "seeds is [3]", "a whole number is needed"),
    ({"seeds": None}, "seeds is None", "it is empty: a whole number is needed"),
    ({"gpu": 1}, "gpu is 1", "true or false is needed"),
    ({"gpu": "yes"}, "gpu is 'yes'", "true or false is needed"),
    ({"tasks": "parity"}, "tasks is 'parity'", "a list such as [a, b]"),
    ({"tasks": [1]}, "tasks.0 is 1", "text is needed"),
    ({"scale": ["smoke"]}, "scale is ['smoke']", "text is needed"),
    ({"scale": None}, "scale is None", "it is empty"),
    ({"defaults": None}, "defaults is None", "it is empty: keys with values are needed"),
    ({"scales": {"smoke": None}}, "scales.smoke is None", "it is empty: keys with values are needed"),
    ({"scales": ["smoke"]}, "scales is ['smoke']", "keys with values are needed"),
    ({"steps": 100}, "steps is 100", "keys with values are needed"),
    ({"steps": {"default": "100"}}, "steps.default is '100'", "write it without quotes"),
    ({"training": [1]}, "training is [1]", "keys with values are needed"),
    (in_recipe(betas=0.9), "defaults.training.betas is 0.9", "a list such as"),
    (in_recipe(warmup=True), "defaults.training.warmup is True", "a whole number is needed"),
    (in_recipe(batch=1.5), "defaults.training.batch is 1.5", "without a point"),
    # Out of bounds.
    ({"root_seed": -1}, "root_seed is -1", "at least 0"),
    (in_recipe(learning_rate=math.nan), "defaults.training.learning_rate is nan", "a finite number"),
    (in_recipe(clip=math.inf), "defaults.training.clip is inf", "a finite number"),
    ({"length_factors": [1, -math.inf]}, "length_factors.1 is -inf", "a finite number"),
    ({"seeds": 0}, "seeds is 0", "at least 1"),
    ({"seeds": -3}, "seeds is -3", "at least 1"),
    ({"seeds": 100000}, "seeds is 100000", "at most 1000"),
    ({"tasks": []}, "tasks is []", "at least 1"),
    ({"architectures": []}, "architectures is []", "at least 1"),
    ({"studies": []}, "studies is []", "at least 1"),
    ({"length_factors": []}, "length_factors is []", "at least 1"),
    ({"length_factors": [0.5]}, "length_factors.0 is 0.5", "at least 1"),
    ({"width": 24}, "width is 24", "a multiple of 16"),
    ({"width": 0}, "width is 0", "at least 16"),
    ({"layers": 0}, "layers is 0", "at least 1"),
    ({"bootstrap": 10}, "bootstrap is 10", "at least 100"),
    ({"threads": 0}, "threads is 0", "at least 1"),
    ({"test": 0}, "test is 0", "at least 16"),
    (in_recipe(learning_rate=0), "defaults.training.learning_rate is 0", "more than 0"),
    (in_recipe(betas=[0.9, 1.0]), "defaults.training.betas.1 is 1.0", "less than 1"),
    (in_recipe(betas=[0.9]), "defaults.training.betas is [0.9]", "at least 2"),
    (in_recipe(betas=[0.9, 0.9, 0.9]), "defaults.training.betas is [0.9, 0.9, 0.9]", "at most 2"),
    # The same twice.
    ({"tasks": ["s3", "parity", "s3"]}, "tasks is ['s3', 'parity', 's3']", "'s3' stands twice"),
    ({"architectures": ["gru", "gru"]}, "architectures is ['gru', 'gru']", "'gru' stands twice"),
    ({"subspace_sizes": [1, 2, 1]}, "subspace_sizes is [1, 2, 1]", "1 stands twice"),
    ({"length_factors": [1, 1.0]}, "length_factors is [1, 1.0]", "stands twice"),
    ({"length_factors": [1, 1.01]}, "length_factors is [1.0, 1.01]", "the same length"),
    # What does not fit together.
    ({"train_length": {"parity": 11}}, "train_length.parity is 11", "parity needs at least 12 tokens"),
    ({"scales": {"smoke": {"train_length": {"default": 2}}}}, "scales.smoke.train_length.default is 2", "at least 12"),
    ({"test": 2000}, "test is 2000", "parity at length 12 has room for 2048"),
    ({"validation": 2020}, "validation is 2020", "lower them or raise train_length"),
    ({"length_factors": [1, 22]}, "length_factors is [1.0, 22.0]", "transformer has 256 positions"),
    ({"train_length": {"s3": 129}}, "length_factors is [1.0, 1.5, 2.0]", "s3 would be 258 tokens long"),
    ({"subspace_sizes": [9, 64]}, "subspace_sizes is [9, 64]", "at most half the width, 8"),
    ({"layers": 17}, "layers is 17", "at most the width, 16"),
    (in_recipe(evaluate_every=101), "defaults.training.evaluate_every is 101", "at most the steps of parity, 100"),
    (in_recipe(warmup=200), "defaults.training.warmup is 200", "at most the steps of parity, 100"),
    ({"steps": {"dyck": 9}}, "defaults.training.evaluate_every is 50", "at most the steps of dyck, 9"),
    (in_recipe(curriculum=13), "defaults.training.curriculum is 13", "at most the train_length of parity, 12"),
    (
        {"training_by_task": {"s3": {"curriculum": 15}}},
        "training_by_task.s3.curriculum is 15",
        "at most the train_length of s3, 14",
    ),
]


@pytest.mark.parametrize(("over", "wrong", "remedy"), BAD, ids=lambda part: str(part)[:60])
def test_a_bad_config_is_refused_in_one_message(over, wrong, remedy):
    message = refusal(settings.merged(GOOD, over), {FILE: over})
    source, told = message.split(": ", 1)
    assert source == FILE or "length_factors" in wrong or "evaluate_every" in wrong
    assert wrong in told and remedy in told.split("; ", 1)[1]
    assert "\n" not in message and len(message) < 400


def test_there_are_sixty_bad_configs_and_more():
    assert len(BAD) > 60


def test_the_good_config_is_good():
    assert settings.resolve(GOOD)["width"] == 16


@pytest.mark.parametrize("key", [*GOOD, *(f"defaults.{key}" for key in GOOD["defaults"]), "scales.smoke.steps"])
def test_a_missing_key_is_named(key):
    config = copy.deepcopy(GOOD)
    *above, last = key.split(".")
    part = config
    for name in above:
        part = part[name]
    del part[last]
    assert refusal(config).startswith(f"config.yaml: {last} is not set")


def test_a_missing_part_of_the_recipe_is_named():
    config = copy.deepcopy(GOOD)
    del config["defaults"]["training"]["betas"]
    assert "training.betas is not set; add it under defaults or scales.smoke" in refusal(config)


def test_a_task_without_a_length_is_named():
    config = copy.deepcopy(GOOD)
    config["scales"]["smoke"]["train_length"] = {"s3": 14, "dyck": 12}
    assert "scales.smoke.train_length is" in (message := refusal(config))
    assert "neither parity nor default" in message


def test_the_message_says_where_a_value_comes_from():
    file, line = {"seeds": 0, "width": 16}, {"seeds": -1}
    layers = {"--configfile a.yaml": file, "--config": line}
    assert refusal(settings.merged(GOOD, file, line), layers).startswith("--config: seeds is -1")
    assert refusal(settings.merged(GOOD, file), {"--configfile a.yaml": file}).startswith("--configfile a.yaml: seeds")
    assert refusal(settings.merged(GOOD, file)).startswith("config.yaml: seeds")


def test_true_and_false_have_a_capital_on_the_command_line():
    over = {"gpu": "false"}
    assert "gpu is 'false'; True or False is needed" in refusal(settings.merged(GOOD, over), {"--config": over})


def test_numbers_inside_braces_on_the_command_line_are_refused_with_a_way_out():
    over = {"steps": {"default": "60"}}
    message = refusal(settings.merged(GOOD, over), {"--config": over})
    assert message.startswith("--config: steps.default is '60'") and "--configfile" in message


def test_scales_and_top_level_keys_are_laid_over_the_defaults(root):
    config = settings.merged(GOOD, {"training": {"batch": 4}, "scales": {"smoke": {"training": {"clip": 2}}}})
    recipe = settings.resolve(config)["training"]
    assert (recipe["batch"], recipe["clip"], recipe["betas"]) == (4, 2.0, [0.9, 0.98])


def test_a_number_is_one_setting_however_it_is_written():
    whole, point = (settings.resolve(settings.merged(GOOD, in_recipe(clip=clip))) for clip in (1, 1.0))
    assert whole == point and type(whole["training"]["clip"]) is type(point["training"]["clip"]) is float


def test_every_scale_of_the_config_is_possible(root):
    config = settings.read(root / "config.yaml")
    for scale in config["scales"]:
        resolved = settings.resolve(config | {"scale": scale})
        assert resolved["scale"] == scale and resolved["seeds"] >= 1
    assert set(config["scales"]) == {"smoke", "laptop", "workstation", "paper"}


def test_every_form_of_an_architecture_is_split_into_module_and_change():
    assert sizes.architecture("mamba") == ("mamba", {})
    assert sizes.architecture("mamba-stock") == ("mamba", {"mlp_width": 0})
    assert sizes.architecture("transformer-nope") == ("transformer", {"positions": False})
    assert sizes.architecture("mamba-noconv-std0.02-lr2") == ("mamba", {"conv": False})
    assert sizes.recipe_changes("mamba-noconv-std0.02-lr2") == {"embedding_std": 0.02, "learning_rate": 2.0}
    assert sizes.varied("lstm", 0.02, 2) == "lstm-std0.02-lr2" and sizes.varied("lstm", None, 1) == "lstm"
    assert sizes.task_parts("dyck-parity") == ("dyck", "parity") and sizes.task_parts("s3") == ("s3", "")


def test_lengths_hold_the_training_length_whatever_the_factors_are():
    for length, factors in itertools.product((12, 15, 40), ([1], [2], [1.5, 3])):
        found = sizes.lengths({"train_length": {"default": length}, "length_factors": factors}, "parity")
        assert length in found and found == sorted(set(found))
