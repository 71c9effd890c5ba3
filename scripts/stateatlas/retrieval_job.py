"""The needle test of one language model, an arm at a time. A killed job goes on at the arm."""

import logging
import time
from pathlib import Path

import torch

from stateatlas import adapters, annotation, retrieval
from stateatlas.activity import Activity
from stateatlas.checkpoint import Checkpoint
from stateatlas.packing import BOS
from stateatlas.seeds import stream
from stateatlas.signatures import sets, signatures
from stateatlas.teaching import Encoder

log = logging.getLogger(__name__)


def find(cfg: dict, weights: Path, activity: Activity, work: Path, device: str) -> list[dict]:
    """Return the rows of the table `needles`.

    cfg: model, family, state ("taught" or "trained"), needles (see config.yaml), essay, root_seed, bootstrap.
    """
    model, chosen = adapters.load(weights).to(device), cfg["needles"]
    encoder = Encoder(annotation.tokenizer(weights), model.hub.config.bos_token_id or BOS)
    essay = Path(cfg["essay"]).read_text(encoding="utf-8").split() if cfg["essay"] else []
    names = cfg["root_seed"], "sink", "needles"
    found, means = sets(signatures(activity)), activity.means()
    arms = retrieval.arms(found, chosen["draws"], stream(*names, "draws", cfg["model"]))
    checkpoint = Checkpoint(work)
    known, rows = checkpoint.load() or {}, []
    common = {
        "study": "sink", "architecture": cfg["model"], "family": cfg["family"], "seed": 0,
        "corpus": chosen["corpus"], "class": "bos", "intervention": chosen["intervention"], "span": "all",
    }  # fmt: skip
    for length in chosen["lengths"]:
        # The same prompts for every model with this tokenizer.
        given = retrieval.samples(chosen, length, encoder, essay, stream(*names, "prompts", length))
        for number, ((arm, draw), members) in enumerate(arms.items(), start=1):
            key, started = f"{length} {arm} {draw}", time.monotonic()
            if key not in known:
                answered = retrieval.asked(
                    model, encoder, given, members, chosen["intervention"], means, chosen["generated"]
                )
                known[key] = [torch.from_numpy(part) for part in answered]
                checkpoint.save(known)
            log.info(
                "%d tokens, arm %d of %d, %s: %.0f%% found, %.1f s",
                length, number, len(arms), arm, 100 * known[key][0].mean().item(), time.monotonic() - started,
            )  # fmt: skip
        results = {arm: tuple(part.numpy() for part in known[f"{length} {arm[0]} {arm[1]}"]) for arm in arms}
        rng = stream(*names, "bootstrap", cfg["model"], length)
        rows += [
            common | {"length": length} | row for row in retrieval.rows(results, given.depths, rng, cfg["bootstrap"])
        ]
    return rows
