"""Teach a mini to find a needle. Cost: minutes."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas.teach_job import teach

    trained = run.input.weights / "trained"
    teach(run.cfg, trained, run.input.tokens, run.input.tokenizer, run.output.weights, run.work, run.device)
