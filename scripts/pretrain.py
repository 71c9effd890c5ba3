"""Train one mini: initial weights, weights after the last step, its loss beside a bigram model's. Cost: minutes."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas.mini_job import pretrain

    pretrain(run.cfg, run.input.tokens, run.input.tokenizer, run.output.weights, run.work, run.device)
