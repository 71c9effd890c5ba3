"""The experiments of study A: which cells each one trains, and what is measured on them.

A cell is a task, an architecture and a seed.
"""

import itertools
from collections.abc import Iterator

from stateatlas.sizes import varied

Settings = dict
Wildcards = dict[str, str]

# What is made of every cell of an experiment: the rules that run on it.
RULES = {
    "layers": ("train", "record", "probe", "ablate", "refit"),  # the paper's own cells
    "edited": ("train", "record", "erase", "patch"),  # erasure and patching (A13, A16, A17)
    "held_out": ("train", "record", "probe"),  # other tasks and other targets (A18, A19)
    "attribution": ("train", "record"),  # Mamba without its convolution, in more seeds (A10)
    "recipes": ("train", "record", "probe"),  # other initial scales and learning rates (A20)
    "language": ("finetune", "record", "probe", "ablate", "erase", "patch"),  # fine-tuned language models (A11-A13)
}


def cells(s: Settings, rule: str = "record") -> list[Wildcards]:
    """Every cell that `rule` runs on, once; without a rule every cell there is."""
    found = itertools.chain(*(_trained(s, experiment) for experiment, rules in RULES.items() if rule in rules))
    keys = ("task", "architecture", "seed")
    return [dict(zip(keys, (task, name, str(seed)), strict=True)) for task, name, seed in dict.fromkeys(found)]


def of_paper(s: Settings, w: Wildcards) -> bool:
    """Whether a cell is one of the paper's own: tasks x architectures x seeds."""
    return w["task"] in s["tasks"] and w["architecture"] in s["architectures"] and int(w["seed"]) < s["seeds"]


def attributed(s: Settings, w: Wildcards) -> bool:
    """Whether a job is of a cell that the convolution is taken out of, or of one beside it (A10)."""
    cell = (w.get("task"), w.get("architecture"), int(w.get("seed", -1)))
    return cell in set(_trained(s, "attribution"))


def tasks(s: Settings) -> list[str]:
    """Every task that some experiment trains on, the paper's first."""
    return list(dict.fromkeys(cell["task"] for cell in cells(s)))


def architectures(s: Settings, rule: str = "record") -> list[str]:
    """Every architecture that `rule` runs on, the paper's first."""
    return list(dict.fromkeys(cell["architecture"] for cell in cells(s, rule)))


def language_models(s: Settings) -> list[str]:
    """Every language model that some experiment needs."""
    chosen = s["language"]["cells"] if "language" in s["extras"] else {}
    tuned = [name for name, tasks in chosen.items() if tasks]
    return list(dict.fromkeys([*tuned, *(name for name, _ in units(s)), *responding(s)]))


def units(s: Settings) -> list[tuple[str, str]]:
    """Every (language model, corpus) of study C."""
    return list(itertools.product(s["sink"]["models"], s["sink"]["corpora"])) if "sink" in s["studies"] else []


def responding(s: Settings) -> list[str]:
    """Every language model of study B."""
    return s["response"]["models"] if "response" in s["studies"] else []


def transferred(s: Settings) -> dict[str, str]:
    """Those that a smaller one of the same family predicts, and that one."""
    pairs = s["response"]["transfers"] if "response" in s["studies"] else []
    return {large: small for small, large in pairs}


TAUGHT = "-taught"  # behind the name of a mini that was taught to find needles


def seekers(s: Settings) -> list[str]:
    """Every language model that the needle test asks; each is one of those with units."""
    return s["sink"]["needles"]["models"] if "sink" in s["studies"] else []


def asked_as(s: Settings, name: str) -> str:
    """The name of what is asked in place of a language model: a mini is taught first."""
    return name + TAUGHT if name in all_minis(s) else name


def observed(s: Settings, corpus: str) -> list[str]:
    """Every language model whose units are observed on a corpus."""
    asked = seekers(s) if corpus == s["sink"]["needles"]["corpus"] else []
    return list(dict.fromkeys([*s["sink"]["models"], *(asked_as(s, name) for name in asked)]))


def minis(s: Settings) -> list[str]:
    """Those that are trained here."""
    return [name for name in language_models(s) if name in all_minis(s)]


def all_minis(s: Settings) -> list[str]:
    """Every mini that the config names, whether this run needs it or not."""
    return [name for name, model in s["language_models"].items() if "mini" in model]


def fetched(s: Settings) -> list[str]:
    """Those that are brought from elsewhere."""
    return [name for name in language_models(s) if name not in all_minis(s)]


def _trained(s: Settings, experiment: str) -> Iterator[tuple[str, str, int]]:
    if experiment == "layers":
        return itertools.product(s["tasks"], s["architectures"], range(s["seeds"]))
    if experiment not in s["extras"]:
        return iter(())
    part = s[experiment]
    if experiment == "language":
        pairs = [(task, name) for name, tasks in part["cells"].items() for task in tasks]
        return ((task, name, seed) for task, name in pairs for seed in range(part["seeds"]))
    names = part["architectures"]
    if experiment == "edited":  # of the paper's own cells
        own = ([name for name in part[key] if name in s[key]] for key in ("tasks", "architectures"))
        return itertools.product(*own, range(s["seeds"]))
    if experiment == "recipes":
        grid = itertools.product([None, *part["embedding_std"]], [1, *part["learning_rate"]])
        names = [varied(name, *change) for name, change in itertools.product(names, grid)]
    return itertools.product(part["tasks"], names, range(part.get("seeds", s["seeds"])))
