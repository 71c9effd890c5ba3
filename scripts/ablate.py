"""Ablate a cell's trained model at every site; measure what all its models do at every length. Cost: minutes."""

from stateatlas.job import job

with job(snakemake) as run:
    import numpy as np
    import torch

    from stateatlas import ablation, behaviour, blocks, probes, tables, weights
    from stateatlas.resampling import with_halves
    from stateatlas.seeds import stream
    from stateatlas.sequences import Sequences

    cfg = run.cfg
    torch.set_num_threads(cfg["threads"])
    blocks.use_backend(cfg["block"], cfg.get("backend"))
    sequences = Sequences(run.input.sequences)
    rng = stream(cfg["root_seed"], "encoding", cfg["task"], "ablate", cfg["seed"])
    identity = {
        "study": "encoding",
        "task": cfg["task"],
        "architecture": cfg["architecture"],
        "seed": cfg["seed"],
    }

    rows, rights, observed = [], [], []
    for folder in sorted(path for path in run.input.weights.iterdir() if path.is_dir()):
        model = weights.load(folder).to(run.device)
        cell = identity | {"model": folder.name}
        for row, right in behaviour.measure(model, sequences, cfg["lengths"], cfg["bootstrap"], rng):
            observed.append(cell | row)
            if folder.name == "trained" and row["metric"] == "accuracy":
                clean = {"site": -1, "method": "clean", "subspace": "none", "k": 0, "draw": 0}
                rows.append(cell | clean | {"length": row["length"], "tokens": row["length"]})
                rights.append(right.sum(axis=1))
        if folder.name == "trained":
            directions = {site: probe.weights for site, probe in probes.load(run.input.probes).items()}
            states = run.input.states / "trained"
            for row, right in ablation.measure(model, sequences, states, directions, cfg, rng):
                rows.append(cell | row)
                rights.append(right)
    tables.write(run.output.behaviour, "behaviour", observed)
    tables.write(run.output.table, "ablations", with_halves(rows, np.stack(rights), rng, cfg["bootstrap"]))
