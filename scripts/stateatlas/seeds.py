"""Named random streams: every stream is derived from the root seed and its own name.

A stream depends on nothing but its name, so a new seed or a new task changes no other result.
"""

import hashlib

import numpy as np


def derive(root: int, *names: object) -> int:
    """Return a 63-bit seed for the stream `names` under `root`.

    >>> derive(0, "encoding", "parity") == derive(0, "encoding", "parity")
    True
    """
    text = "\x1f".join([str(root), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def stream(root: int, *names: object) -> np.random.Generator:
    """Return numpy's generator for the stream `names` under `root`."""
    return np.random.default_rng(derive(root, *names))
