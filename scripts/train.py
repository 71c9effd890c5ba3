"""Train one cell: initial weights, weights at the stop, for seed 0 also weights at the cap. Cost: seconds to hours."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import blocks, tasks
    from stateatlas.cell import train_cell
    from stateatlas.loop import use_device
    from stateatlas.residual import matched_shape
    from stateatlas.seeds import derive
    from stateatlas.training import Recipe, initialise

    cfg = run.cfg
    use_device(run.device, cfg["threads"])
    blocks.use_backend(cfg["block"], cfg.get("backend"))
    task = tasks.load(cfg["strings"], cfg["train_length"], cfg["target"], next(iter(run.input.corpus), None))
    sizes = cfg["width"], cfg["layers"], task.vocabulary, task.targets["state"]
    shape = matched_shape(cfg["block"], *sizes, **cfg["form"])
    seed = derive(cfg["root_seed"], "encoding", cfg["task"], cfg["architecture"], "weights", cfg["seed"])
    model = initialise(shape, Recipe(**cfg["recipe"]), seed)
    train_cell(cfg, task, model.to(run.device), run.input.sequences, run.output.weights, run.work)
