"""How tasks, architectures, sites and solve rates are written for readers."""

import re

_WORDS = {
    "transformer": "Transformer",
    "mamba": "Mamba",
    "mamba2": "Mamba-2",
    "lstm": "LSTM",
    "gru": "GRU",
    "parity": "Parity",
    "s3": "S3",
    "dyck": "Dyck",
    "state": "state",
    "stack_top": "stack top",
    "nope": "no positions",
}

# The order of the paper's printed table, then ours.
ARCHITECTURES = ("mamba", "transformer", "mamba2", "lstm", "gru")
TASKS = ("parity", "s3", "dyck")


def label(name: str) -> str:
    """The printed form of a name: `mamba2` is "Mamba-2", `mamba-stock` is "Mamba stock"."""
    return " ".join(_WORDS.get(part, part.replace("_", " ")) for part in name.split("-"))


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
