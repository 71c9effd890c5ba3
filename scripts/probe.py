"""Fit probes at every site of a cell's models, with controls. Cost: seconds to minutes."""

from stateatlas.job import job

with job(snakemake) as run:
    import numpy as np

    from stateatlas import probes, probing, tables
    from stateatlas.resampling import with_halves
    from stateatlas.seeds import stream
    from stateatlas.sequences import Sequences

    cfg = run.cfg
    sequences = Sequences(run.input.sequences)
    rng = stream(cfg["root_seed"], "encoding", cfg["task"], "probe", cfg["seed"])
    rows, rights = [], []
    for folder in sorted(run.input.states.iterdir()):
        trained = folder.name == "trained"
        if not (trained or cfg["controls"]):
            continue
        identity = {"study": "encoding", "task": cfg["task"], "architecture": cfg["architecture"]}
        cell = identity | {"model": folder.name, "seed": cfg["seed"]}
        controls = ("none", "shuffled_labels") if trained and cfg["controls"] else ("none",)
        fitted = {}
        for row, right, probe in probing.measure(folder, sequences, cfg["train_length"], controls, rng):
            rows.append(cell | row)
            rights.append(right)
            if row["target"] == "state" and row["control"] == "none":
                fitted[row["site"]] = probe
        if trained:
            probes.save(run.output.probes, fitted)
    tables.write(run.output.table, "probes", with_halves(rows, np.stack(rights), rng, cfg["bootstrap"]))
