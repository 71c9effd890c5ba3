# Sequences and trained models.


rule sample:
    output:
        manifest=at("sample", "manifest.json"),
        sequences=at("sample", "sequences.safetensors"),
    params:
        cfg=cfg("sample"),
    log:
        log_of("sample"),
    benchmark:
        benchmark_of("sample")
    threads: 1
    resources:
        mem_mb=grows(1000),
        runtime=grows(10),
        gpu=0,
    conda:
        "../envs/analysis.yaml"
    script:
        "../scripts/sample.py"


rule train:
    input:
        manifest=result("sample", "manifest.json"),
        sequences=result("sample", "sequences.safetensors"),
    output:
        manifest=at("train", "manifest.json"),
        weights=directory(at("train", "weights")),
    params:
        cfg=cfg("train"),
    log:
        log_of("train"),
    benchmark:
        benchmark_of("train")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=grows(2000),
        runtime=grows(size(10, 30, 600, 600)),
        gpu=int(SETTINGS["gpu"]),
    conda:
        "../envs/train.yaml"
    script:
        "../scripts/train.py"


rule record:
    input:
        sequences_manifest=result("sample", "manifest.json"),
        sequences=result("sample", "sequences.safetensors"),
        weights_manifest=result("train", "manifest.json"),
        weights=result("train", "weights"),
    output:
        manifest=at("record", "manifest.json"),
        states=directory(at("record", "states")),
    params:
        cfg=cfg("record"),
    log:
        log_of("record"),
    benchmark:
        benchmark_of("record")
    threads: SETTINGS["threads"]
    resources:
        mem_mb=grows(2000),
        runtime=grows(size(5, 10, 30, 60)),
        gpu=0,
    conda:
        "../envs/train.yaml"
    script:
        "../scripts/record.py"
