"""Train one cell: initial weights, weights at the stop, for seed 0 also weights at the cap. Cost: seconds to hours."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas.cell import train_cell

    train_cell(run.cfg, run.input.sequences, run.input.corpus or None, run.output.weights, run.work, run.device)
