# Verdicts.


rule judge:
    input:
        manifests=read_by("judge", "manifest.json"),
        tables=read_by("judge", "table.parquet"),
    output:
        manifest=at("judge", "manifest.json"),
        table=at("judge", "table.parquet"),
        csv=report(
            at("judge", "table.csv"),
            caption="../report/claims.rst",
            category="Scorecard",
        ),
    log:
        log_of("judge"),
    benchmark:
        benchmark_of("judge")
    conda:
        env("judge")
    threads: 1
    resources:
        mem_mb=memory("judge"),
        runtime=minutes("judge"),
        gpu=gpu("judge"),
    params:
        cfg=cfg("judge"),
    script:
        "../scripts/judge.py"
