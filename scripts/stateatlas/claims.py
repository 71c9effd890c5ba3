"""Claims are data: read `data/claims.yaml`, check it, and complete its atoms.

An atom is a *term* (which rows of which table, one number a seed), possibly minus a second one, and a bound.
What an atom does not say it takes from its claim, and a `minus` from its atom.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import jsonschema
import yaml

from stateatlas import bounds

Fail = Callable[[str, str], None]  # field, message: raises ClaimError

_TERM = ("table", "metric", "where", "mean")
# What may stand for numbers in these columns.
_WORDS = {
    ("where", "length"): ["training", "longer", "all"],
    ("where", "site"): ["best"],
    ("each", "length"): ["longer", "present"],
    ("each", "site"): ["blocks", "present"],
}
_REMEDIES = {
    "required": "add the missing field",
    "minItems": "list at least one",
    "minProperties": "name at least one column",
    "minLength": "write a text",
}
_BOUND_REMEDY = "write a bound such as '> 0.05', '<= 1' or 'in [0.8, 1.2]'"


class ClaimError(ValueError):
    """A mistake in the claims, or between a claim and its tables; the message says where and what to do."""


def load_claims(path: Path | str, schema: Path | str, columns: Mapping[str, Sequence[str]]) -> list[dict]:
    """Read and check a claims file.

    columns: table -> its columns, against which the claims are checked; a table that does not exist yet is
    left out. Returns the claims in file order. Every atom has its own `table`, `metric`, `where`, `each`,
    `mean` and parsed `bound` (a `bounds.Bound`), and so have its `minus` and `given`.

    Raises
    ------
    ClaimError
        With file, claim, field, value and remedy of the first mistake.
    """
    path = Path(path)
    try:
        claims = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ClaimError(f"{path}: not a readable YAML file: {error}") from error
    validator = jsonschema.Draft202012Validator(yaml.safe_load(Path(schema).read_text(encoding="utf-8")))
    if error := jsonschema.exceptions.best_match(validator.iter_errors(claims)):
        raise ClaimError(_message(path, claims, error))
    _check_ids(path, claims)
    return [_complete_claim(path, claim, columns) for claim in claims]


def _message(path: Path, claims: object, error: jsonschema.ValidationError) -> str:
    place = list(error.absolute_path)
    where = f"{path}"
    if place:
        entry = claims[place[0]]
        name = entry.get("id") if isinstance(entry, dict) else None
        where += f": claim {name}" if name else f": entry {place[0] + 1}"
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place[1:]).lstrip(".")
    return f"{where}: {field or 'entry'}: {error.message}; {_remedy(error)}"


def _remedy(error: jsonschema.ValidationError) -> str:
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = next((key for key in error.instance if key not in known), "")
        return _suggestion(unknown, list(known))
    if error.validator == "enum":
        return _suggestion(str(error.instance), [str(choice) for choice in error.validator_value])
    if error.validator == "type":
        kinds = error.validator_value
        return f"write a value of type {' or '.join([kinds] if isinstance(kinds, str) else kinds)}"
    if error.validator == "pattern":
        return f"it has to match {error.validator_value}"
    return _REMEDIES.get(error.validator, "see rules/schemas/claims.schema.yaml")


def _suggestion(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"


def _check_ids(path: Path, claims: list[dict]) -> None:
    ids = [claim["id"] for claim in claims]
    for place, name in enumerate(ids):
        if name in ids[:place]:
            raise ClaimError(f"{path}: claim {name}: id: {name!r} stands twice; give each claim its own")
    for claim in claims:
        other = claim.get("revision", {}).get("claim")
        if other and other not in ids:
            remedy = _suggestion(other, ids)
            raise ClaimError(f"{path}: claim {claim['id']}: revision.claim: {other!r} is no claim; {remedy}")


def _complete_claim(path: Path, claim: dict, columns: Mapping[str, Sequence[str]]) -> dict:
    def fail(field: str, message: str) -> None:
        raise ClaimError(f"{path}: claim {claim['id']}: {field}: {message}")

    for field, column, value in _conditions(claim):
        if isinstance(value, str) and re.fullmatch(r"[-+]?[\d.]+[eE][-+]?\d+", value):
            fail(f"{field}.{column}", f"YAML reads {value!r} as text; write {float(value)!r}")
    atoms = []
    for number, atom in enumerate(claim["atoms"]):
        full = _complete_atom(atom, claim, partial(_fail_below, fail, f"atoms[{number}]"))
        _check_columns(full, columns, partial(_fail_below, fail, f"atoms[{number}]"))
        atoms.append(full)
    return {**claim, "atoms": atoms}


def _fail_below(fail: Fail, parent: str, field: str, message: str) -> None:
    fail(f"{parent}.{field}", message)


def _check_columns(term: dict, columns: Mapping[str, Sequence[str]], fail: Fail) -> None:
    known = columns.get(term.get("table"))
    for field in ("where", "each", "mean") if known else ():
        for column in term.get(field, ()):
            if column not in known:
                remedy = _suggestion(column, list(known))
                fail(field, f"table {term['table']} has no column {column!r}; {remedy}")
            words = _WORDS.get((field, column))
            word = term[field][column] if words else None
            if isinstance(word, str) and word not in words:
                fail(f"{field}.{column}", f"unknown word {word!r}; {_suggestion(word, words)}")
    for cell in nearer_cells(term.get("nearer", {})):
        _check_columns({"table": term["table"], "where": cell}, columns, partial(_fail_below, fail, "nearer"))
    for part in ("minus", "given"):
        if part in term:
            _check_columns(term[part], columns, partial(_fail_below, fail, part))


def _conditions(part: object, field: str = "") -> Iterator[tuple[str, str, object]]:
    """Every (field, column, value) that stands in some `where` or `each` below."""
    if isinstance(part, list):
        for number, item in enumerate(part):
            yield from _conditions(item, f"{field}[{number}]")
    elif isinstance(part, dict):
        for key, value in part.items():
            here = f"{field}.{key}".lstrip(".")
            if key in ("where", "each"):
                for column, wanted in value.items():
                    yield from ((here, column, v) for v in (wanted if isinstance(wanted, list) else [wanted]))
            else:
                yield from _conditions(value, here)


def nearer_cells(nearer: dict) -> list[dict]:
    """The cells that `nearer` compares with: `to` first, then those of `than`."""
    if not nearer:
        return []
    others = nearer["than"] if isinstance(nearer["than"], list) else [nearer["than"]]
    return [nearer["to"], *(cell for cell in others if cell != "seeds")]


def _complete_atom(atom: dict, claim: dict, fail: Fail) -> dict:
    if "by_construction" in atom:
        return {"name": "-", "where": {}, **atom}
    both = set(atom.get("where", {})) & set(atom.get("each", {}))
    if both:
        fail("each", f"{sorted(both)} stands in where too; keep one of the two")
    full = _inherit(atom, claim, fail)
    full["each"] = atom.get("each", {})
    full["where"] = {column: value for column, value in full["where"].items() if column not in full["each"]}
    full |= {key: atom[key] for key in ("name", "solved", "nearer") if key in atom}
    full["bound"] = _parsed(atom.get("bound", claim["bound"]), fail)
    if "minus" in atom:
        full["minus"] = _inherit_minus(atom["minus"], full, fail)
    if "given" in atom:
        full["given"] = _complete_given(atom["given"], full, fail)
    return full


def _inherit(term: dict, parent: dict, fail: Fail) -> dict:
    """`term` with what it leaves out taken from `parent`; of another table's parent nothing is taken."""
    same = term.get("table", parent.get("table")) == parent.get("table")
    full = {key: term[key] if key in term else parent.get(key) if same else None for key in _TERM}
    for key in ("table", "metric"):
        if full[key] is None:
            fail(key, "missing; name it here or in the claim")
    full["where"] = {**(parent.get("where", {}) if same else {}), **term.get("where", {})}
    full["mean"] = full["mean"] or []
    return full


def _inherit_minus(minus: dict, parent: dict, fail: Fail) -> dict:
    full = _inherit(minus, parent, fail)
    return {**full, "each": minus.get("each", {}), "pairing": minus.get("pairing")}


def _complete_given(given: dict, atom: dict, fail: Fail) -> dict:
    full = _inherit(given, atom, fail)
    if "minus" in given:
        full["minus"] = _inherit_minus(given["minus"], full, fail)
    return {**full, "bound": _parsed(given["bound"], fail), "otherwise": given.get("otherwise")}


def _parsed(text: str, fail: Fail) -> bounds.Bound:
    try:
        return bounds.parse(text)
    except ValueError as error:
        fail("bound", f"{error}; {_BOUND_REMEDY}")
