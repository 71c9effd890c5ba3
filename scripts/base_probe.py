"""Fit the position + token probe of a task: what is known without any state. Cost: seconds."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import probing, tables
    from stateatlas.resampling import with_halves
    from stateatlas.seeds import stream
    from stateatlas.sequences import Sequences

    cfg = run.cfg
    rng = stream(cfg["root_seed"], "encoding", cfg["task"], "bootstrap", "base")
    cell = {"study": "encoding", "task": cfg["task"], "architecture": "-", "model": "-", "seed": -1}
    rows = []
    for row, right in probing.measure_base(Sequences(run.input.sequences), cfg["lengths"]):
        rows += with_halves([cell | row], right[None], rng, cfg["bootstrap"])
    tables.write(run.output.table, "probes", rows)
