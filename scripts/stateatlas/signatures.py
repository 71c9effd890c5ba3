"""Specialists (protocol C): units whose signal at the tokens of a class exceeds that at reference tokens."""

import numpy as np

from stateatlas.activity import Activity, pooled
from stateatlas.token_classes import CLASSES, CONTENT

TAU = 0.5
TAUS = (0.25, 0.5, 1.0, 2.0)  # the sweep
FORMS = ("raw", "standardised")
NAMED = [name for name in CLASSES if name not in ("content", "other")]


def deciding(activity: Activity) -> str:
    """Return the form of the signature that decides: that of Δ is raw, that of attention in standard deviations."""
    return "raw" if activity.delta.shape[-1] else "standardised"


def signatures(activity: Activity, times: np.ndarray | None = None, form: str = "") -> np.ndarray:
    """Return by how much the signal of every unit exceeds that at reference tokens, (..., classes, blocks, units).

    times: see `pooled`. form: "raw" in the signal's own unit, "standardised" in standard deviations over reference
    tokens; the one that decides where it is not given. The classes are those of `NAMED`; NaN where the
    corpus has no token of a class.
    """
    means = pooled(activity.signal, activity.count, times)
    found = means[..., [CLASSES.index(name) for name in NAMED], :, :] - means[..., [CONTENT], :, :]
    return _in_form(found, activity, form)


def _in_form(found: np.ndarray, activity: Activity, form: str) -> np.ndarray:
    """Return what exceeds the reference tokens, (..., blocks, units), in the form asked for, or in the deciding one."""
    if (form or deciding(activity)) != "standardised":
        return found
    with np.errstate(invalid="ignore", divide="ignore"):
        return found / activity.spread[CONTENT]


def sets(signature: np.ndarray, tau: float = TAU) -> dict[str, np.ndarray]:
    """Return sets of units, (..., blocks, units) bool each, by name.

    `<class>` are the units above tau for the class, `single_<class>` those above it for this class alone, `dual` those
    above it for BOS and newline.
    """
    above = signature > tau
    alone = above.sum(axis=-3) == 1
    found = {name: above[..., index, :, :] for index, name in enumerate(NAMED)}
    found |= {f"single_{name}": chosen & alone for name, chosen in found.items()}
    return found | {"dual": found["bos"] & found["newline"]}


def pair_shares(activity: Activity, form: str = "", tau: float = TAU) -> np.ndarray:
    """Return the share of the units that is above tau for both tokens, for every pair of frequent tokens.

    It is what the dual sets of arbitrary pairs would be. form: see `signatures`.
    """
    means = pooled(activity.signal, activity.count)
    found = _in_form(activity.frequent - means[CONTENT], activity, form)
    above = (found > tau).reshape(len(found), -1).astype(float)
    first, second = np.triu_indices(len(above), 1)
    return (above @ above.T / above.shape[1])[first, second]


def bucketed(activity: Activity, number: int, rng: np.random.Generator) -> Activity:
    """Return the activity of `number` random buckets of the units of every block, each unit in one of them.

    The signal of a bucket is the mean of its units' signals. Its spread over tokens is not that of its units and is
    left NaN: random bucketing is judged on raw signatures.

    Raises
    ------
    ValueError
        If the units of a block do not fill buckets of equal size.
    """
    groups, classes, blocks, known = activity.signal.shape
    if known % number:
        raise ValueError(f"{known} units do not fill {number} buckets of equal size")
    order = np.stack([rng.permutation(known) for _ in range(blocks)])
    shuffled = np.take_along_axis(activity.signal, order[None, None], axis=-1)
    signal = shuffled.reshape(groups, classes, blocks, number, -1).mean(axis=-1)
    spread = np.full((classes, blocks, number), np.nan)
    parts = activity.output, spread, activity.gate, activity.delta, activity.frequent[..., :0]
    return Activity(activity.count, signal, spread, *parts)


def write_cosines(activity: Activity, weights: list[np.ndarray], times: np.ndarray | None = None) -> np.ndarray:
    """Return the cosine of what every unit writes to the stream at BOS and at newline, (..., blocks, units).

    weights: (width, inner) of every block's output projection.
    """
    both = [CLASSES.index(name) for name in ("bos", "newline")]
    means = pooled(activity.output[:, both], activity.count[:, both], times)
    number = activity.signal.shape[-1]
    found = []
    for block, weight in enumerate(weights):
        columns = weight.reshape(len(weight), number, -1)
        gram = np.einsum("wup,wuq->upq", columns, columns)
        first, second = (means[..., i, block, :].reshape(*means.shape[:-3], number, -1) for i in (0, 1))
        inner, one, two = (
            np.einsum("...up,upq,...uq->...u", x, gram, y)
            for x, y in ((first, second), (first, first), (second, second))
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append(inner / np.sqrt(one * two))
    return np.stack(found, axis=-2)


def signature_cosine(signature: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the cosine over the chosen units between the signatures of BOS and newline; NaN without any.

    signature: (..., classes, blocks, units); chosen: (..., blocks, units) bool.
    """
    first, second = (np.where(chosen, signature[..., NAMED.index(name), :, :], 0) for name in ("bos", "newline"))
    product, one, two = ((x * y).sum(axis=(-1, -2)) for x, y in ((first, second), (first, first), (second, second)))
    with np.errstate(invalid="ignore", divide="ignore"):
        return product / np.sqrt(one * two)
