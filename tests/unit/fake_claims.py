"""Made-up claims and verdicts in the form of `data/claims.yaml` and of the claims table."""

import pandas as pd

NAN = float("nan")
COLUMNS = [
    "claim",
    "study",
    "atom",
    "cell",
    "metric",
    "bound",
    "value",
    "low",
    "high",
    "n",
    "verdict",
    "reason",
]
FOUR = ["parity, mamba", "parity, mamba2", "parity, lstm", "parity, gru"]


def entry(name, title, published, bound, figure, **more):
    known = {"id": name, "study": "encoding", "title": title, "statement": f"{title}, says the paper."}
    known |= {"published": {"value": None, "text": published}, "bound": bound, "margin": None}
    known |= {"needs": "trained models", "figure": figure, "table": "profiles"}
    return {**known, "atoms": [{"each": {"architecture": ["mamba", "gru"]}}], **more}


def fake_entries() -> list[dict]:
    refit = {"claim": "A15", "text": "is no necessity test: does a refitted probe recover"}
    recipe = {"claim": "A20", "text": "does the shape survive another recipe"}
    reversal = "> 0 on Parity, < 0 on Dyck"
    noconv = [{"where": {"architecture": "mamba-noconv"}}]
    return [
        entry(
            "A1",
            "Recurrent and SSM rise late on Parity",
            "55, 60, 71, 100 %",
            "> 0",
            "profiles",
            revision=recipe,
        ),
        entry("A2", "Transformer rises gradually on Parity", "concentration .44", "< 0.6", "profiles"),
        entry("A4", "Recurrent and SSM build Dyck up", "Mamba's L0 73 %", "< 0.9", "strips"),
        entry("A5", "Reversal", ".58 against .44, .54 against 1.0", reversal, "profiles"),
        entry("A6", "S3 groups with Parity", "no number printed", "< 0", "profiles"),
        entry("A9", "The direction is needed", "large drops", "> 0.05", "directions", revision=refit),
        entry("A13", "Patching recovers", "97 to 98 %", "> 0.9", "patches"),
        entry("A15", "A refitted probe recovers", "everywhere", "> -0.02", "refits", margin=0.02),
        entry(
            "A10",
            "Conv1D by task",
            "-12.64 pp on S3",
            "< -0.02",
            "lengths",
            atoms=noconv,
            needs="Mamba without it",
        ),
        entry("A20", "The shape survives", "ours", "> 0", "recipes", table="recipes", needs="the recipe grid"),
        entry(
            "C1",
            "Specialists",
            "3.76 nats",
            "> 0.1",
            "sets",
            table="sets",
            needs="language models",
            study="sink",
        ),
    ]


def rows(claim, verdict, atoms, reason=""):
    """The row in sum, then the atoms; an atom is (cell, value, low, high, verdict, reason)."""
    total = atoms[0][1:4] if len(atoms) == 1 else (NAN, NAN, NAN)
    yield (claim, "encoding", -1, "all", "-", "see atoms", *total, 3, verdict, reason)
    for k, (cell, value, low, high, judged, why) in enumerate(atoms):
        yield (claim, "encoding", k, cell, "late_rise_margin", "> 0", value, low, high, 3, judged, why)


def fake_claims() -> pd.DataFrame:
    yes = [(cell, 0.31 + 0.01 * k, 0.28, 0.35, "reproduced", "") for k, cell in enumerate(FOUR)]
    no = [(cell, -0.12, -0.2, -0.04, "contradicted", "") for cell in FOUR]
    middle = [("parity, transformer", 0.55, 0.4, 0.7, "inconclusive", "")]
    many = [(f"parity, lstm, L{k}", 0.01 * k, 0.01 * k - 0.03, 0.01 * k + 0.03, "reproduced", "") for k in range(9)]
    some = [(cell, 0.001, -0.1, 0.1, "inconclusive", "") for cell in FOUR[:3]]
    lacking = "1 of 3 solved, needs 2"
    unsolved = [("s3, <transformer>", NAN, NAN, NAN, f"not evaluable ({lacking})", lacking)]
    fixed = [("final block", NAN, NAN, NAN, "by construction", "100 % there, 0 % later")]
    absent = [("s3, mamba-noconv", NAN, NAN, NAN, "not evaluable (no accuracy)", "no accuracy")]
    table = [
        *rows("A1", "reproduced", yes, "4 reproduced"),
        *rows("A2", "inconclusive", middle),
        *rows("A4", "contradicted", no),
        *rows("A5", "mixed (9 of 12)", [*many, *some], "9 reproduced, 3 inconclusive; descriptive (3 seeds)"),
        *rows("A6", f"not evaluable ({lacking})", unsolved),
        *rows("A9", "reproduced", yes),
        *rows("A13", "by construction", fixed),
        *rows("A15", "reproduced", many),
        *rows("A10", "not evaluable (no accuracy)", absent),
        *rows("C1", "not evaluable (table sets not computed)", []),
    ]
    return pd.DataFrame(table, columns=COLUMNS)
