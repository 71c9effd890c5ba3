"""Derive one table from others. Cost: seconds."""

from stateatlas.job import job

with job(snakemake) as run:
    import importlib

    from stateatlas import tables

    name = run.cfg["table"]
    parts = {path.parent.name: tables.read(path, path.parent.name) for path in run.input.tables}
    tables.write(run.output.table, name, importlib.import_module(f"stateatlas.{name}").derive(parts, run.cfg))
