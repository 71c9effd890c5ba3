"""Predict where a large model is sensitive from a small one of its family (B10). Cost: seconds to minutes."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import adapters, tables
    from stateatlas.loop import use_device
    from stateatlas.transfer_job import transfer

    cfg = run.cfg | {"architecture": run.cfg["model"]}
    use_device(run.device, cfg["threads"])
    adapters.use_backend(cfg["family"], "torch")
    weights = {name: path / "trained" for name, path in zip(("large", "small"), run.input.weights, strict=True)}
    tokens = next(iter(run.input.tokens), None)
    tables.write(run.output.table, "transfer", transfer(cfg, weights, tokens, run.device))
