"""How tasks, architectures, sites and solve rates are written for readers."""

import re

from stateatlas.sizes import CHANGE

_WORDS = {
    "transformer": "Transformer",
    "mamba": "Mamba",
    "mamba2": "Mamba-2",
    "lstm": "LSTM",
    "gru": "GRU",
    "parity": "Parity",
    "s3": "S3",
    "dyck": "Dyck",
    "mod3": "Mod-3",
    "z6": "Z6",
    "queue": "Queue",
    "code": "Code-Depth",
    "dyck-parity": "Dyck parity",
    "mini-mamba": "mini Mamba",
    "mini-mamba2": "mini Mamba-2",
    "mini-gpt-neox": "mini GPT-NeoX",
    "mini-gpt2": "mini GPT-2",
    "mini-gpt2-large": "large mini GPT-2",
    "gpt2": "GPT-2",
    "gpt2-medium": "GPT-2 medium",
    "mamba-130m": "Mamba-130M",
    "mamba-2.8b": "Mamba-2.8B",
    "mamba2-1.3b": "Mamba-2 1.3B",
    "mamba2-2.7b": "Mamba-2 2.7B",
    "pythia-160m": "Pythia-160M",
    "pythia-410m": "Pythia-410M",
    "pythia-1.4b": "Pythia-1.4B",
    "pythia-2.8b": "Pythia-2.8B",
    "state": "state",
    "stack_top": "stack top",
    "nope": "no positions",
    "noconv": "conv-free",
}

# The order of the paper's printed table, then ours.
ARCHITECTURES = ("mamba", "transformer", "mamba2", "lstm", "gru")
TASKS = ("parity", "s3", "dyck", "mod3", "z6", "queue", "dyck-parity", "code")


def label(name: str) -> str:
    """The printed form of a name: `mamba2` is "Mamba-2", `mamba-stock` "Mamba stock", `lstm-std1-lr2` "LSTM std 1
    lr 2". A word that is no name keeps its hyphens."""
    first, *rest = name.split("-")
    if name in _WORDS or first not in _WORDS:
        return _WORDS.get(name, name.replace("_", " "))
    return " ".join([_WORDS[first], *(_WORDS.get(part) or _change(part) for part in rest)])


def _change(part: str) -> str:
    """A change of the recipe with a space before its number, anything else without underscores."""
    return CHANGE.sub(r"\1 \2", part).replace("_", " ")


def spelled(text: str) -> str:
    """A text with its names printed: "parity, mamba - gru, L2" is "Parity, Mamba - GRU, L2"."""
    return re.sub(r"[a-z][\w-]*", lambda found: label(found[0]), text)


def site_label(site: int) -> str:
    """Site 0 is the embedding, site l+1 the output of block `L<l>`."""
    return "emb" if site == 0 else f"L{site - 1}"


def ordered(names, order: tuple[str, ...]) -> list[str]:
    """The distinct names, known ones in `order`, the others after them by alphabet."""
    found = set(names)
    return [name for name in order if name in found] + sorted(found - set(order))
