"""One cell of study A, trained: a task, an architecture and a seed."""

import json
from pathlib import Path

from stateatlas import blocks, tasks, weights
from stateatlas.checkpoint import Checkpoint
from stateatlas.loop import resume, train, use_device
from stateatlas.residual import ResidualModel, matched_shape
from stateatlas.seeds import derive
from stateatlas.sequences import Sequences
from stateatlas.training import Batches, Recipe, Trainer, initialise


def train_cell(cfg: dict, sequences: Path, corpus: Path | None, folder: Path, work: Path, device: str) -> None:
    """Train a cell and write `untrained`, `trained`, for seed 0 also `capped`, and `history.json` to `folder`.

    corpus: the file that the task reads, if any.
    `capped` is the same training carried on to the cap, so that a reader sees what the stop rule does.
    """
    use_device(device, cfg["threads"])
    blocks.use_backend(cfg["block"], cfg.get("backend"))
    task = tasks.load(cfg["strings"], cfg["train_length"], cfg["target"], corpus)
    held_out = Sequences(sequences)
    recipe = Recipe(**cfg["recipe"])
    model = _new_model(cfg, task, recipe).to(device)
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


def _new_model(cfg: dict, task, recipe: Recipe) -> ResidualModel:
    shape = matched_shape(
        cfg["block"], cfg["width"], cfg["layers"], task.vocabulary, task.targets["state"], **cfg["form"]
    )
    return initialise(
        shape,
        recipe,
        derive(cfg["root_seed"], "encoding", cfg["task"], cfg["architecture"], "weights", cfg["seed"]),
    )
