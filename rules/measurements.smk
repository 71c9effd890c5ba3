# Measurements on recorded states, one job a cell, and the tables of all cells.


rule base_probe:
    input:
        manifest=result("sample", "manifest.json"),
        sequences=result("sample", "sequences.safetensors"),
    output:
        manifest=at("base_probe", "manifest.json"),
        table=at("base_probe", "table.parquet"),
    log:
        log_of("base_probe"),
    benchmark:
        benchmark_of("base_probe")
    conda:
        env("base_probe")
    threads: 1
    resources:
        mem_mb=memory("base_probe"),
        runtime=minutes("base_probe"),
        gpu=gpu("base_probe"),
    params:
        cfg=cfg("base_probe"),
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
    log:
        log_of("probe"),
    benchmark:
        benchmark_of("probe")
    priority: 2
    conda:
        env("probe")
    threads: 1
    resources:
        mem_mb=memory("probe"),
        runtime=minutes("probe"),
        gpu=gpu("probe"),
    params:
        cfg=cfg("probe"),
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
        accuracy=result("probe", "table.parquet"),
    output:
        manifest=at("ablate", "manifest.json"),
        table=at("ablate", "table.parquet"),
        drops=at("ablate", "drops.parquet"),
    log:
        log_of("ablate"),
    benchmark:
        benchmark_of("ablate")
    priority: 3
    conda:
        env("ablate")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("ablate"),
        runtime=minutes("ablate"),
        gpu=gpu("ablate"),
    params:
        cfg=cfg("ablate"),
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
    log:
        log_of("refit"),
    benchmark:
        benchmark_of("refit")
    priority: 3
    conda:
        env("refit")
    threads: 1
    resources:
        mem_mb=memory("refit"),
        runtime=minutes("refit"),
        gpu=gpu("refit"),
    params:
        cfg=cfg("refit"),
    script:
        "../scripts/refit.py"


rule erase:
    input:
        sequences_manifest=result("sample", "manifest.json"),
        sequences=result("sample", "sequences.safetensors"),
        base_manifest=result("base_probe", "manifest.json"),
        base=result("base_probe", "table.parquet"),
        weights_manifest=result("train", "manifest.json"),
        weights=result("train", "weights"),
        states_manifest=result("record", "manifest.json"),
        states=result("record", "states"),
    output:
        manifest=at("erase", "manifest.json"),
        table=at("erase", "table.parquet"),
        damage=at("erase", "damage.parquet"),
    log:
        log_of("erase"),
    benchmark:
        benchmark_of("erase")
    priority: 3
    conda:
        env("erase")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("erase"),
        runtime=minutes("erase"),
        gpu=gpu("erase"),
    params:
        cfg=cfg("erase"),
    script:
        "../scripts/erase.py"


rule patch:
    input:
        sequences_manifest=result("sample", "manifest.json"),
        sequences=result("sample", "sequences.safetensors"),
        weights_manifest=result("train", "manifest.json"),
        weights=result("train", "weights"),
    output:
        manifest=at("patch", "manifest.json"),
        table=at("patch", "table.parquet"),
    log:
        log_of("patch"),
    benchmark:
        benchmark_of("patch")
    priority: 3
    conda:
        env("patch")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("patch"),
        runtime=minutes("patch"),
        gpu=gpu("patch"),
    params:
        cfg=cfg("patch"),
    script:
        "../scripts/patch.py"


rule collect:
    input:
        manifests=read_by("collect", "manifest.json"),
        parts=parts_of_table,
    output:
        manifest=at("collect", "manifest.json"),
        table=at("collect", "table.parquet"),
    log:
        log_of("collect"),
    benchmark:
        benchmark_of("collect")
    wildcard_constraints:
        table="|".join(plan.TABLES),
    conda:
        env("collect")
    threads: 1
    resources:
        mem_mb=memory("collect"),
        runtime=minutes("collect"),
        gpu=gpu("collect"),
    params:
        cfg=cfg("collect"),
    script:
        "../scripts/collect.py"


rule derive:
    input:
        manifests=read_by("derive", "manifest.json"),
        tables=read_by("derive", "table.parquet"),
    output:
        manifest=at("derive", "manifest.json"),
        table=at("derive", "table.parquet"),
    log:
        log_of("derive"),
    benchmark:
        benchmark_of("derive")
    wildcard_constraints:
        table="|".join(plan.DERIVED),
    conda:
        env("derive")
    threads: 1
    resources:
        mem_mb=memory("derive"),
        runtime=minutes("derive"),
        gpu=gpu("derive"),
    params:
        cfg=cfg("derive"),
    script:
        "../scripts/derive.py"
