"""Bring a checkpoint here: from the hub at a pinned commit, or from a directory. Cost: a download."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import pretrained

    pretrained.fetch(run.cfg["place"], run.cfg["revision"], run.output.weights / "trained")
