# Study C: units of language models, the sets that answer to a class of tokens, and what they cost.


rule teach:
    input:
        manifests=read_by("teach", "manifest.json"),
        weights=result("pretrain", "weights"),
        tokenizer=result("train_tokenizer", "tokenizer"),
        tokens=result("train_tokenizer", "tokens.safetensors"),
    output:
        manifest=at("teach", "manifest.json"),
        weights=directory(at("teach", "weights")),
    log:
        log_of("teach"),
    benchmark:
        benchmark_of("teach")
    priority: 4
    conda:
        env("teach")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("teach"),
        runtime=minutes("teach"),
        gpu=gpu("teach"),
    params:
        cfg=cfg("teach"),
    script:
        "../scripts/teach.py"


rule observe:
    input:
        manifests=read_by("observe", "manifest.json"),
        checkpoint=read_by("observe", "weights", of=("pretrain", "fetch", "teach")),
        corpus=result("corpus", "corpus.parquet"),
    output:
        manifest=at("observe", "manifest.json"),
        activity=directory(at("observe", "activity")),
    log:
        log_of("observe"),
    benchmark:
        benchmark_of("observe")
    conda:
        env("observe")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("observe"),
        runtime=minutes("observe"),
        gpu=gpu("observe"),
    params:
        cfg=cfg("observe"),
    script:
        "../scripts/observe.py"


rule find_sets:
    input:
        manifests=read_by("find_sets", "manifest.json"),
        weights=read_by("find_sets", "weights", of=("pretrain", "fetch", "teach")),
        activity=read_by("find_sets", "activity", of=("observe",)),
    output:
        manifest=at("find_sets", "manifest.json"),
        sets=at("find_sets", "sets.parquet"),
        writes=at("find_sets", "writes.parquet"),
        signatures=at("find_sets", "signatures.parquet"),
        thresholds=at("find_sets", "thresholds.parquet"),
    log:
        log_of("find_sets"),
    benchmark:
        benchmark_of("find_sets")
    conda:
        env("find_sets")
    threads: 1
    resources:
        mem_mb=memory("find_sets"),
        runtime=minutes("find_sets"),
        gpu=gpu("find_sets"),
    params:
        cfg=cfg("find_sets"),
    script:
        "../scripts/find_sets.py"


rule intervene:
    input:
        manifests=read_by("intervene", "manifest.json"),
        checkpoint=read_by("intervene", "weights", of=("pretrain", "fetch")),
        corpus=result("corpus", "corpus.parquet"),
        activity=result("observe", "activity"),
    output:
        manifest=at("intervene", "manifest.json"),
        effects=at("intervene", "effects.parquet"),
        cells=at("intervene", "cells.parquet"),
    log:
        log_of("intervene"),
    benchmark:
        benchmark_of("intervene")
    conda:
        env("intervene")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("intervene"),
        runtime=minutes("intervene"),
        gpu=gpu("intervene"),
    params:
        cfg=cfg("intervene"),
    script:
        "../scripts/intervene.py"


rule find_needles:
    input:
        manifests=read_by("find_needles", "manifest.json"),
        weights=read_by("find_needles", "weights", of=("pretrain", "fetch", "teach")),
        activity=read_by("find_needles", "activity", of=("observe",)),
    output:
        manifest=at("find_needles", "manifest.json"),
        table=at("find_needles", "table.parquet"),
    log:
        log_of("find_needles"),
    benchmark:
        benchmark_of("find_needles")
    conda:
        env("find_needles")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("find_needles"),
        runtime=minutes("find_needles"),
        gpu=gpu("find_needles"),
    params:
        cfg=cfg("find_needles"),
    script:
        "../scripts/find_needles.py"
