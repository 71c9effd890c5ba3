"""What the top direction of a site is worth to the task, layer by layer (protocol A, A11 and A12)."""

from collections.abc import Iterator

import numpy as np

from stateatlas.profiles import best_site


def middle(blocks: int) -> list[int]:
    """Return the sites of the blocks in the middle half of the depth: of 4 blocks L1 and L2."""
    return [block + 1 for block in range(blocks) if blocks / 4 <= block < 3 * blocks / 4]


def measure(
    clean: np.ndarray,
    edited: dict[int, np.ndarray],
    probes: dict[int, float],
    length: int,
    draws: int,
    rng: np.random.Generator,
) -> Iterator[tuple[int, str, float, float, float]]:
    """Yield (site, metric, value, low, high) of one model; site -1 for what belongs to the whole model.

    clean: right tokens of every test sequence, (sequences,). edited: the same with the top direction of a block site
    (1..n) set to zero. probes: accuracy of the probe at every block site on the first half of the test sequences.

    `drop` of each site and `final_site_drop`, the last one's; `middle_drop`, the drop at the site of the middle half of
    the depth where it is largest; `middle_drop_minus_3_best_probe`, that minus 3 x max(0, drop at the best-probe site).
    Sites are chosen on the first half of the sequences, drops are measured on the second; intervals resample its
    sequences. In shares of tokens.
    """
    half = len(clean) // 2
    lost = {site: (clean - right) / length for site, right in edited.items()}
    n = len(clean) - half
    times = rng.multinomial(n, np.full(n, 1 / n), size=draws) / n
    found = {site: (lost[site][half:].mean(), times @ lost[site][half:]) for site in lost}
    best = sorted(probes)[best_site(np.array([probes[site] for site in sorted(probes)])) - 1]
    rows = {(site, "drop"): value for site, value in found.items()} | {(-1, "final_site_drop"): found[max(found)]}
    if inner := middle(len(lost)):
        largest = found[max(inner, key=lambda site: lost[site][:half].mean())]
        rows[-1, "middle_drop"] = largest
        rows[-1, "middle_drop_minus_3_best_probe"] = tuple(
            whole - 3 * np.maximum(0, there) for whole, there in zip(largest, found[best], strict=True)
        )
    for (site, metric), (value, spread) in rows.items():
        low, high = np.quantile(spread, [0.025, 0.975])
        yield site, metric, float(value), float(low), float(high)
