"""Judge every claim by its predicate. Cost: seconds."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import claims, tables, verdicts
    from stateatlas.canonical import ROOT

    evidence = {path.parent.name: tables.read(path, path.parent.name) for path in run.input.tables}
    loaded = claims.load_claims(ROOT / "data/claims.yaml", ROOT / "rules/schemas/claims.schema.yaml", tables.SCHEMAS)
    judged = verdicts.evaluate(loaded, evidence, run.cfg["scale"])
    tables.write(run.output.table, "claims", judged)
    judged.to_csv(run.output.csv, index=False)
