"""Activation patching: put the stream of one run into another, at one site and one position (protocol A, A13).

A pair of strings differs in one token before the middle. The gap of a run at a position is the logit of the clean
label minus that of the corrupt one. Patching the clean stream into the corrupt run at the middle (`denoise`) recovers
(patched - corrupt gap) / (clean - corrupt gap) of it; the other direction is `noise`, (clean - patched gap) over the
same. It is read at the patched position (`patched`) and summed over the later ones where the labels differ (`later`).
"""

from collections.abc import Iterator

import numpy as np
import torch

from stateatlas.residual import ResidualModel
from stateatlas.sequences import Sequences

READS = ("patched", "later")
BY_CONSTRUCTION = "by construction"


def gaps(logits: torch.Tensor, clean: torch.Tensor, corrupt: torch.Tensor) -> torch.Tensor:
    """Return the logit of the clean label minus that of the corrupt one, (n, length); 0 where they are the same.

    logits (n, length, classes); clean, corrupt: labels (n, length).
    """
    picked = [logits.gather(-1, labels.unsqueeze(-1)).squeeze(-1) for labels in (clean, corrupt)]
    return picked[0] - picked[1]


def patch(receiver: torch.Tensor, donor: torch.Tensor, position: int) -> torch.Tensor:
    """Return the receiver's stream, (n, length, width), with the donor's at one position."""
    patched = receiver.clone()
    patched[:, position] = donor[:, position]
    return patched


def status(site: int, last: int) -> str:
    """Say whether a result is evidence or holds whatever the model does.

    Before the first block both runs have the same stream at the patched position. After the last one that position
    feeds its own answer and no other.
    """
    return BY_CONSTRUCTION if site in (0, last) else "evidence"


@torch.inference_mode()
def measure(model: ResidualModel, sequences: Sequences, length: int) -> Iterator[tuple[dict, np.ndarray, np.ndarray]]:
    """Yield (identity, recovered gap, whole gap) of every site, direction and read-out, a number a pair each.

    The recovery of a set of pairs is the sum of the first over the sum of the second.
    """
    device, middle = next(model.parameters()).device, length // 2
    names = ("clean", "corrupt")
    tokens, labels = (
        {name: torch.from_numpy(sequences.get(name, length, key)).to(device) for name in names}
        for key in ("tokens", "state")
    )
    streams = {name: model.states(tokens[name]) for name in names}
    known = {name: gaps(model.read(streams[name][-1]), *labels.values()) for name in names}
    whole = _read(known["clean"] - known["corrupt"], middle)
    for site in range(model.sites):
        for direction, (receiver, donor) in {"denoise": ("corrupt", "clean"), "noise": ("clean", "corrupt")}.items():
            stream = patch(streams[receiver][site], streams[donor][site], middle)
            found = gaps(model.resume(stream, site), *labels.values())
            moved = found - known["corrupt"] if direction == "denoise" else known["clean"] - found
            for read, recovered in _read(moved, middle).items():
                kind = status(site, model.sites - 1)
                yield {"site": site, "direction": direction, "read": read, "status": kind}, recovered, whole[read]


def _read(values: torch.Tensor, middle: int) -> dict[str, np.ndarray]:
    """Return (n, length) values at the patched position and summed over the later ones, in float64."""
    values = values.double().cpu().numpy()
    return {"patched": values[:, middle], "later": values[:, middle + 1 :].sum(axis=1)}


def rows(measured: list[tuple[dict, np.ndarray, np.ndarray]], draws: int, rng: np.random.Generator) -> Iterator[dict]:
    """Yield the rows of the patches table for one model, and its best earlier site.

    That site, neither embedding nor last, is chosen by its recovery at later positions on the first half of the
    pairs; `best_earlier_recovery` is measured on the second. Intervals resample pairs.
    """
    count = len(measured[0][1])
    halves = {"both": slice(None), "selection": slice(0, count // 2), "measurement": slice(count // 2, None)}
    found = []
    for identity, recovered, whole in measured:
        for half, pairs in halves.items():
            found.append(
                identity | {"half": half, "metric": "recovery"} | _ratio(recovered[pairs], whole[pairs], draws, rng)
            )
    yield from found
    for direction in ("denoise", "noise"):
        later = [row for row in found if row["direction"] == direction and row["read"] == "later"]
        chosen = [row for row in later if row["half"] == "selection" and row["status"] != BY_CONSTRUCTION]
        if chosen:
            best = max(chosen, key=lambda row: row["value"])["site"]
            row = next(row for row in later if row["half"] == "measurement" and row["site"] == best)
            yield row | {"site": -1, "metric": "best_earlier_recovery"}
            yield row | {"site": -1, "metric": "best_earlier_site", "value": float(best), "low": np.nan, "high": np.nan}


def _ratio(recovered: np.ndarray, whole: np.ndarray, draws: int, rng: np.random.Generator) -> dict:
    """The share recovered, with a percentile bootstrap over pairs."""
    n = len(whole)
    times = rng.multinomial(n, np.full(n, 1 / n), size=draws)
    low, high = np.quantile((times @ recovered) / (times @ whole), [0.025, 0.975])
    return {"value": recovered.sum() / whole.sum(), "n": n, "low": low, "high": high}
