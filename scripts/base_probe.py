"""Fit the position + token probe of a task: what is known without any state. Cost: seconds."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import probing, tables
    from stateatlas.balance import balanced_accuracy
    from stateatlas.resampling import with_halves
    from stateatlas.seeds import stream
    from stateatlas.sequences import Sequences

    cfg = run.cfg
    rng = stream(cfg["root_seed"], "encoding", cfg["task"], "bootstrap", "base")
    cell = {"study": "encoding", "task": cfg["task"], "architecture": "-", "model": "-", "seed": -1}
    rows = []
    for row, hits, labels in probing.measure_base(Sequences(run.input.sequences), cfg["lengths"]):
        known = cell | row
        rows += with_halves([known | {"tokens": row["length"]}], hits.sum(axis=1)[None], rng, cfg["bootstrap"])
        balanced = {"half": "both", "metric": "balanced_accuracy", "value": balanced_accuracy(hits, labels)}
        rows.append(known | balanced | {"n": hits.size, "low": float("nan"), "high": float("nan")})
    tables.write(run.output.table, "probes", rows)
