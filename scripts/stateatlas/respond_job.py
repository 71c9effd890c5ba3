"""What one language model does with sources in its stream: the tables of claims B1 to B8."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from stateatlas import concentration, displacement, linearity, prompted, propagation, superposition
from stateatlas.field import Field
from stateatlas.over_prompts import Intervals
from stateatlas.seeds import derive, stream

log = logging.getLogger(__name__)


def respond(cfg: dict, weights: Path, tokens: Path | None, device: str) -> dict[str, list[dict]]:
    """Return the rows of the tables of claims B1 to B8 by name.

    cfg: family, architecture, eps, directions, places, pairs, slices, scales, draws, bootstrap, root_seed,
    and for prompts from text prompts and length.
    """
    model = prompted.load(weights, device)
    found, skipped = prompted.fields(cfg, model, weights, tokens)
    names = cfg["root_seed"], "response", cfg["architecture"]
    intervals = Intervals(cfg["bootstrap"], stream(*names, "intervals"))

    def each(experiment: str, measure: Callable) -> list:
        """Measure an experiment on every prompt, each with a random stream of its own."""
        done = [measure(i, field, stream(*names, experiment, i)) for i, field in enumerate(found)]
        log.info("%s: done", experiment)
        return done

    eps, places = cfg["eps"], cfg["places"]
    amplitudes = each("linearity", lambda i, f, rng: linearity.measure(f, eps, cfg["directions"], places, rng))
    sums = each("superposition", lambda i, f, rng: superposition.measure(f, eps, cfg["pairs"], rng))
    new = prompted.untrained(weights, derive(*names, "untrained"), device)
    cones = each("propagation", lambda i, f, rng: propagation.measure(f, places, rng))
    new_cones = each("untrained", lambda i, f, rng: propagation.measure(Field(new, f.prompt), places, rng))
    composed = each("composition", lambda i, f, rng: propagation.compose(f, max(1, places // 2), rng))
    slices = each("green", lambda i, f, rng: concentration.slices(f, cfg["slices"], rng))
    # Two prompts make a pair, so the second next is of another one.
    moves = each(
        "displacement",
        lambda i, f, rng: displacement.measure(f, found[(i + 2) % len(found)], cfg["scales"], cfg["draws"], rng),
    )
    made = {
        "linearity": linearity.linearity(amplitudes, eps, intervals),
        "prediction": linearity.prediction(amplitudes, eps, intervals),
        "effects": linearity.effects(amplitudes, eps),
        "superposition": superposition.rows(sums, eps, intervals),
        "propagation": propagation.propagation(cones, new_cones, intervals),
        "composition": propagation.composition(composed, intervals),
        "concentration": concentration.concentration([field.scores for field in found], intervals),
        "green": concentration.ranks(slices, intervals),
        "displacement": displacement.rows(moves, intervals),
        "prompts": _counted(found, skipped),
    }
    return {name: [prompted.cell(cfg) | row for row in rows] for name, rows in made.items()}


def _counted(found: list[Field], skipped: dict[str, int]) -> Iterator[dict]:
    """How many prompts of every set were used, and how many did not fit the tokenizer."""
    for name, number in skipped.items():
        used = sum(field.prompt.set == name for field in found)
        for metric, value in (("used", used), ("skipped", number)):
            yield {"set": name, "metric": metric, "value": float(value), "n": used}
