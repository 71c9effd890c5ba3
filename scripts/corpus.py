"""Write a corpus: functions of code, or prose. Cost: seconds; minutes for CodeSearchNet."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas.corpora import file

    options = dict(run.cfg["corpus"])
    source = options.pop("source")
    if files := getattr(run.input, "files", None):
        options["files"] = files
    file.write(source, options, run.output.corpus, run.output.facts)
