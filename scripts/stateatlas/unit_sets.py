"""How many units answer to BOS, to newline and to both, and how alike dual units write (claims C2, C4 to C6, C9).

Intervals resample groups of documents and derive all sets again; they redraw buckets and control sets too.
"""

from collections.abc import Callable, Iterator

import numpy as np

from stateatlas import complements
from stateatlas.activity import Activity
from stateatlas.signatures import (
    FORMS,
    NAMED,
    TAUS,
    bucketed,
    pair_shares,
    sets,
    signature_cosine,
    signatures,
    write_cosines,
)

AT_ONCE = 1 << 24  # numbers of a resampled signature that are held at a time
NULLS = 100  # control sets, random bucketings
Row = tuple[str, float, float, float]  # metric, value, low, high


def rows(
    activity: Activity, weights: list[np.ndarray], heads: Activity | None, rng: np.random.Generator, draws: int
) -> Iterator[tuple[str, dict]]:
    """Yield the rows of a model by table: `sets`, `writes`, `signatures` and `thresholds`.

    weights: see `write_cosines`; heads: the activity of a Mamba-2, where the model is a Mamba.
    """
    measured = {"sets": [*counts(activity, rng, draws)], "writes": [*writes(activity, weights, rng, draws)]}
    if heads is not None:
        measured["sets"] += buckets(activity, heads, rng, draws)
    for table, found in measured.items():
        for metric, value, low, high in found:
            yield (
                table,
                {"class": "bos", "metric": metric, "value": value, "n": len(activity.count), "low": low, "high": high},
            )
    yield from (("signatures", row) for row in by_unit(activity))
    for form, tau, metric, value in thresholds(activity):
        yield (
            "thresholds",
            {"form": form, "tau": tau, "metric": metric, "value": value, "n": activity.signal[0, 0].size},
        )


def by_unit(activity: Activity) -> Iterator[dict]:
    """Yield the signature of every unit for BOS and newline, with the set that it is in."""
    signature = signatures(activity)
    found = sets(signature)
    names = np.full(signature.shape[1:], "none", dtype=object)
    for name in ("single_bos", "single_newline", "dual"):
        names[found[name]] = name
    for name in ("bos", "newline"):
        for (block, unit), value in np.ndenumerate(signature[NAMED.index(name)]):
            yield {"class": name, "block": block, "unit": unit, "set": names[block, unit], "value": value}


def counts(activity: Activity, rng: np.random.Generator, draws: int) -> Iterator[Row]:
    """Yield the sizes of the sets at the threshold, with intervals."""

    def measure(times: np.ndarray | None) -> dict[str, np.ndarray]:
        signature = signatures(activity, times)
        found = sets(signature)
        number = {name: chosen.sum(axis=(-1, -2)) for name, chosen in found.items()}
        single, dual, units = number["single_bos"], number["dual"], activity.signal[0, 0].size
        with np.errstate(invalid="ignore", divide="ignore"):
            undercount = number["bos"] / np.where(single == 0, np.nan, single)
        return {
            "class_count": number["bos"],
            "single_count": single,
            "dual_count": dual,
            "single_share": single / units,
            "dual_share": dual / units,
            "undercount": undercount,
            "dual_minus_3_single": dual - 3 * single,
            "dual_minus_single_share": (dual - single) / units,
            "dual_signature_cosine": signature_cosine(signature, found["dual"]),
        }

    yield from _with_intervals(measure, activity, rng, draws)


def buckets(activity: Activity, heads: Activity, rng: np.random.Generator, draws: int) -> Iterator[Row]:
    """Yield the dual share of Mamba's channels in random buckets, as many as Mamba-2 has heads, against Mamba-2's.

    Both were observed on the same groups of documents and are resampled together.
    """
    number = heads.signal.shape[-1]

    def shares(times: np.ndarray | None) -> tuple[float, float]:
        small = bucketed(activity, number, rng)
        return tuple(sets(signatures(part, times))["dual"].mean() for part in (small, heads))

    def both(values: list[tuple[float, float]]) -> np.ndarray:
        bucket, head = np.array(values).T
        return np.stack([bucket, bucket - head / 2])

    point = both([shares(None) for _ in range(NULLS)]).mean(axis=1)
    times = _times(activity, rng, draws)
    low, high = np.quantile(both([shares(row) for row in times]), [0.025, 0.975], axis=1)
    names = ("bucketed_dual_share", "bucketed_dual_share_minus_half_mamba2")
    yield from zip(names, point, low, high, strict=True)


def writes(activity: Activity, weights: list[np.ndarray], rng: np.random.Generator, draws: int) -> Iterator[Row]:
    """Yield how alike units write at BOS and at newline: dual units, single-bucket ones, and control sets of dual ones.

    A control set has as many units in every block, none of them dual. weights: see `write_cosines`.
    """

    def means(dual: np.ndarray, single: np.ndarray, cosines: np.ndarray) -> list[float]:
        parts = (dual, single, complements.matched(dual, rng))
        return [np.nan if part is None or not part.any() else np.nanmean(cosines[part]) for part in parts]

    def measure(times: np.ndarray) -> np.ndarray:
        found, cosines = sets(signatures(activity, times)), write_cosines(activity, weights, times)
        rows = zip(found["dual"], found["single_bos"], cosines, strict=True)
        dual, single, null = np.array([means(*row) for row in rows]).T
        return np.stack([dual, single, null, dual - single, dual - null])

    names = ("dual_cosine", "single_cosine", "null_cosine", "dual_minus_single_cosine", "dual_minus_null_cosine")
    point = measure(np.ones((NULLS, len(activity.count)))).mean(axis=1)
    parts = _parts(_times(activity, rng, draws), activity)
    low, high = _quantiles(np.concatenate([measure(part) for part in parts], axis=1))
    yield from (row for row in zip(names, point, low, high, strict=True) if not np.isnan(row[1:]).any())


def thresholds(activity: Activity) -> Iterator[tuple[str, float, str, float]]:
    """Yield (form, tau, metric, share of the units) over the sweep of thresholds, for both forms of the signature.

    `pairs_median` and `pairs_95`: the median and the 95th percentile over pairs of frequent tokens.
    """
    for form in FORMS:
        signature = signatures(activity, form=form)
        for tau in TAUS:
            found = sets(signature, tau)
            for name in (*NAMED, *(f"single_{name}" for name in NAMED), "dual"):
                yield form, tau, name, float(found[name].mean())
            if len(pairs := pair_shares(activity, form, tau)):
                yield form, tau, "pairs_median", float(np.median(pairs))
                yield form, tau, "pairs_95", float(np.quantile(pairs, 0.95))


def _with_intervals(measure: Callable, activity: Activity, rng: np.random.Generator, draws: int) -> Iterator[Row]:
    """Yield the rows of what `measure(times)` returns, resampled in parts that fit memory."""
    point = measure(None)
    resampled = [measure(part) for part in _parts(_times(activity, rng, draws), activity)]
    for name, value in point.items():
        low, high = _quantiles(np.concatenate([part[name] for part in resampled]).astype(float))
        if not np.isnan([value, low, high]).any():
            yield name, float(value), float(low), float(high)


def _times(activity: Activity, rng: np.random.Generator, draws: int) -> np.ndarray:
    """Return how often each group of documents is drawn, (draws, groups)."""
    groups = len(activity.count)
    return rng.multinomial(groups, np.full(groups, 1 / groups), size=draws).astype(float)


def _parts(times: np.ndarray, activity: Activity) -> list[np.ndarray]:
    """Return the resamples in parts whose signatures and outputs fit memory."""
    largest = max(activity.signal[0].size, activity.output[0].size)
    return np.array_split(times, max(1, -(-len(times) * largest // AT_ONCE)))


def _quantiles(values: np.ndarray) -> np.ndarray:
    """Return the quantiles .025 and .975 over the last axis; NaN where a set is empty in over 5 % of the resamples."""
    lacking = np.isnan(values).mean(axis=-1) > 0.05
    found = np.nanquantile(np.where(lacking[..., None], 0.0, values), [0.025, 0.975], axis=-1)
    return np.where(lacking, np.nan, found)
