# Language models: minis that are trained here, and checkpoints that are fetched.


rule train_tokenizer:
    input:
        manifests=read_by("train_tokenizer", "manifest.json"),
        corpora=read_by("train_tokenizer", "corpus.parquet"),
    output:
        manifest=at("train_tokenizer", "manifest.json"),
        tokenizer=directory(at("train_tokenizer", "tokenizer")),
        tokens=at("train_tokenizer", "tokens.safetensors"),
    log:
        log_of("train_tokenizer"),
    benchmark:
        benchmark_of("train_tokenizer")
    # What comes of a mini takes longest: it must not wait until all else is done.
    priority: 4
    conda:
        env("train_tokenizer")
    threads: 1
    resources:
        mem_mb=memory("train_tokenizer"),
        runtime=minutes("train_tokenizer"),
        gpu=gpu("train_tokenizer"),
    params:
        cfg=cfg("train_tokenizer"),
    script:
        "../scripts/train_tokenizer.py"


rule pretrain:
    input:
        manifests=read_by("pretrain", "manifest.json"),
        tokenizer=result("train_tokenizer", "tokenizer"),
        tokens=result("train_tokenizer", "tokens.safetensors"),
    output:
        manifest=at("pretrain", "manifest.json"),
        weights=directory(at("pretrain", "weights")),
    log:
        log_of("pretrain"),
    benchmark:
        benchmark_of("pretrain")
    wildcard_constraints:
        model=one_of(experiments.all_minis(SETTINGS)),
    priority: 4
    conda:
        env("pretrain")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("pretrain"),
        runtime=minutes("pretrain"),
        gpu=gpu("pretrain"),
    params:
        cfg=cfg("pretrain"),
    script:
        "../scripts/pretrain.py"


rule fetch:
    output:
        manifest=at("fetch", "manifest.json"),
        weights=directory(at("fetch", "weights")),
    log:
        log_of("fetch"),
    benchmark:
        benchmark_of("fetch")
    wildcard_constraints:
        model=one_of(experiments.fetched(SETTINGS)),
    retries: 2
    localrule: True
    conda:
        env("fetch")
    threads: 1
    resources:
        mem_mb=memory("fetch"),
        runtime=minutes("fetch"),
        gpu=gpu("fetch"),
    params:
        cfg=cfg("fetch"),
    script:
        "../scripts/fetch.py"
