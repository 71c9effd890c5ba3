"""Patch activations between pairs of strings in a cell's trained model. Cost: seconds."""

from stateatlas.job import job

with job(snakemake) as run:
    import torch

    from stateatlas import patching, tables, weights
    from stateatlas.seeds import stream
    from stateatlas.sequences import Sequences

    cfg = run.cfg
    torch.set_num_threads(cfg["threads"])
    weights.use_backend(cfg)
    rng = stream(cfg["root_seed"], "encoding", cfg["task"], "patch", cfg["seed"])
    model = weights.load(run.input.weights / "trained").to(run.device)
    measured = list(patching.measure(model, Sequences(run.input.sequences), cfg["train_length"]))
    cell = {"study": "encoding", "task": cfg["task"], "architecture": cfg["architecture"]}
    cell |= {"model": "trained", "seed": cfg["seed"], "length": cfg["train_length"]}
    cell |= {"family": cfg.get("family", "formal")}
    tables.write(run.output.table, "patches", [cell | row for row in patching.rows(measured, cfg["bootstrap"], rng)])
