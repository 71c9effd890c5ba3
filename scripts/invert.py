"""The sparsest source that changes the answer as wanted, beside exhaustive patching (B9). Cost: a minute to an hour."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import adapters, tables
    from stateatlas.invert_job import invert
    from stateatlas.loop import use_device

    cfg = run.cfg | {"architecture": run.cfg["model"]}
    use_device(run.device, cfg["threads"])
    adapters.use_backend(cfg["family"], "torch")
    [weights], tokens = run.input.weights, next(iter(run.input.tokens), None)
    tables.write(run.output.table, "inverse", invert(cfg, weights / "trained", tokens, run.device))
