"""Intervals inside one trained model: a bootstrap over sequences."""

import numpy as np


def bootstrap(
    sums: np.ndarray,
    counts: np.ndarray | float,
    generator: np.random.Generator,
    draws: int,
    confidence: float = 0.95,
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile bootstrap of means over tokens, clustered by sequence.

    sums: (..., sequences), the sum of the measured value over the tokens of each sequence (correct
    tokens, say); leading axes are different measurements on the same sequences. counts: tokens per
    sequence, broadcast against `sums`; 1 when `sums` holds one value a sequence. Returns low and high,
    each of the leading shape.

    All measurements share their resamples, as matrix products: scipy.stats.bootstrap would draw anew for
    each of the thousands of rows of an ablation table.
    """
    sums = np.asarray(sums, dtype=float)
    counts = np.broadcast_to(np.asarray(counts, dtype=float), sums.shape)
    sequences = sums.shape[-1]
    if sequences < 2:
        raise ValueError(f"a bootstrap over sequences needs 2 or more, got {sequences}")
    # How often each sequence is drawn: (draws, sequences).
    times = generator.multinomial(sequences, np.full(sequences, 1 / sequences), size=draws).astype(float)
    means = (sums @ times.T) / (counts @ times.T)  # (..., draws)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=-1)
    return low, high


def with_halves(rows: list[dict], right: np.ndarray, generator: np.random.Generator, draws: int) -> list[dict]:
    """Return each row three times: measured on both halves of the test sequences, and on either half.

    rows: one a measurement; right: (rows, sequences), the share of right tokens of each sequence, as the whole
    number `tokens x share`. Layers are chosen on the first half and measured on the second (protocol A). Each row
    must hold `tokens`, the tokens of a sequence; it is replaced by half, metric, value, n, low and high.
    """
    middle = right.shape[1] // 2
    halves = {"both": right, "selection": right[:, :middle], "measurement": right[:, middle:]}
    tokens = np.array([row["tokens"] for row in rows])
    result = []
    for half, part in halves.items():
        low, high = bootstrap(part, 1.0, generator, draws)
        for row, counts, lo, hi, per in zip(rows, part, low, high, tokens, strict=True):
            known = {key: value for key, value in row.items() if key != "tokens"}
            result.append(
                {
                    "half": half,
                    "metric": "accuracy",
                    "low": lo / per,
                    "high": hi / per,
                    "n": int(per * part.shape[1]),
                }
                | known
                | {"value": counts.sum() / (per * part.shape[1])}
            )
    return result
