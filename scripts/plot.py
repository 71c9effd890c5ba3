"""Draw one figure. Cost: seconds."""

from stateatlas.job import job

with job(snakemake) as run:
    import importlib

    from stateatlas import reporting
    from stateatlas.figures import style

    settings = reporting.shown_settings(run.cfg["settings"])
    figure = importlib.import_module(f"stateatlas.figures.{run.cfg['figure']}")
    with style.look():
        drawn = figure.draw(reporting.read_tables(run.input.tables), settings)
        style.save(drawn, run.output.png)
        style.save(drawn, run.output.svg)
