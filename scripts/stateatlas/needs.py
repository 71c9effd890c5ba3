"""What each rule needs from the settings, and what it loads by name: the fields of its cfg."""

import platform
from collections.abc import Callable
from pathlib import Path

from stateatlas import experiments
from stateatlas.canonical import PACKAGE, sha256_file
from stateatlas.literals import literal
from stateatlas.sizes import architecture, lengths, per_task, recipe, task_parts

Wildcards = dict[str, str]
Settings = dict


def keys(*keys: str) -> Callable[[Settings, Wildcards], dict]:
    return lambda s, w: {key: s[key] for key in keys}


def _strings(w: Wildcards) -> dict:
    """Tasks that differ in the target alone share their strings, so random streams go by the strings."""
    return dict(zip(("strings", "target"), task_parts(w["task"]), strict=True))


def sample(s: Settings, w: Wildcards) -> dict:
    # The paper's own tasks have pairs in any case, so that their sequences are the same without patching.
    patched = {*s["tasks"], *(cell["task"] for cell in experiments.cells(s, "patch"))}
    sizes = {
        "train_length": per_task(s["train_length"], w["task"]),
        "lengths": lengths(s, w["task"]),
        "pairs": s["test"] if w["task"] in patched else 0,
    }
    return _strings(w) | sizes | keys("root_seed", "validation", "fit", "test")(s, w)


def language_model(s: Settings, w: Wildcards) -> dict | None:
    """The language model that a cell is tuned from; None for a formal model."""
    return s["language_models"].get(w["architecture"])


def backbone(s: Settings, w: Wildcards) -> dict:
    """What a cell's model is made of: its block, or the family of its language model."""
    model = language_model(s, w)
    return {"family": model["family"]} if model else {"block": architecture(w["architecture"])[0]}


def _trained(s: Settings, w: Wildcards) -> dict:
    return _strings(w) | backbone(s, w) | {"train_length": per_task(s["train_length"], w["task"])}


def train(s: Settings, w: Wildcards) -> dict:
    own = {
        "form": architecture(w["architecture"])[1],
        "recipe": {**recipe(s, w["task"], w["architecture"]), "steps": per_task(s["steps"], w["task"])},
        "to_cap": int(w["seed"]) < s["capped_seeds"] and experiments.of_paper(s, w),
    }
    return _trained(s, w) | own | keys("root_seed", "width", "layers")(s, w)


def finetune(s: Settings, w: Wildcards) -> dict:
    chosen = {**s["training"], **s["tuning"], "learning_rate": language_model(s, w)["learning_rate"]}
    return _trained(s, w) | {"recipe": chosen, "to_cap": False} | keys("root_seed")(s, w)


def pretrain(s: Settings, w: Wildcards) -> dict:
    model = s["language_models"][w["model"]]
    chosen = s["pretraining"]
    own = {key: model["mini"][key] for key in ("steps", "learning_rate") if key in model["mini"]}
    size = {key: value for key, value in model["mini"].items() if key not in own}
    own["steps"] = min(chosen["steps"], own.get("steps", chosen["steps"]))
    return {
        "name": w["model"],
        "seed": 0,
        "mini": size | {"family": model["family"], "vocabulary": chosen["vocabulary"]},
        "recipe": {key: value for key, value in chosen.items() if key not in ("vocabulary", "held_out")} | own,
        "held_out": chosen["held_out"],
    } | keys("root_seed")(s, w)


def record(s: Settings, w: Wildcards) -> dict:
    own = {"train_length": per_task(s["train_length"], w["task"]), "lengths": lengths(s, w["task"])}
    return backbone(s, w) | own | keys("root_seed", "bootstrap")(s, w)


def ablate(s: Settings, w: Wildcards) -> dict:
    largest = None if language_model(s, w) else s["width"] / 2  # a language model's width is known when it is there
    sizes = [k for k in s["subspace_sizes"] if largest is None or k <= largest]
    return record(s, w) | {"subspace_sizes": sizes, "random_draws": s["random_draws"]}


def edit(s: Settings, w: Wildcards) -> dict:
    length = {"train_length": per_task(s["train_length"], w["task"])}
    return backbone(s, w) | length | keys("root_seed", "bootstrap")(s, w)


def probe(s: Settings, w: Wildcards) -> dict:
    return {"train_length": per_task(s["train_length"], w["task"])} | keys("root_seed", "bootstrap")(s, w)


def fetch(s: Settings, w: Wildcards) -> dict:
    """What a checkpoint is fetched by; of a directory also what lies in it."""
    chosen = s["language_models"][w["model"]]
    files = [path for path in sorted(Path(chosen["place"]).glob("*")) if path.is_file()]
    found = {path.name: sha256_file(path) for path in files}
    return {"place": chosen["place"], "revision": chosen.get("revision"), "files": found}


def family(s: Settings, name: str) -> str:
    return s["language_models"][name.removesuffix(experiments.TAUGHT)]["family"]


def teach(s: Settings, w: Wildcards) -> dict:
    return {"family": family(s, w["model"]), "teaching": s["sink"]["teaching"]} | keys("root_seed")(s, w)


def observe(s: Settings, w: Wildcards) -> dict:
    """What the units of a language model are observed with."""
    chosen = {key: s["sink"][key] for key in ("observed", "groups", "context")}
    return chosen | {"family": family(s, w["model"])} | keys("root_seed")(s, w)


def find_sets(s: Settings, w: Wildcards) -> dict:
    families = {name: family(s, name) for name in experiments.observed(s, w["corpus"])}
    return {"models": families} | keys("root_seed", "bootstrap")(s, w)


def find_needles(s: Settings, w: Wildcards) -> dict:
    chosen = {key: value for key, value in s["sink"]["needles"].items() if key not in ("models", "essay")}
    essay = s["sink"]["needles"]["essay"]
    state = "taught" if w["model"] in experiments.all_minis(s) else "trained"
    own = {"family": family(s, w["model"]), "state": state, "essay": essay}
    own["essay_hash"] = sha256_file(Path(essay)) if essay else ""
    return {"needles": chosen} | own | keys("root_seed", "bootstrap")(s, w)


def intervene(s: Settings, w: Wildcards) -> dict:
    chosen = {key: s["sink"][key] for key in ("boundaries", "controlled", "windows", "context", "draws")}
    return chosen | {"family": family(s, w["model"])} | keys("root_seed", "bootstrap")(s, w)


_RESPONSE = ("eps", "directions", "places", "pairs", "slices", "scales", "draws")


def respond(s: Settings, w: Wildcards) -> dict:
    return prompted(s, w) | {key: s["response"][key] for key in _RESPONSE}


def invert(s: Settings, w: Wildcards) -> dict:
    return prompted(s, w) | {"front": s["response"]["front"]}


def transfer(s: Settings, w: Wildcards) -> dict:
    return prompted(s, w) | {
        "anchors": s["response"]["anchors"],
        "small": experiments.transferred(s)[w["model"]],
    }


def prompted(s: Settings, w: Wildcards) -> dict:
    """A language model with its prompts: of a mini how many there are and how long they are."""
    keyed = ("prompts", "length") if w["model"] in experiments.all_minis(s) else ()
    own = {key: s["response"][key] for key in keyed}
    return own | {"family": family(s, w["model"])} | keys("root_seed", "bootstrap")(s, w)


def adapter(s: Settings, w: Wildcards) -> list[str]:
    """The module of a language model's family."""
    return [f"adapters/{family(s, w['model'])}.py"]


def units(s: Settings, w: Wildcards) -> list[str]:
    """The modules of a family's units."""
    name = family(s, w["model"])
    return [f"adapters/{name}.py", f"units/{name}.py"]


def code(s: Settings, w: Wildcards) -> list[str]:
    """The modules of a cell's model that are loaded by name."""
    made_of = backbone(s, w)
    if "family" in made_of:
        return ["finetuned.py", f"adapters/{made_of['family']}.py"]
    return [f"blocks/{made_of['block']}.py"]


def task_file(w: Wildcards) -> str:
    return f"tasks/{task_parts(w['task'])[0]}.py"


def reads(w: Wildcards) -> str | None:
    """Return the name of the corpus that a task reads, if any."""
    return literal(PACKAGE / task_file(w), "reads")


def corpus(s: Settings, w: Wildcards) -> dict:
    chosen = s["corpora"][w["corpus"]]
    own = {"interpreter": platform.python_version()} if literal(source(s, w), "of_interpreter") else {}
    return {"options": chosen, "files": [sha256_file(Path(file)) for file in chosen.get("files", ())]} | own


def source(s: Settings, w: Wildcards) -> Path:
    return PACKAGE / "corpora" / f"{s['corpora'][w['corpus']]['source']}.py"


def derive(s: Settings, w: Wildcards) -> dict:
    if w["table"] == "recipes":
        return keys("recipes", "training")(s, w)
    return {"of_corpora": [task for task in experiments.tasks(s) if reads({"task": task})]}


def shown(s: Settings, w: Wildcards) -> dict:
    """What figures and the page say about the run; where its jobs run is no part of it."""
    return {"settings": {key: value for key, value in s.items() if key != "container"}}
