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
    "layers": ("train", "record", "probe", "ablate", "refit", "erase", "patch"),  # the paper's own cells
    "held_out": ("train", "record", "probe"),  # other tasks and other targets (A18, A19)
    "attribution": ("train", "record"),  # Mamba without its convolution, in more seeds (A10)
    "recipes": ("train", "record", "probe"),  # other initial scales and learning rates (A20)
}


def cells(s: Settings, rule: str = "train") -> Iterator[Wildcards]:
    """Every cell that `rule` runs on, once."""
    seen = set()
    for experiment, rules in RULES.items():
        for task, architecture, seed in _trained(s, experiment) if rule in rules else ():
            if (cell := (task, architecture, seed)) not in seen:
                seen.add(cell)
                yield {"task": task, "architecture": architecture, "seed": str(seed)}


def tasks(s: Settings) -> list[str]:
    """Every task that some experiment trains on, the paper's first."""
    return list(dict.fromkeys(cell["task"] for cell in cells(s)))


def architectures(s: Settings) -> list[str]:
    """Every architecture that some experiment trains, the paper's first."""
    return list(dict.fromkeys(cell["architecture"] for cell in cells(s)))


def _trained(s: Settings, experiment: str) -> Iterator[tuple[str, str, int]]:
    if experiment == "layers":
        return itertools.product(s["tasks"], s["architectures"], range(s["seeds"]))
    if experiment not in s["extras"]:
        return iter(())
    part = s[experiment]
    names = part["architectures"]
    if experiment == "recipes":
        grid = itertools.product([None, *part["embedding_std"]], [1, *part["learning_rate"]])
        names = [varied(name, *change) for name, change in itertools.product(names, grid)]
    return itertools.product(part["tasks"], names, range(part.get("seeds", s["seeds"])))
