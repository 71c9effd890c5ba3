"""The inverse problem of one language model: the table of claim B9."""

import logging
from pathlib import Path

from stateatlas import inversion, prompted
from stateatlas.over_prompts import Intervals
from stateatlas.seeds import stream

log = logging.getLogger(__name__)
OTHERS = 4  # unrelated prompts that a side effect is measured on


def invert(cfg: dict, weights: Path, tokens: Path | None, device: str) -> list[dict]:
    """Return the rows of the table `inverse` (B9): whole solutions where `sources` is 0, else their first so many."""
    model = prompted.load(weights, device)
    found, _ = prompted.fields(cfg, model, weights, tokens)
    intervals = Intervals(cfg["bootstrap"], stream(cfg["root_seed"], "response", cfg["architecture"], "inverse"))
    solved = []
    for i, field in enumerate(found):
        problem = inversion.Problem(field)
        most = min(cfg["front"], problem.number)
        solutions = {
            "sparse": problem.sparse(), "top": problem.top(most), "exhaustive": problem.exhaustive(most),
        }  # fmt: skip
        others = [found[(i + 2 + k) % len(found)] for k in range(OTHERS)]
        solved.append((problem, solutions, {name: inversion.side_effect(s, others) for name, s in solutions.items()}))
    log.info("solved for %d prompts", len(solved))
    return [prompted.cell(cfg) | row for row in inversion.rows(solved, cfg["front"], intervals)]
