# Study B: sources in the stream of a language model, and how the answer responds.


rule respond:
    input:
        manifests=read_by("respond", "manifest.json"),
        weights=read_by("respond", "weights", of=("pretrain", "fetch")),
        tokens=read_by("respond", "tokens.safetensors", of=("train_tokenizer",)),
    output:
        manifest=at("respond", "manifest.json"),
        linearity=at("respond", "linearity.parquet"),
        superposition=at("respond", "superposition.parquet"),
        prediction=at("respond", "prediction.parquet"),
        effects=at("respond", "effects.parquet"),
        propagation=at("respond", "propagation.parquet"),
        composition=at("respond", "composition.parquet"),
        concentration=at("respond", "concentration.parquet"),
        green=at("respond", "green.parquet"),
        displacement=at("respond", "displacement.parquet"),
        prompts=at("respond", "prompts.parquet"),
    log:
        log_of("respond"),
    benchmark:
        benchmark_of("respond")
    wildcard_constraints:
        model=one_of(experiments.responding(SETTINGS)),
    priority: 3
    conda:
        env("respond")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("respond"),
        runtime=minutes("respond"),
        gpu=gpu("respond"),
    params:
        cfg=cfg("respond"),
    script:
        "../scripts/respond.py"


rule invert:
    input:
        manifests=read_by("invert", "manifest.json"),
        weights=read_by("invert", "weights", of=("pretrain", "fetch")),
        tokens=read_by("invert", "tokens.safetensors", of=("train_tokenizer",)),
    output:
        manifest=at("invert", "manifest.json"),
        table=at("invert", "table.parquet"),
    log:
        log_of("invert"),
    benchmark:
        benchmark_of("invert")
    wildcard_constraints:
        model=one_of(experiments.responding(SETTINGS)),
    priority: 3
    conda:
        env("invert")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("invert"),
        runtime=minutes("invert"),
        gpu=gpu("invert"),
    params:
        cfg=cfg("invert"),
    script:
        "../scripts/invert.py"


rule transfer:
    input:
        manifests=read_by("transfer", "manifest.json"),
        weights=read_by("transfer", "weights", of=("pretrain", "fetch")),
        tokens=read_by("transfer", "tokens.safetensors", of=("train_tokenizer",)),
    output:
        manifest=at("transfer", "manifest.json"),
        table=at("transfer", "table.parquet"),
    log:
        log_of("transfer"),
    benchmark:
        benchmark_of("transfer")
    wildcard_constraints:
        model=one_of(experiments.transferred(SETTINGS)),
    priority: 3
    conda:
        env("transfer")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("transfer"),
        runtime=minutes("transfer"),
        gpu=gpu("transfer"),
    params:
        cfg=cfg("transfer"),
    script:
        "../scripts/transfer.py"
