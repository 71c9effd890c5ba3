"""Sources in the stream of a language model, and what they do (claims B1 to B8). Cost: minutes to hours."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import adapters, tables
    from stateatlas.loop import use_device
    from stateatlas.respond_job import respond

    cfg = run.cfg | {"architecture": run.cfg["model"]}
    use_device(run.device, cfg["threads"])
    adapters.use_backend(cfg["family"], "torch")  # the compiled kernels have no forward derivative
    [weights], tokens = run.input.weights, next(iter(run.input.tokens), None)
    for name, rows in respond(cfg, weights / "trained", tokens, run.device).items():
        tables.write(getattr(run.output, name), name, rows)
