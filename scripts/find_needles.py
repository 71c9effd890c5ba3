"""Ask a language model for needles, with and without sets of its units. Cost: minutes to hours."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import adapters, tables
    from stateatlas.activity import Activity
    from stateatlas.loop import use_device
    from stateatlas.retrieval_job import find

    cfg = run.cfg
    use_device(run.device, cfg["threads"])
    adapters.use_backend(cfg["family"], cfg.get("backend"))
    [weights], [observed] = run.input.weights, run.input.activity
    activity = Activity.load(observed / f"{cfg['state']}.safetensors")
    tables.write(run.output.table, "needles", find(cfg, weights / cfg["state"], activity, run.work, run.device))
