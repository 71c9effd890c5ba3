"""Cross-scale transfer between two language models of one family: the table of claim B10."""

from pathlib import Path

from stateatlas import prompted, transferring
from stateatlas.field import Field
from stateatlas.over_prompts import Intervals
from stateatlas.seeds import stream


def transfer(cfg: dict, weights: dict[str, Path], tokens: Path | None, device: str) -> list[dict]:
    """Return the rows of the table `transfer` (B10). weights: of the models "small" and "large"."""
    small, large = (prompted.load(weights[name], device) for name in ("small", "large"))
    found, _ = prompted.fields(cfg, large, weights["large"], tokens)
    names = cfg["root_seed"], "response", cfg["architecture"], "transfer"
    measured = [
        transferring.measure(Field(small, field.prompt), field, cfg["anchors"], stream(*names, i))
        for i, field in enumerate(found)
    ]
    intervals = Intervals(cfg["bootstrap"], stream(*names, "intervals"))
    cell = prompted.cell(cfg) | {"source": cfg["small"]}
    return [cell | row for row in transferring.rows(measured, cfg["anchors"], intervals)]
