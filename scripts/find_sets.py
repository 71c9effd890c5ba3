"""Derive the sets of units that answer to a class of tokens, for all models of a corpus. Cost: seconds to minutes."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import adapters, tables, unit_sets, units
    from stateatlas.activity import Activity
    from stateatlas.seeds import stream

    cfg = run.cfg
    folders = dict(zip(cfg["models"], run.input.activity, strict=True))
    heads = [folders[name] for name, family in cfg["models"].items() if family == "mamba2"]
    # In every state of a model, the first Mamba-2 in that state.
    heads = {path.stem: path for folder in reversed(heads) for path in folder.glob("*.safetensors")}
    rows = {"sets": [], "writes": [], "signatures": [], "thresholds": []}
    for (name, family), weights in zip(cfg["models"].items(), run.input.weights, strict=True):
        rng = stream(cfg["root_seed"], "sink", "sets", cfg["corpus"], name)
        for path in sorted(folders[name].glob("*.safetensors")):
            activity = Activity.load(path)
            columns = units.output_weights(adapters.load(weights / path.stem))
            other = Activity.load(heads[path.stem]) if family == "mamba" and path.stem in heads else None
            own = name.removesuffix(f"-{path.stem}")  # a taught mini is its base model in another state
            cell = {"study": "sink", "architecture": own, "family": family, "model": path.stem, "seed": 0}
            cell["corpus"] = cfg["corpus"]
            for table, row in unit_sets.rows(activity, columns, other, rng, cfg["bootstrap"]):
                rows[table].append(cell | row)
    for table, found in rows.items():
        tables.write(getattr(run.output, table), table, found)
