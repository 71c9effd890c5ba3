"""Derive the layer profiles and their indices from the probes. Cost: a second."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import profiles, tables

    parts = {name: tables.read(getattr(run.input, name), name) for name in ("probes", "behaviour")}
    tables.write(run.output.table, "profiles", profiles.profile_table(parts["probes"], parts["behaviour"]))
