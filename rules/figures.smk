# Figures and the page.


rule plot:
    input:
        manifests=read_by("plot", "manifest.json"),
        tables=read_by("plot", "table.parquet"),
    output:
        manifest=at("plot", "manifest.json"),
        png=report(
            at("plot", "{figure}.png"),
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
        svg=at("plot", "{figure}.svg"),
    log:
        log_of("plot"),
    benchmark:
        benchmark_of("plot")
    wildcard_constraints:
        figure="|".join(plan.FIGURES),
    conda:
        env("plot")
    threads: 1
    resources:
        mem_mb=memory("plot"),
        runtime=minutes("plot"),
        gpu=gpu("plot"),
    params:
        cfg=cfg("plot"),
    script:
        "../scripts/plot.py"


rule scorecard:
    input:
        manifests=read_by("scorecard", "manifest.json"),
        tables=read_by("scorecard", "table.parquet", of=("collect", "derive")),
        verdicts=result("judge", "table.parquet"),
        figures=every("plot", "{figure}.png"),
    output:
        manifest=at("scorecard", "manifest.json"),
        page=report(
            at("scorecard", "index.html"),
            caption="../report/scorecard.rst",
            category="Scorecard",
        ),
    log:
        log_of("scorecard"),
    benchmark:
        benchmark_of("scorecard")
    conda:
        env("scorecard")
    threads: 1
    resources:
        mem_mb=memory("scorecard"),
        runtime=minutes("scorecard"),
        gpu=gpu("scorecard"),
    params:
        cfg=cfg("scorecard"),
    script:
        "../scripts/scorecard.py"
