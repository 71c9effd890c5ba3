"""One cell of study A, trained: a task, an architecture and a seed."""

import json
from pathlib import Path

from stateatlas import weights
from stateatlas.checkpoint import Checkpoint
from stateatlas.loop import resume, train
from stateatlas.residual import Residual
from stateatlas.sequences import Sequences
from stateatlas.training import Batches, Recipe, Trainer


def train_cell(cfg: dict, task, model: Residual, sequences: Path, folder: Path, work: Path) -> None:
    """Train `model` and write `untrained`, `trained`, where cfg says so also `capped`, and `history.json` to `folder`.

    `capped` is the same training carried on to the cap, so that a reader sees what the stop rule does.
    """
    held_out, recipe = Sequences(sequences), Recipe(**cfg["recipe"])
    validation = [held_out.get("validation", cfg["train_length"], key) for key in ("tokens", "state")]
    test = held_out.get("test", cfg["train_length"])
    names = ("encoding", cfg["strings"], "train", cfg["seed"])
    batches = Batches(task, recipe, held_out.evaluated(cfg["train_length"]), cfg["root_seed"], names)
    trainer = Trainer(model, batches, recipe, validation, test)
    checkpoint = Checkpoint(work)
    weights.save(model, folder / "untrained")
    resume(trainer, checkpoint)
    train(trainer, trainer.run(cfg["to_cap"]), checkpoint)
    if cfg["to_cap"]:
        weights.save(model, folder / "capped")
    if trainer.stop is not None:
        model.load_state_dict(trainer.stop["model"])
    weights.save(model, folder / "trained")
    stop = trainer.stop or {"step": trainer.step, "covered_prefix": trainer.coverage.covered_prefix()}
    history = {
        "stop_step": stop["step"],
        "cap": recipe.steps,
        "stopped": trainer.stop is not None,
        "covered_prefix": stop["covered_prefix"],
        "rows": trainer.history,
    }
    (folder / "history.json").write_text(json.dumps(history, sort_keys=True) + "\n")
