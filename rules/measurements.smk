# Measurements on recorded states, one job a cell, and the tables of all cells.


rule base_probe:
    input:
        manifest=result("sample", "manifest.json"),
        sequences=result("sample", "sequences.safetensors"),
    output:
        manifest=at("base_probe", "manifest.json"),
        table=at("base_probe", "table.parquet"),
    params:
        cfg=cfg("base_probe"),
    log:
        log_of("base_probe"),
    benchmark:
        benchmark_of("base_probe")
    threads: 1
    resources:
        mem_mb=grows(size(1000, 2000, 4000, 8000)),
        runtime=grows(size(5, 10, 30, 60)),
        gpu=0,
    conda:
        "../envs/analysis.yaml"
    script:
        "../scripts/base_probe.py"


rule probe:
    input:
        sequences_manifest=result("sample", "manifest.json"),
        sequences=result("sample", "sequences.safetensors"),
        states_manifest=result("record", "manifest.json"),
        states=result("record", "states"),
    output:
        manifest=at("probe", "manifest.json"),
        table=at("probe", "table.parquet"),
        probes=at("probe", "probes.safetensors"),
    params:
        cfg=cfg("probe"),
    log:
        log_of("probe"),
    benchmark:
        benchmark_of("probe")
    threads: 1
    resources:
        mem_mb=grows(size(1000, 2000, 4000, 8000)),
        runtime=grows(size(5, 20, 60, 120)),
        gpu=0,
    conda:
        "../envs/analysis.yaml"
    script:
        "../scripts/probe.py"


rule ablate:
    input:
        sequences_manifest=result("sample", "manifest.json"),
        sequences=result("sample", "sequences.safetensors"),
        weights_manifest=result("train", "manifest.json"),
        weights=result("train", "weights"),
        states_manifest=result("record", "manifest.json"),
        states=result("record", "states"),
        probes_manifest=result("probe", "manifest.json"),
        probes=result("probe", "probes.safetensors"),
    output:
        manifest=at("ablate", "manifest.json"),
        table=at("ablate", "table.parquet"),
        behaviour=at("ablate", "behaviour.parquet"),
    params:
        cfg=cfg("ablate"),
    log:
        log_of("ablate"),
    benchmark:
        benchmark_of("ablate")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=grows(size(1000, 2000, 4000, 8000)),
        runtime=grows(size(5, 20, 120, 240)),
        gpu=0,
    conda:
        "../envs/train.yaml"
    script:
        "../scripts/ablate.py"


rule refit:
    input:
        sequences_manifest=result("sample", "manifest.json"),
        sequences=result("sample", "sequences.safetensors"),
        states_manifest=result("record", "manifest.json"),
        states=result("record", "states"),
        probes_manifest=result("probe", "manifest.json"),
        probes=result("probe", "probes.safetensors"),
    output:
        manifest=at("refit", "manifest.json"),
        table=at("refit", "table.parquet"),
    params:
        cfg=cfg("refit"),
    log:
        log_of("refit"),
    benchmark:
        benchmark_of("refit")
    threads: 1
    resources:
        mem_mb=grows(size(1000, 2000, 4000, 8000)),
        runtime=grows(size(5, 20, 60, 120)),
        gpu=0,
    conda:
        "../envs/analysis.yaml"
    script:
        "../scripts/refit.py"


rule collect:
    input:
        manifests=read_by("collect", "manifest.json"),
        parts=parts_of_table,
    output:
        manifest=at("collect", "manifest.json"),
        table=at("collect", "table.parquet"),
    params:
        cfg=cfg("collect"),
    log:
        log_of("collect"),
    benchmark:
        benchmark_of("collect")
    wildcard_constraints:
        table="|".join(plan.TABLES),
    threads: 1
    resources:
        mem_mb=grows(2000),
        runtime=grows(10),
        gpu=0,
    conda:
        "../envs/analysis.yaml"
    script:
        "../scripts/collect.py"


rule derive:
    input:
        manifests=read_by("derive", "manifest.json"),
        probes=table("probes"),
        behaviour=table("behaviour"),
    output:
        manifest=at("derive", "manifest.json"),
        table=at("derive", "table.parquet"),
    params:
        cfg=cfg("derive"),
    log:
        log_of("derive"),
    benchmark:
        benchmark_of("derive")
    threads: 1
    resources:
        mem_mb=grows(2000),
        runtime=grows(10),
        gpu=0,
    conda:
        "../envs/analysis.yaml"
    script:
        "../scripts/derive.py"
