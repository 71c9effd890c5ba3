"""Ablate a cell's trained model at every site. Cost: seconds to minutes."""

from stateatlas.job import job

with job(snakemake) as run:
    import numpy as np
    import torch

    from stateatlas import ablation, drops, probes, tables, weights
    from stateatlas.resampling import with_halves
    from stateatlas.seeds import stream
    from stateatlas.sequences import Sequences

    cfg = run.cfg
    torch.set_num_threads(cfg["threads"])
    weights.use_backend(cfg)
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

    length = cfg["train_length"]
    at_length = [(row, right) for row, right in zip(rows, rights, strict=True) if row["length"] == length]
    clean = next(right for row, right in at_length if row["method"] == "clean")
    single = {
        row["site"]: right
        for row, right in at_length
        if (row["method"], row["subspace"]) == ("zero", "top_direction") and row["site"] > 0
    }
    known = tables.read(run.input.accuracy, "probes")
    known = known[(known["model"] == "trained") & (known["target"] == "state") & (known["control"] == "none")]
    read = known[(known["half"] == "selection") & (known["site"] > 0)].set_index("site")["value"].to_dict()
    whole = cell | {"family": cfg.get("family", "formal"), "length": length}
    whole |= {"n": (len(clean) - len(clean) // 2) * length}
    names = ("site", "metric", "value", "low", "high")
    found = drops.measure(clean, single, read, length, cfg["bootstrap"], rng)
    tables.write(run.output.drops, "drops", [whole | dict(zip(names, row, strict=True)) for row in found])
