# Corpora, sequences and trained models.


rule corpus:
    input:
        files=lambda wildcards: list(map(ancient, SETTINGS["corpora"][wildcards.corpus].get("files", []))),
    output:
        manifest=at("corpus", "manifest.json"),
        corpus=at("corpus", "corpus.parquet"),
        facts=at("corpus", "corpus.json"),
    log:
        log_of("corpus"),
    benchmark:
        benchmark_of("corpus")
    wildcard_constraints:
        corpus="|".join(SETTINGS["corpora"]),
    priority: 4
    retries: 2 * any("name" in SETTINGS["corpora"][w["corpus"]] for rule, w in PLAN.jobs() if rule == "corpus")
    # Of the hub: where the network is, and tried again.
    localrule: True
    conda:
        env("corpus")
    threads: 1
    resources:
        mem_mb=memory("corpus"),
        runtime=minutes("corpus"),
        gpu=gpu("corpus"),
    params:
        cfg=cfg("corpus"),
    script:
        "../scripts/corpus.py"


rule sample:
    input:
        manifests=read_by("sample", "manifest.json"),
        corpus=read_by("sample", "corpus.parquet"),
    output:
        manifest=at("sample", "manifest.json"),
        sequences=at("sample", "sequences.safetensors"),
    log:
        log_of("sample"),
    benchmark:
        benchmark_of("sample")
    conda:
        env("sample")
    threads: 1
    resources:
        mem_mb=memory("sample"),
        runtime=minutes("sample"),
        gpu=gpu("sample"),
    params:
        cfg=cfg("sample"),
    script:
        "../scripts/sample.py"


rule check_backend:
    output:
        manifest=at("check_backend", "manifest.json"),
        report=at("check_backend", "report.json"),
    log:
        log_of("check_backend"),
    benchmark:
        benchmark_of("check_backend")
    conda:
        env("check_backend")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("check_backend"),
        runtime=minutes("check_backend"),
        gpu=gpu("check_backend"),
    params:
        cfg=cfg("check_backend"),
    script:
        "../scripts/check_backend.py"


rule train:
    input:
        manifests=read_by("train", "manifest.json"),
        sequences=result("sample", "sequences.safetensors"),
        corpus=read_by("train", "corpus.parquet", of=("corpus",)),
    output:
        manifest=at("train", "manifest.json"),
        weights=directory(at("train", "weights")),
    log:
        log_of("train"),
    benchmark:
        benchmark_of("train")
    wildcard_constraints:
        architecture=one_of(experiments.architectures(SETTINGS, "train")),
    conda:
        env("train")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("train"),
        runtime=minutes("train"),
        gpu=gpu("train"),
    params:
        cfg=cfg("train"),
    script:
        "../scripts/train.py"


rule finetune:
    input:
        manifests=read_by("finetune", "manifest.json"),
        sequences=result("sample", "sequences.safetensors"),
        checkpoint=read_by("finetune", "weights", of=("pretrain", "fetch")),
        corpus=read_by("finetune", "corpus.parquet", of=("corpus",)),
    output:
        manifest=at("finetune", "manifest.json"),
        weights=directory(at("finetune", "weights")),
    log:
        log_of("finetune"),
    benchmark:
        benchmark_of("finetune")
    wildcard_constraints:
        architecture=one_of(experiments.architectures(SETTINGS, "finetune")),
    priority: 4
    conda:
        env("finetune")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("finetune"),
        runtime=minutes("finetune"),
        gpu=gpu("finetune"),
    params:
        cfg=cfg("finetune"),
    script:
        "../scripts/finetune.py"


rule record:
    input:
        sequences_manifest=result("sample", "manifest.json"),
        sequences=result("sample", "sequences.safetensors"),
        weights_manifest=result("train", "manifest.json"),
        weights=result("train", "weights"),
    output:
        manifest=at("record", "manifest.json"),
        states=directory(at("record", "states")),
        behaviour=at("record", "behaviour.parquet"),
    log:
        log_of("record"),
    benchmark:
        benchmark_of("record")
    priority: 1
    conda:
        env("record")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=memory("record"),
        runtime=minutes("record"),
        gpu=gpu("record"),
    params:
        cfg=cfg("record"),
    script:
        "../scripts/record.py"
