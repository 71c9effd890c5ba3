"""Tune a language model on one task: its weights before and after. Cost: minutes to hours."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import adapters, finetuned, tasks
    from stateatlas.cell import train_cell
    from stateatlas.loop import use_device
    from stateatlas.seeds import derive

    cfg = run.cfg
    use_device(run.device, cfg["threads"])
    adapters.use_backend(cfg["family"], cfg.get("backend"))
    task = tasks.load(cfg["strings"], cfg["train_length"], cfg["target"], next(iter(run.input.corpus), None))
    seed = derive(cfg["root_seed"], "encoding", cfg["task"], cfg["architecture"], "weights", cfg["seed"])
    model = finetuned.build(run.input.checkpoint[0] / "trained", task, seed)
    train_cell(cfg, task, model.to(run.device), run.input.sequences, run.output.weights, run.work)
