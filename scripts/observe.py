"""What every unit of a language model does at the tokens of every class of a corpus. Cost: seconds to hours."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import activity, adapters, annotation
    from stateatlas.corpora import file
    from stateatlas.loop import use_device
    from stateatlas.seeds import stream

    cfg = run.cfg
    checkpoint = next(iter(run.input.checkpoint))
    use_device(run.device, cfg["threads"])
    adapters.use_backend(cfg["family"], cfg.get("backend"))
    folders = sorted(path for path in checkpoint.iterdir() if path.is_dir())
    tokenizer = annotation.tokenizer(folders[0])
    # Sets are derived on the validation split; their effects are measured on the test split.
    documents = annotation.annotate(tokenizer, file.read(run.input.corpus, "validation", "text"))
    rng = stream(cfg["root_seed"], "sink", "observe", cfg["corpus"])
    groups = annotation.groups(documents, cfg["groups"], cfg["observed"], cfg["context"], rng)
    run.output.activity.mkdir()
    for folder in folders:
        model = adapters.load(folder).to(run.device)
        activity.measure(model, groups).save(run.output.activity / f"{folder.name}.safetensors")
