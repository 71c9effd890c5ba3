"""The grid of one model and corpus: windows, sets, cells, and what they cost. A killed job goes on at the cell."""

import logging
import time
from pathlib import Path

import numpy as np
import torch

from stateatlas import adapters, annotation, effects, unit_cells, units
from stateatlas.activity import Activity
from stateatlas.checkpoint import Checkpoint
from stateatlas.corpora import file
from stateatlas.job import InputError
from stateatlas.loop import EVERY
from stateatlas.seeds import stream
from stateatlas.signatures import NAMED, sets, signatures
from stateatlas.spans import Windows
from stateatlas.token_classes import CLASSES

log = logging.getLogger(__name__)
FEWEST = 10  # windows


def grid(
    cfg: dict, weights: Path, corpus: Path, activity: Activity, work: Path, device: str
) -> tuple[list[dict], list[dict]]:
    """Return the rows of the tables `interventions` and `cells`.

    cfg: family, architecture, corpus, boundaries, controlled, windows, context, draws,
    bootstrap, root_seed.

    Raises
    ------
    InputError
        If the corpus has too few windows around a boundary.
    """
    model = adapters.load(weights).to(device)
    documents = annotation.annotate(annotation.tokenizer(weights), file.read(corpus, "test", "text"))
    checkpoint = Checkpoint(work)
    known = checkpoint.load() or {}
    cell = {"study": "sink", "seed": 0} | {key: cfg[key] for key in ("architecture", "family", "corpus")}
    rows, cells = [], []
    for boundary in cfg["boundaries"]:
        names = cfg["root_seed"], "sink", boundary, cfg["corpus"]
        place = stream(*names, "windows")  # the same windows for every model with this tokenizer
        tokens, origin = annotation.windows(documents, boundary, cfg["context"], cfg["windows"], place)
        if len(tokens) < FEWEST:
            raise InputError(
                f"corpus {cfg['corpus']}: {len(tokens)} windows of {cfg['context']} tokens around a {boundary}, "
                f"{FEWEST} are needed: add text to it or shorten sink.context in config.yaml"
            )
        rng = stream(*names, "draws", cfg["architecture"])
        chosen, planned = cells_of(cfg, boundary, activity, rng)
        losses = known.setdefault(boundary, torch.full((len(planned), len(tokens)), torch.nan, dtype=torch.float64))
        windows = Windows(model, tokens, cfg["context"] - 1 - annotation.MEASURED, activity.means())
        _fill(windows, planned, chosen, losses.numpy(), lambda: checkpoint.save(known))
        rows += [cell | row for row in effects.summary(planned, losses.numpy(), origin, rng, cfg["bootstrap"])]
        cells += [cell | row for row in effects.planned(planned, chosen, losses.numpy())]
    return rows, cells


def cells_of(
    cfg: dict, boundary: str, activity: Activity, rng: np.random.Generator
) -> tuple[effects.Draws, list[unit_cells.Cell]]:
    """Return the sets and the planned cells of a boundary class. cfg: family, draws, controlled."""
    signature, norms = signatures(activity), activity.norm[CLASSES.index(boundary)]
    own = signature[NAMED.index(boundary)]
    chosen = effects.draw_sets(sets(signature), boundary, own, norms, cfg["draws"], rng)
    applicable = units.family(cfg["family"]).INTERVENTIONS
    return chosen, unit_cells.plan(applicable, boundary, effects.sizes(chosen), cfg["controlled"])


def _fill(windows: Windows, planned: list, chosen: dict, losses: np.ndarray, save) -> None:
    """Evaluate the cells that are still open, saving now and then and saying how far it is."""
    open_cells = sum(cell.status == "planned" for cell in planned) - int((~np.isnan(losses).all(axis=1)).sum())
    log.info("%d cells planned, %d to evaluate", len(planned), open_cells)
    started = saved = told = time.monotonic()
    for done, _ in enumerate(effects.evaluate(windows, planned, chosen, losses), start=1):
        now = time.monotonic()
        if now - saved > EVERY:
            save()
            saved = now
        if now - told > 10 or done == open_cells:
            rate = (now - started) / done
            log.info("cell %d of %d, at most %.0f s left", done, open_cells, rate * (open_cells - done))
            told = now
