"""One mini, taught to find needles."""

import json
import logging
from pathlib import Path

from stateatlas import adapters, annotation, minis, packing
from stateatlas.checkpoint import Checkpoint
from stateatlas.loop import resume, train, use_device
from stateatlas.packing import Documents
from stateatlas.teaching import Encoder, Recipe, Trainer

log = logging.getLogger(__name__)
ENOUGH = 0.95  # of the prompts that a taught mini must answer (protocol)


def teach(cfg: dict, weights: Path, tokens: Path, tokenizer: Path, folder: Path, work: Path, device: str) -> None:
    """Teach the model in `weights` and write `taught` (with the tokenizer) and `history.json` to `folder`.

    tokens: the file of token ids that `Documents` reads.
    """
    use_device(device, cfg["threads"])
    adapters.use_backend(cfg["family"], cfg.get("backend"))
    chosen = dict(cfg["teaching"])
    windows, length, validation = (chosen.pop(key) for key in ("language_batch", "language_length", "validation"))
    recipe, names = Recipe(**chosen | {"stages": tuple(chosen["stages"])}), ("sink", "teach", cfg["model"])
    model = adapters.load(weights).to(device).requires_grad_(True).train()
    documents = Documents(tokens).get("train")

    def texts():
        return packing.batches(documents, windows, length, cfg["root_seed"], names)

    encoder = Encoder(annotation.tokenizer(weights))
    trainer = Trainer(model, encoder, texts, recipe, validation, cfg["root_seed"], names)
    checkpoint = Checkpoint(work)
    resume(trainer, checkpoint)
    train(trainer, trainer.run(), checkpoint)
    accuracy = trainer.validated()
    log.info("%.0f%% of validation prompts answered after %d steps", 100 * accuracy, trainer.step)
    if accuracy < ENOUGH:
        log.warning("fewer than the %.0f%% asked for: raise sink.teaching.steps", 100 * ENOUGH)
    minis.save(model, tokenizer, folder / "taught")
    history = {"steps": trainer.step, "rows": trainer.history, "validation_accuracy": accuracy}
    (folder / "history.json").write_text(json.dumps(history, sort_keys=True) + "\n")
