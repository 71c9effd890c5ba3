"""Made-up tables of study C."""

import numpy as np

from stateatlas.interventions import NAMES, OF_STATE_SPACE

MODELS = {"mini-mamba": "mamba", "mini-mamba2": "mamba2", "mini-gpt-neox": "gpt_neox"}
CORPORA = ("code", "reference")
TABLES = ("sets", "writes", "signatures", "thresholds", "interventions", "cells", "needles")
FOUND = {"baseline": 1.0, "specialist": 0.05, "complement": 0.9, "dual": 0.4, "dual_complement": 0.7}
EFFECTS = {"specialist": 2.0, "complement": 0.2, "norm_matched": 0.4, "top_activation": 1.8, "dual": 1.0}
COSINES = {"dual_cosine": 0.9, "single_cosine": 0.3, "null_cosine": 0.5}


def rows(random: np.random.Generator) -> list[tuple[str, tuple]]:
    """Return (table, values after the study) for every made-up row."""
    found = []
    for name, family in MODELS.items():
        for corpus in CORPORA:
            units = (name, family, "trained", 0, corpus)
            for metric, value in COSINES.items():
                found.append(("writes", (*units, "bos", metric, value, 50, value - 0.1, value + 0.1)))
            for metric in ("dual_share", "single_share"):
                found.append(("sets", (*units, "bos", metric, 0.3, 50, 0.2, 0.4)))
            found += thresholds(name, family, corpus)
            found += signatures(units, random)
            found += effects((name, family, 0, corpus, "bos"), family, random)
    for name in ("mini-mamba", "mini-mamba2"):
        found += needles((name, MODELS[name], 0, "reference", "bos", "gate_zero", "all", 450))
    return found


def needles(cell: tuple) -> list[tuple[str, tuple]]:
    found = []
    for depth in ("pooled", "0.15", "0.5", "0.85"):
        for arm, share in FOUND.items():
            for metric, value in (("accuracy", share), ("answer_nats", 3 - 3 * share)):
                found.append((*cell, depth, 0, f"{arm}_{metric}", value, 100, value - 0.03, value + 0.03))
            for draw in range(3) if "complement" in arm else ():
                value = share - 0.04 * draw
                found.append((*cell, depth, draw, f"{arm}_draw_accuracy", value, 100, np.nan, np.nan))
        found.append((*cell, depth, 0, "complement_minus_nine_tenths_baseline", 0.0, 100, -0.1, 0.1))
    return [("needles", row) for row in found]


def thresholds(name: str, family: str, corpus: str) -> list[tuple[str, tuple]]:
    return [
        ("thresholds", (name, family, model, 0, corpus, form, tau, metric, share * 0.5**tau, 64))
        for model, share in (("trained", 0.4), ("untrained", 0.05))
        for form in ("raw", "standardised")
        for tau in (0.25, 0.5, 1.0, 2.0)
        for metric in ("dual", "single_bos", "single_newline", "pairs_median", "pairs_95")
    ]


def signatures(units: tuple, random: np.random.Generator) -> list[tuple[str, tuple]]:
    found = []
    for block, unit in np.ndindex(4, 16):
        bos, newline = random.normal(0.3, 0.6, 2)
        name = "dual" if min(bos, newline) > 0.5 else "single_bos" if bos > 0.5 else "none"
        for kind, value in (("bos", bos), ("newline", newline)):
            found.append(("signatures", (*units, kind, block, unit, name, value)))
    return found


def effects(cell: tuple, family: str, random: np.random.Generator) -> list[tuple[str, tuple]]:
    found = []
    for intervention in NAMES:
        known = (family == "gpt_neox") != (intervention in OF_STATE_SPACE) or intervention == "output_zero"
        for span in ("all", "from_boundary"):
            for name, value in EFFECTS.items() if known else ():
                here = (*cell, intervention, span)
                found.append(("interventions", (*here, name, value, 60, value - 0.2, value + 0.2)))
                draws = random.normal(value, 0.1, 5) if name in ("complement", "norm_matched") else [value]
                for draw, drawn in enumerate(draws):
                    found.append(("cells", (*here, name, draw, 8, "evaluated", "delta_nll", drawn, 60)))
            for place in range(5) if known else ():
                for name, size in (("single_unit", 1), ("ranked", 2**place)):
                    number = (size, "evaluated", "delta_nll", 0.1 * size, 60)
                    found.append(("cells", (*cell, intervention, span, name, place, *number)))
            if not known:
                found.append(
                    ("cells", (*cell, intervention, span, "single", 0, 8, "not applicable", "delta_nll", np.nan, 60))
                )
    return found
