"""Draw the sequences of one task. Cost: seconds."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import sequences, tasks

    cfg = run.cfg
    task = tasks.load(cfg["strings"], cfg["train_length"], cfg["target"], next(iter(run.input.corpus), None))
    sizes = {split: cfg[split] for split in ("validation", "fit", "test", "pairs")}
    arrays = sequences.draw(task, cfg["strings"], cfg["root_seed"], cfg["train_length"], cfg["lengths"], sizes)
    sequences.save(run.output.sequences, arrays)
