"""Fit probes again after their subspace is taken out (the revision's control). Cost: seconds to minutes."""

from stateatlas.job import job

with job(snakemake) as run:
    import numpy as np

    from stateatlas import probes, refit, states, tables
    from stateatlas.resampling import with_halves
    from stateatlas.seeds import stream
    from stateatlas.sequences import Sequences

    cfg = run.cfg
    length, sequences = cfg["train_length"], Sequences(run.input.sequences)
    rng = stream(cfg["root_seed"], "encoding", cfg["task"], "refit", cfg["seed"])
    identity = {"study": "encoding", "task": cfg["task"], "architecture": cfg["architecture"]}
    cell = identity | {"model": "trained", "seed": cfg["seed"], "length": length, "target": "state"}
    rows, rights = [], []
    for site, probe in probes.load(run.input.probes).items():
        fit_set, test_set = (
            (
                np.array(states.load(run.input.states / "trained", split, site)),
                sequences.get(split, length, "state"),
            )
            for split in ("fit", "test")
        )
        for row, right in refit.measure(probe, fit_set, test_set, rng):
            rows.append(cell | {"site": site} | row)
            rights.append(right)
    tables.write(run.output.table, "refits", with_halves(rows, np.stack(rights), rng, cfg["bootstrap"]))
