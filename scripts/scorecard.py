"""Write the scorecard page. Cost: a second."""

from stateatlas.job import job

with job(snakemake) as run:
    import importlib.metadata

    import yaml

    from stateatlas import claims, reporting, scorecard, tables
    from stateatlas.canonical import ROOT

    read = reporting.read_tables(run.input.tables)
    settings = reporting.shown_settings(run.cfg["settings"])
    entries = claims.load_claims(ROOT / "data/claims.yaml", ROOT / "rules/schemas/claims.schema.yaml", tables.SCHEMAS)
    page = scorecard.render(
        tables.read(run.input.verdicts, "claims"),
        entries,
        figures={path.stem: path for path in run.input.figures},
        captions={path.stem: path.read_text() for path in (ROOT / "report").glob("*.rst")},
        tables=read,
        reference=settings["reference"],
        settings=settings,
        run={"versions": {name: importlib.metadata.version(name) for name in ("snakemake", "torch", "numpy")}},
        assumptions=yaml.safe_load((ROOT / "data" / "assumptions.yaml").read_text()),
        template=ROOT / "report" / "scorecard.html.j2",
    )
    run.output.page.write_text(page)
