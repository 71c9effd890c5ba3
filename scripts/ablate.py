"""Ablate a cell's trained model at every site. Cost: seconds to minutes."""

from stateatlas.job import job

with job(snakemake) as run:
    import numpy as np
    import torch

    from stateatlas import ablation, blocks, probes, tables, weights
    from stateatlas.resampling import with_halves
    from stateatlas.seeds import stream
    from stateatlas.sequences import Sequences

    cfg = run.cfg
    torch.set_num_threads(cfg["threads"])
    blocks.use_backend(cfg["block"], cfg.get("backend"))
    sequences = Sequences(run.input.sequences)
    rng = stream(cfg["root_seed"], "encoding", cfg["task"], "ablate", cfg["seed"])
    identity = {"study": "encoding", "task": cfg["task"], "architecture": cfg["architecture"]}
    cell = identity | {"model": "trained", "seed": cfg["seed"]}
    model = weights.load(run.input.weights / "trained").to(run.device)
    directions = {site: probe.weights for site, probe in probes.load(run.input.probes).items()}
    rows, rights = [], []
    for row, right in ablation.measure(model, sequences, run.input.states / "trained", directions, cfg, rng):
        rows.append(cell | row)
        rights.append(right)
    tables.write(run.output.table, "ablations", with_halves(rows, np.stack(rights), rng, cfg["bootstrap"]))
