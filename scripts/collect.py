"""Put the tables of all cells into one. Cost: a second."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import collection, tables

    name = run.cfg["table"]
    parts = [run.input.parts] if not isinstance(run.input.parts, list) else run.input.parts
    histories = {"training": collection.training, "minis": collection.minis}
    rows = histories[name](parts) if name in histories else collection.concatenate(parts, name)
    tables.write(run.output.table, name, rows)
