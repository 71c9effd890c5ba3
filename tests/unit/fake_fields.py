"""Made-up tables of study B."""

import numpy as np

MODELS = {"mini-gpt2": 5, "mini-gpt2-large": 7}  # name -> sites
EPS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
KINDS = ("random", "gradient", "prompt_difference", "unembedding_difference")
TABLES = (
    "linearity", "superposition", "prediction", "effects", "propagation", "composition", "concentration", "green",
    "displacement", "prompts", "inverse", "transfer",
)  # fmt: skip


def rows(random: np.random.Generator) -> list[tuple[str, tuple]]:
    """Return (table, values after the study) for every made-up row."""
    found = []
    for name, sites in MODELS.items():
        field = (name, "gpt2", "trained", 0)
        made = {
            "linearity": linearity(), "superposition": superposition(), "prediction": prediction(sites),
            "effects": effects(random), "composition": composition(), "concentration": concentration(),
            "green": green(), "displacement": displacement(sites), "inverse": inverse(),
            "prompts": [("held_out", "used", 32, 32), ("held_out", "skipped", 0, 32)],
        }  # fmt: skip
        found += [(table, (*field, *row)) for table, part in made.items() for row in part]
        for model in ("trained", "untrained"):
            found += [("propagation", (name, "gpt2", model, 0, *row)) for row in propagation(sites, model)]
    found += [("transfer", ("mini-gpt2-large", "gpt2", "trained", 0, "mini-gpt2", *row)) for row in transfer()]
    return found


def around(value: float) -> tuple:
    return value, 32, 0.9 * value, 1.1 * value


def bare(value: float) -> tuple:
    return value, 32, np.nan, np.nan


def linearity():
    for eps in EPS:
        yield eps, "all", "median_nonlinearity_error", *around(eps)
        yield eps, "all", "share_under_20", *around(1 / (1 + eps))
        yield eps, "all", "dropped", *bare(3)
        yield eps, "all", "lower_quartile", *bare(eps / 3)
        yield eps, "all", "upper_quartile", *bare(eps * 3)
        for number, kind in enumerate(KINDS):
            yield eps, kind, "median_error", *around(eps * (1 + 0.2 * number))


def superposition():
    for eps in EPS:
        for number, pair in enumerate(("same_site", "same_layer", "across_layers")):
            yield eps, pair, "median_superposition_error", *around(eps / (1 + 3 * number))
            yield eps, pair, "median_second_order_error", *around(eps / (1.2 + 3 * number))


def prediction(sites: int):
    for metric, value in (("spearman", 0.98), ("pearson", 0.99), ("slope", 1.01), ("sign_agreement", 0.97)):
        for kind in ("all", *KINDS):
            yield 0.03, kind, -1, metric, *around(value)
        for site in range(sites):
            yield 0.03, "all", site, f"site_{metric}", *around(value)


def effects(random: np.random.Generator):
    for case in range(60):
        predicted = random.normal(0, 0.1)
        for metric, value in (("predicted", predicted), ("measured", predicted * random.normal(1, 0.05))):
            yield case % 4, case, case % 5, KINDS[case % len(KINDS)], metric, value


def propagation(sites: int, model: str):
    for metric, value in (("energy_ratio", 20.0), ("gini", 0.8)):
        yield -1, -1, metric, *around(value)
    if model == "trained":
        yield -1, -1, "gini_minus_untrained", *around(0.1)
    for site, offset in np.ndindex(sites, 12):
        yield site, offset, "energy", *bare(float(offset == 0) if site == 0 else 1 / (1 + 10 * offset))


def composition():
    for tokens, value in (("source", 0.3), ("top_quarter", 0.15), ("jacobian", 0.02)):
        yield 0.03, tokens, "evidence", "relative_error", *around(value)
    yield 0.03, "all", "by construction", "relative_error", *bare(0.0)


def concentration():
    for sites in ("all", "no_first_token", "inner"):
        for share in (0.01, 0.1, 0.5, 1.0):
            yield sites, share, "cumulative", *around(share**0.3)
        yield sites, 0.1, "top_tenth_share", *around(0.5)


def green():
    yield "all", 0, "effective_rank_over_width", *around(0.1)
    for token, fall in (("own", 0.05), ("other", 0.5)):
        for k in range(32):
            yield token, k, "singular_value", *bare(float(np.exp(-fall * k)))


def displacement(sites: int):
    for token in ("last", "changed"):
        for control, size in (("none", 0.5), ("random", 0.05), ("shuffled_prompt", 0.1)):
            for site in range(sites - 1):
                yield token, 1.0, site, control, "site_share", *around(size * (site + 1) / sites)
                yield token, 1.0, site, control, "site_predicted", *around(size * site / sites)


def inverse():
    for method, size in (("sparse", 0.5), ("top", 0.6), ("exhaustive", 0.3)):
        yield method, 0, "passes", *around(7.0)
        yield method, 0, "side_effect_nats", *around(0.2)
        for number in range(1, 9):
            yield method, number, "reached", *around(1 - (1 - size) ** number)


def transfer():
    for anchors in (0, 1, 4, 16):
        for predictor, value in (("map", 0.9), ("token", 0.6), ("depth", 0.5)):
            for metric in ("spearman", "recall"):
                yield anchors, predictor, metric, *around(value)
        yield anchors, "map", "spearman_minus_best_baseline", *around(0.3)
