# Helpers of the rules: settings, cfgs and paths. The package decides; these only ask it.
import sys
from pathlib import Path

# The folder itself, not `workflow.source_path`, which copies single files elsewhere.
ROOT = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).resolve().parent
SCRIPTS = ROOT / "scripts"
if str(SCRIPTS) not in sys.path:
    sys.path.append(str(SCRIPTS))

from snakemake.exceptions import WorkflowError

from stateatlas import plan, settings as _settings
from stateatlas import backend as _backend

try:
    SETTINGS = _settings.resolve(config)
except _settings.ConfigError as error:
    raise WorkflowError(str(error)) from None

# Without a limit all GPU jobs would start at once; a limit of 0 runs them on the CPU. A cluster's profile sets its own.
if workflow.is_main_process and "gpu" not in workflow.global_resources:
    workflow.global_resources["gpu"] = min(1, _backend.local_gpus())
GPU = bool(SETTINGS["gpu"] and workflow.global_resources.get("gpu", 1))

# Decided once, here: jobs on other machines get the answer with their config.
SETTINGS["backend"] = _backend.resolve(SETTINGS["backend"], GPU)
if workflow.is_main_process and not workflow.local_exec:
    workflow.config_settings.config_args = [
        *(workflow.config_settings.config_args or []),
        f"backend={SETTINGS['backend']}",
    ]
PLAN = plan.Plan(SETTINGS)
RESULTS = f"results/{SETTINGS['scale']}"


def cfg(rule):
    """The params function of a rule: the one string that decides whether a job runs again."""
    return lambda wildcards: PLAN.cfg(rule, dict(wildcards))


def at(rule, name):
    """Where a rule's result lies, with the rule's wildcards left open."""
    return f"{RESULTS}/{plan.RULES[rule].folder}/{name}"


def result(rule, name):
    """A result as the input of another rule. What it was made from stands in cfg, so its age says nothing."""
    return ancient(at(rule, name))


def every(rule, name):
    """The results of all jobs of a rule."""
    jobs = [wildcards for job, wildcards in PLAN.jobs() if job == rule]
    return [f"{RESULTS}/{PLAN.folder(rule, w)}/{name.format(**w)}" for w in sorted(jobs, key=str)]


def table(name):
    """A whole-study table as the input of another rule."""
    return ancient(f"{RESULTS}/{PLAN.folder(*plan.table_job(name))}/table.parquet")


def read_by(rule, name, of=None):
    """An input function: the results that a job of `rule` reads, of one upstream rule or of all."""

    def paths(wildcards):
        jobs = plan.RULES[rule].upstream(SETTINGS, dict(wildcards))
        return [ancient(f"{RESULTS}/{PLAN.folder(*job)}/{name}") for job in jobs if of is None or job[0] in of]

    return paths


def log_of(rule):
    """The log of a rule's jobs, named like its results."""
    return f"logs/{SETTINGS['scale']}/{rule}/{plan.RULES[rule].folder}.log"


def benchmark_of(rule):
    """The benchmark file of a rule's jobs."""
    return f"benchmarks/{SETTINGS['scale']}/{rule}/{plan.RULES[rule].folder}.jsonl"


def size(smoke, laptop, workstation, paper):
    """A resource that grows with the scale."""
    return dict(smoke=smoke, laptop=laptop, workstation=workstation, paper=paper)[SETTINGS["scale"]]


def grows(amount):
    """A resource that doubles with every attempt."""
    return lambda wildcards, attempt: amount * 2 ** (attempt - 1)


def parts_of_table(wildcards):
    """The parts of a whole table: the cells' tables, or for `training` the folders that hold their histories."""
    names = {"training": "weights", "behaviour": "behaviour.parquet"}
    return read_by("collect", names.get(wildcards.table, "table.parquet"))(wildcards)
