"""What sets of units cost: the loss after a boundary token under every intervention. Cost: minutes to days."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import adapters, tables
    from stateatlas.activity import Activity
    from stateatlas.effects_job import grid
    from stateatlas.loop import use_device

    cfg = run.cfg | {"architecture": run.cfg["model"]}
    checkpoint = next(iter(run.input.checkpoint))
    use_device(run.device, cfg["threads"])
    adapters.use_backend(cfg["family"], cfg.get("backend"))
    activity = Activity.load(run.input.activity / "trained.safetensors")
    effects, cells = grid(cfg, checkpoint / "trained", run.input.corpus, activity, run.work, run.device)
    tables.write(run.output.effects, "interventions", effects)
    tables.write(run.output.cells, "cells", cells)
