"""From config.yaml to the checked settings of one scale. Every mistake is found here, before any job starts."""

import difflib
from pathlib import Path

import jsonschema
import yaml

PACKAGE = Path(__file__).parent
SCHEMA = PACKAGE.parent.parent / "rules" / "schemas" / "config.schema.yaml"
FORMS = {"stock": {"mlp_width": 0}, "nope": {"positions": False}}  # suffixes of an architecture's name


class ConfigError(Exception):
    """A mistake in the config; the message names the key, its value and the remedy."""


def resolve(config: dict, schema: Path = SCHEMA) -> dict:
    """Return the settings of `config["scale"]`: defaults, then the scale, then top-level keys.

    Raises
    ------
    ConfigError
        With one message that names file, key, value and remedy.
    """
    rules = yaml.safe_load(Path(schema).read_text())
    sizes = rules["$defs"]["sizes"]["properties"]
    overrides = {key: value for key, value in config.items() if key in sizes}
    base = {key: value for key, value in config.items() if key not in overrides}
    _unknown_keys(base, rules)
    _valid(base, rules, "")
    if config["scale"] not in config["scales"]:
        raise ConfigError(f"config.yaml: scale is {config['scale']!r}, but `scales` has no such entry; add it")
    _valid({"defaults": overrides}, {**rules, "required": []}, "top level: ")
    settings = {key: config[key] for key in ("scale", "studies", "root_seed", "backend")}
    for layer in (config["defaults"], config["scales"][config["scale"]], overrides):
        settings |= layer
    _complete(settings, sizes)
    _possible(settings)
    return settings


def per_task(setting: dict, task: str) -> int:
    """Return a per-task setting's value for `task`."""
    return setting.get(task, setting.get("default"))


def recipe(settings: dict, task: str) -> dict:
    """Return the training recipe of a task: the common one, with what the task changes."""
    return {**settings["training"], **settings["training_by_task"].get(task, {})}


def lengths(settings: dict, task: str) -> list[int]:
    """Return the evaluation lengths of a task, the training length first."""
    length = per_task(settings["train_length"], task)
    return sorted({length, *(round(length * factor) for factor in settings["length_factors"])})


def architecture(name: str) -> tuple[str, dict]:
    """Split an architecture's name into its module and what its form changes: `mamba-stock`, `transformer-nope`."""
    module, _, form = name.partition("-")
    return module, dict(FORMS[form]) if form else {}


def _unknown_keys(config: dict, rules: dict) -> None:
    known = [*rules["properties"], *rules["$defs"]["sizes"]["properties"]]
    for key in config:
        if key not in rules["properties"]:
            raise ConfigError(f"config.yaml: unknown key {key!r}{_nearest(key, known)}")


def _nearest(name: object, known: list[str]) -> str:
    match = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else f"; known are {', '.join(map(str, known))}"


def _valid(config: dict, rules: dict, where: str) -> None:
    errors = sorted(jsonschema.Draft202012Validator(rules).iter_errors(config), key=lambda e: list(map(str, e.path)))
    for error in errors:
        place = where + ".".join(map(str, error.absolute_path))
        raise ConfigError(f"config.yaml: {_explain(error, place)}")


def _explain(error: jsonschema.ValidationError, place: str) -> str:
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = list(error.schema.get("properties", {}))
        wrong = next((key for key in error.instance if key not in known), "?")
        return f"unknown key {wrong!r} under {place or 'the top level'}{_nearest(wrong, known)}"
    if error.validator == "required":
        return f"{error.message}{f' under {place}' if place else ''}; add it"
    if error.validator == "enum":
        return f"{place} is {error.instance!r}{_nearest(error.instance, error.validator_value)}"
    if error.validator == "type" and error.validator_value in ("number", "integer") and isinstance(error.instance, str):
        return f"{place} is the text {error.instance!r}, not a number; YAML reads 1e-3 as text, write 1.0e-3"
    return f"{place} is {error.instance!r}: {error.message}"


def _complete(settings: dict, sizes: dict) -> None:
    for key in sizes:
        if key not in settings:
            raise ConfigError(f"config.yaml: {key} is set neither under defaults nor for scale {settings['scale']}; add it")


def _possible(settings: dict) -> None:
    known = {kind: sorted(p.stem for p in (PACKAGE / kind).glob("[a-z]*.py")) for kind in ("tasks", "blocks")}
    known["blocks"] = [name for name in known["blocks"] if name != "step"]
    for task in settings["tasks"]:
        if task not in known["tasks"]:
            raise ConfigError(f"config.yaml: tasks has {task!r}{_nearest(task, known['tasks'])}")
        for key in ("train_length", "steps"):
            if per_task(settings[key], task) is None:
                raise ConfigError(f"config.yaml: {key} names neither {task!r} nor 'default'; add one")
        length = per_task(settings["train_length"], task)
        if length < 12:
            raise ConfigError(f"config.yaml: train_length of {task} is {length}; at least 12, or every prefix is seen")
        if recipe(settings, task)["curriculum"] > length:
            raise ConfigError(f"config.yaml: curriculum of {task} starts beyond its train_length of {length}; lower it")
    for name in settings["architectures"]:
        module, _, form = name.partition("-")
        if module not in known["blocks"] or (form and form not in FORMS):
            raise ConfigError(f"config.yaml: architectures has {name!r}{_nearest(name, known['blocks'])}")
