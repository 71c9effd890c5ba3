"""From config.yaml to the checked settings of one scale. Every mistake is found here, before any job starts."""

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import jsonschema
import yaml

from stateatlas.possible import nearest, problems

SCHEMA = Path(__file__).parents[2] / "rules" / "schemas" / "config.schema.yaml"
KINDS = {
    "array": "a list such as [a, b] is needed",
    "object": "keys with values are needed",
    "integer": "a whole number is needed",
    "number": "a number is needed",
    "boolean": "true or false is needed",
    "string": "text is needed",
}
LIMITS = {
    "pattern": "it has to match {}",
    "minimum": "at least {} is needed",
    "maximum": "at most {} is possible",
    "exclusiveMinimum": "more than {} is needed",
    "exclusiveMaximum": "less than {} is needed",
    "multipleOf": "a multiple of {} is needed",
    "minItems": "at least {} of them needed",
    "maxItems": "at most {} of them possible",
}


class ConfigError(Exception):
    """A mistake in the config; the message names file or option, key, value and remedy."""


def read(path: Path) -> dict:
    """Return the content of a config file.

    Raises
    ------
    ConfigError
        If it cannot be read, is not YAML or does not hold keys; the message names file and line.
    """
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); put it back") from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: not YAML ({getattr(error, 'problem', None) or error}); mend it") from None
    if not isinstance(content, dict):
        what = "it is empty" if content is None else "it holds no keys"
        raise ConfigError(f"{path}: {what}; write lines of `key: value`")
    return content


class _Loader(yaml.SafeLoader):
    """YAML that refuses a key that stands twice, where PyYAML silently takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = []
        for inner, _ in node.value:
            key = inner.value if inner.tag.endswith(":merge") else self.construct_object(inner, deep=True)
            if key in keys:
                raise yaml.MarkedYAMLError(problem=f"the key {key} stands twice", problem_mark=inner.start_mark)
            keys.append(key)
        return super().construct_mapping(node, deep)


def merged(*layers: Mapping) -> dict:
    """Return dicts laid over each other, the last on top; dicts inside them too."""
    result: dict = {}
    for layer in layers:
        for key, value in layer.items():
            below = result.get(key) if isinstance(result.get(key), Mapping) else {}
            result[key] = merged(below, value) if isinstance(value, Mapping) else value
    return result


def resolve(config: dict, given: dict[str, Mapping] | None = None, schema: Path = SCHEMA) -> dict:
    """Return the settings of `config["scale"]`: defaults, then the scale, then top-level keys.

    `given` holds, by name, what was merged into config.yaml to make `config`, the last on top: messages say where
    a value comes from.

    Raises
    ------
    ConfigError
        With one message that names file or option, key, value and remedy.
    """
    return _Config(config, given or {}, read(schema)).settings()


def check_writable(folders: list[Path]) -> None:
    """Raise ConfigError if a folder cannot be written or made."""
    for folder in folders:
        place = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
        if not place.is_dir():
            raise ConfigError(f"{place} is in the way of a folder; move it")
        if not os.access(place, os.W_OK | os.X_OK):
            raise ConfigError(f"{place} cannot be written; make it writable, or work elsewhere with --directory")


class _Config:
    """A config on its way to settings; `layers` are the parts that they come from, the last on top."""

    def __init__(self, config: dict, given: dict[str, Mapping], rules: dict):
        self.config, self.given, self.rules = config, given, rules
        self.sizes, self.recipe = (rules["$defs"][name]["properties"] for name in ("sizes", "recipe"))
        self.layers: dict[str, Mapping] = {}

    def settings(self) -> dict:
        top = {key: value for key, value in self.config.items() if key in self.sizes}
        for path, value in _leaves(self.config):
            if isinstance(value, float) and not math.isfinite(value):
                raise self.wrong(path, value, "a finite number is needed")
        self.check({key: value for key, value in self.config.items() if key not in top}, self.rules)
        self.check(top, {"$ref": "#/$defs/sizes", "$defs": self.rules["$defs"]})
        scale, scales = self.config["scale"], self.config["scales"]
        if scale not in scales:
            raise self.wrong(["scale"], scale, f"there are no sizes for it: add scales.{scale}")
        self.layers = {"defaults": self.config["defaults"], f"scales.{scale}": scales[scale], "": top}
        settings = {key: self.config[key] for key in self.rules["required"] if key not in ("defaults", "scales")}
        settings |= _exact(merged(*self.layers.values()), {"$ref": "sizes"}, self.rules["$defs"])
        missing = [key for key in self.sizes if key not in settings]
        missing = missing or [f"training.{key}" for key in self.recipe if key not in settings["training"]]
        if missing:
            raise ConfigError(f"config.yaml: {missing[0]} is not set; add it under defaults or scales.{scale}")
        for path, remedy in problems(settings):
            raise self.wrong(self.origin(path), _at(settings, path), remedy)
        return settings

    def origin(self, path: list) -> list:
        """Return where the config sets the setting at `path`."""
        name = next((name for name, layer in reversed(self.layers.items()) if _holds(layer, path)), "")
        return [*filter(None, name.split(".")), *path]

    def source(self, path: list) -> str:
        """Return the file or option that sets the key at `path`."""
        return next((name for name, part in reversed(self.given.items()) if _holds(part, path)), "config.yaml")

    def wrong(self, path: list, value: object, remedy: str) -> ConfigError:
        shown = repr(value) if len(repr(value)) < 80 else f"{repr(value)[:76]}..."
        return ConfigError(f"{self.source(path)}: {_place(path)} is {shown}; {remedy}")

    def check(self, part: dict, rules: dict) -> None:
        for error in sorted(_Validator(rules).iter_errors(part), key=lambda error: [*map(str, error.absolute_path)]):
            raise self.explain(error)

    def explain(self, error: jsonschema.ValidationError) -> ConfigError:
        path, value, asked = list(error.absolute_path), error.instance, error.validator_value
        if error.validator == "additionalProperties":
            known = [*error.schema["properties"], *([] if path else self.sizes)]
            wrong = next(key for key in value if key not in known)
            where = f" under {_place(path)}" if path else ""
            source = self.source([*path, wrong])
            return ConfigError(f"{source}: unknown key {wrong!r}{where}; {self.hint(wrong, known)}")
        if error.validator == "required":
            missing = next(key for key in asked if key not in value)
            return ConfigError(f"config.yaml: {missing} is not set; add it")
        if error.validator == "uniqueItems":
            twice = next(entry for i, entry in enumerate(value) if entry in value[:i])
            return self.wrong(path, value, f"{twice!r} stands twice: take one out")
        if error.validator == "enum":
            return self.wrong(path, value, nearest(value, asked))
        if error.validator == "type":
            return self.wrong(path, value, self.kind(path, value, asked))
        return self.wrong(path, value, LIMITS[error.validator].format(asked))

    def hint(self, key: object, known: list) -> str:
        """Say where a key belongs that stands in the wrong place, or which one may be meant."""
        if key in self.recipe:
            return "it belongs under training"
        return "it belongs under defaults, a scale or at the top level" if key in self.sizes else nearest(key, known)

    def kind(self, path: list, value: object, asked: str) -> str:
        if asked in ("integer", "number") and isinstance(value, str) and _is_number(value):
            if self.source(path) == "--config" and len(path) > 1:
                return "--config takes what stands in braces or lists as text: put it in a file for --configfile"
            return "that is text: write it without quotes, and 1.0e-3 for 1e-3"
        if asked == "boolean" and self.source(path) == "--config":
            return "True or False is needed, with a capital on the command line"
        if asked == "integer" and isinstance(value, float):
            return "a whole number without a point or an exponent is needed"
        return ("it is empty: " if value is None else "") + KINDS[asked]


# 2.0 is no whole number here: `range` would not take it.
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)


def _place(path: list) -> str:
    return ".".join(map(str, path))


def _leaves(value: object, path: tuple = ()) -> Iterator[tuple[list, object]]:
    if isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _leaves(inner, (*path, key))
    else:
        yield list(path), value


def _holds(part: object, path: list) -> bool:
    for key in path:
        if not isinstance(part, Mapping):
            return True  # inside a list
        if key not in part:
            return False
        part = part[key]
    return True


def _at(settings: dict, path: list) -> object:
    for key in path:
        settings = settings[key]
    return settings


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _exact(value: object, rule: dict, known: dict) -> object:
    """Return numbers as floats where the schema says number: 1 and 1.0 are one setting, and so one cfg."""
    if "$ref" in rule:
        rule = known[rule["$ref"].rsplit("/", 1)[-1]]
    if isinstance(value, Mapping):
        inner = rule.get("properties", {})
        return {key: _exact(v, inner.get(key) or rule["additionalProperties"], known) for key, v in value.items()}
    if isinstance(value, list):
        return [_exact(v, rule["items"], known) for v in value]
    return float(value) if rule.get("type") == "number" else value
