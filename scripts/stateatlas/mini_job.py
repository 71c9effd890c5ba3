"""One mini, trained, and its held-out loss beside a bigram model's."""

import json
import logging
from pathlib import Path

import numpy as np

from stateatlas import adapters, bigram, minis, packing
from stateatlas.checkpoint import Checkpoint
from stateatlas.loop import resume, train, use_device
from stateatlas.packing import Documents
from stateatlas.pretraining import Recipe, Trainer, held_out_loss
from stateatlas.seeds import derive, stream

log = logging.getLogger(__name__)
ENOUGH = 0.2  # nats a token that a mini must be better than the bigram model to be worth studying (protocol)


def pretrain(cfg: dict, tokens: Path, tokenizer: Path, folder: Path, work: Path, device: str) -> None:
    """Train a mini and write `untrained`, `trained` (with the tokenizer) and `history.json` to `folder`.

    tokens: the file of token ids that `Documents` reads. `history.json` holds the training curve and, at the end, the
    held-out loss beside the bigram model's; `good_enough` says whether the mini passes, which stops nothing here.
    """
    use_device(device, cfg["threads"])
    adapters.use_backend(cfg["mini"]["family"], cfg.get("backend"))
    recipe, root = Recipe(**cfg["recipe"]), cfg["root_seed"]
    names = ("minis", "train", cfg["seed"])  # the same batches for every mini
    documents = Documents(tokens)
    training = documents.get("train")
    held_out = {
        split: packing.windows(documents.get(split), recipe.length, stream(root, "minis", split))[: cfg["held_out"]]
        for split in ("validation", "test")
    }
    model = minis.build(minis.Mini(**cfg["mini"]), derive(root, "minis", "weights", cfg["name"], cfg["seed"]))
    minis.save(model, tokenizer, folder / "untrained")
    trainer = Trainer(model.to(device), training, recipe, held_out["validation"], root, names)
    checkpoint = Checkpoint(work)
    resume(trainer, checkpoint)
    train(trainer, trainer.run(), checkpoint)
    minis.save(model, tokenizer, folder / "trained")
    table = bigram.fit(next(packing.passes(training, recipe.length, root, names)), cfg["mini"]["vocabulary"])
    history = {"steps": trainer.step, "rows": trainer.history} | _compared(trainer, held_out, table)
    (folder / "history.json").write_text(json.dumps(history, sort_keys=True) + "\n")


def _compared(trainer: Trainer, held_out: dict[str, np.ndarray], table: np.ndarray) -> dict:
    """Return the nats a token of the mini and of the bigram model, by split, and the verdict on the test split."""
    found = {}
    for split, windows in held_out.items():
        found[f"{split}_nats"] = held_out_loss(trainer.model, windows, trainer.recipe.batch)
        found[f"bigram_{split}_nats"] = bigram.loss(table, windows)
    gain = found["bigram_test_nats"] - found["test_nats"]
    found |= {"gain": gain, "good_enough": gain >= ENOUGH, "held_out_windows": len(held_out["test"])}
    log.info("test: %.3f nats a token, bigram model %.3f", found["test_nats"], found["bigram_test_nats"])
    if not found["good_enough"]:
        log.warning(
            "%.2f nats better than the bigram model, %.1f are needed: not good enough to study; raise steps",
            gain, ENOUGH,
        )  # fmt: skip
    return found
