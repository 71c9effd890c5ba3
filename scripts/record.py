"""Record the states of a cell's models at every site. Cost: seconds."""

from stateatlas.job import job

with job(snakemake) as run:
    import torch

    from stateatlas import blocks, states, weights
    from stateatlas.sequences import Sequences

    torch.set_num_threads(run.cfg["threads"])
    blocks.use_backend(run.cfg["block"], run.cfg.get("backend"))
    sequences = Sequences(run.input.sequences)
    for folder in sorted(path for path in run.input.weights.iterdir() if path.is_dir()):
        model = weights.load(folder).to(run.device)
        for split in ("fit", "test"):
            states.record(model, sequences.get(split, run.cfg["train_length"]), run.output.states / folder.name, split)
