"""Run a cell's models over the held-out sequences: states at every site, behaviour at every length. Cost: seconds."""

from stateatlas.job import job

with job(snakemake) as run:
    import torch

    from stateatlas import behaviour, recording, tables, weights
    from stateatlas.seeds import stream
    from stateatlas.sequences import Sequences

    cfg = run.cfg
    torch.set_num_threads(cfg["threads"])
    weights.use_backend(cfg)
    sequences = Sequences(run.input.sequences)
    rng = stream(cfg["root_seed"], "encoding", cfg["task"], "record", cfg["seed"])
    rows = []
    for folder in sorted(path for path in run.input.weights.iterdir() if path.is_dir()):
        model = weights.load(folder).to(run.device)
        for split in ("fit", "test"):
            recording.record(model, sequences.get(split, cfg["train_length"]), run.output.states / folder.name, split)
        identity = {"study": "encoding", "task": cfg["task"], "architecture": cfg["architecture"]}
        cell = identity | {"model": folder.name, "seed": cfg["seed"]}
        rows += [cell | row for row in behaviour.measure(model, sequences, cfg["lengths"], cfg["bootstrap"], rng)]
    tables.write(run.output.behaviour, "behaviour", rows)
