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
    params:
        cfg=cfg("plot"),
    log:
        log_of("plot"),
    benchmark:
        benchmark_of("plot")
    wildcard_constraints:
        figure="|".join(plan.FIGURES),
    threads: 1
    resources:
        mem_mb=grows(2000),
        runtime=grows(10),
        gpu=0,
    conda:
        "../envs/figures.yaml"
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
    params:
        cfg=cfg("scorecard"),
    log:
        log_of("scorecard"),
    benchmark:
        benchmark_of("scorecard")
    threads: 1
    resources:
        mem_mb=grows(2000),
        runtime=grows(10),
        gpu=0,
    conda:
        "../envs/report.yaml"
    script:
        "../scripts/scorecard.py"
