"""Erase what probes find at every site of a cell's trained model, and see what it costs. Cost: seconds to minutes."""

from stateatlas.job import job

with job(snakemake) as run:
    import numpy as np
    import torch

    from stateatlas import erasure, necessity, states, tables, weights
    from stateatlas.ablation import Site
    from stateatlas.resampling import with_halves
    from stateatlas.seeds import stream
    from stateatlas.sequences import Sequences

    cfg = run.cfg
    length, sequences = cfg["train_length"], Sequences(run.input.sequences)
    torch.set_num_threads(cfg["threads"])
    weights.use_backend(cfg)
    rng = stream(cfg["root_seed"], "encoding", cfg["task"], "erase", cfg["seed"])
    identity = {"study": "encoding", "task": cfg["task"], "architecture": cfg["architecture"]}
    cell = identity | {"model": "trained", "seed": cfg["seed"]}
    base = tables.read(run.input.base, "probes")
    chosen = (base["target"] == "state") & (base["half"] == "selection") & (base["length"] == length)
    labels = {split: sequences.get(split, length, "state") for split in ("fit", "test")}
    majority = np.bincount(labels["test"][: len(labels["test"]) // 2].ravel()).max() / (labels["test"].size // 2)
    floor = max(majority, base.loc[chosen, "value"].item())

    model = weights.load(run.input.weights / "trained").to(run.device)
    rows, rights, sites = [], [], {}
    for site in range(model.sites):
        fitted, tested = (np.array(states.load(run.input.states / "trained", split, site)) for split in ("fit", "test"))
        place = Site(model, site, tested, labels["test"], fitted.mean(axis=(0, 1)))
        sites[site] = list(erasure.erase(place, (fitted, labels["fit"]), floor, cfg["random_draws"], rng))
        for found in sites[site]:
            row = {"length": length, "site": site, "eraser": found.eraser, "k": found.k, "draw": found.draw}
            for metric, right in (("probe_accuracy", found.probe), ("accuracy", found.task)):
                if right is not None:
                    rows.append(cell | row | {"metric": metric, "tokens": length})
                    rights.append(right)
    del sites[0]  # the embedding is no block, so it is no layer to be needed
    tables.write(run.output.table, "erasures", with_halves(rows, np.stack(rights), rng, cfg["bootstrap"]))
    n = len(labels["test"]) - len(labels["test"]) // 2
    tables.write(
        run.output.damage,
        "inlp",
        [
            cell
            | {"family": cfg.get("family", "formal"), "length": length, "site": site, "metric": metric, "value": value}
            | {"n": n * length, "low": low, "high": high}
            for site, metric, value, low, high in necessity.measure(sites, length, cfg["bootstrap"], rng)
        ],
    )
