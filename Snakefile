# State Atlas: where sequence models keep their state. `./reproduce` runs this with the default profile.
from snakemake.utils import min_version

min_version("9.27.0")


report: "report/workflow.rst"


include: "rules/common.smk"


# Before the rules: it holds for those behind it.
if SETTINGS["container"]:

    container: SETTINGS["container"]


include: "rules/models.smk"
include: "rules/language.smk"
include: "rules/measurements.smk"
include: "rules/units.smk"
include: "rules/response.smk"
include: "rules/claims.smk"
include: "rules/figures.smk"


wildcard_constraints:
    task=one_of(experiments.tasks(SETTINGS)),
    architecture=one_of(experiments.architectures(SETTINGS)),
    seed="0|[1-9][0-9]*",


onstart:
    check_places()


# Targets: everything, then one per stage of the walk.
rule all:
    default_target: True
    input:
        at("scorecard", "index.html"),


rule sequences:
    input:
        every("sample", "manifest.json"),


rule minis:
    input:
        [f"{PLAN.folder('pretrain', dict(model=name))}/manifest.json" for name in experiments.all_minis(SETTINGS)],


rule models:
    input:
        every("train", "manifest.json"),
        every("finetune", "manifest.json"),


rule measurements:
    input:
        every("base_probe", "manifest.json"),
        every("probe", "manifest.json"),
        every("ablate", "manifest.json"),
        every("refit", "manifest.json"),
        every("erase", "manifest.json"),
        every("patch", "manifest.json"),


rule tables:
    input:
        every("collect", "manifest.json"),
        every("derive", "manifest.json"),


rule verdicts:
    input:
        at("judge", "manifest.json"),


rule figures:
    input:
        every("plot", "manifest.json"),


# Targets: one per study.
rule encoding:
    input:
        rules.tables.input,
        rules.verdicts.input,
        rules.figures.input,


if "response" in SETTINGS["studies"]:

    rule response:
        input:
            every("respond", "manifest.json"),
            every("invert", "manifest.json"),
            every("transfer", "manifest.json"),


if "sink" in SETTINGS["studies"]:

    rule sink:
        input:
            every("find_sets", "manifest.json"),
            every("intervene", "manifest.json"),
            every("find_needles", "manifest.json"),
