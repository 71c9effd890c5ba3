# Helpers of the rules: settings, cfgs and paths. The package decides; these only ask it.
import os
import re
import shlex
import sys
from pathlib import Path

# Snakemake writes the interpreter into a shell line as it is: a space or an apostrophe in its folder breaks every job.
if os.path.exists(sys.executable):
    sys.executable = shlex.quote(sys.executable)

# The folder itself, not `workflow.source_path`, which copies single files elsewhere.
ROOT = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).resolve().parent
SCRIPTS = ROOT / "scripts"
if str(SCRIPTS) not in sys.path:
    sys.path.append(str(SCRIPTS))

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from stateatlas import (
    adoption,
    backend as _backend,
    claims as _claims,
    experiments,
    gpus as _gpus,
    plan,
    settings as _settings,
    sizing,
    unit_cells,
)

# Read here, not by `configfile:`, which names neither the file nor the line of a mistake. `config` is what is laid
# over it: the command line's, or in a module what the importing Snakefile gives.
try:
    if workflow.modifier.namespace:
        GIVEN = {"the importing Snakefile": config}
    else:
        GIVEN = {f"--configfile {path}": _settings.read(path) for path in workflow.config_settings.configfiles}
        GIVEN["--config"] = workflow.config_settings.config
    SETTINGS = _settings.resolve(_settings.merged(_settings.read(ROOT / "config.yaml"), *GIVEN.values()), GIVEN)
    _claims.load_claims(ROOT / "data/claims.yaml", ROOT / "rules/schemas/claims.schema.yaml", {})
except (_settings.ConfigError, _claims.ClaimError) as error:
    raise WorkflowError(str(error)) from None

# Without a limit all GPU jobs would start at once; a limit of 0 runs them on the CPU. A cluster's profile sets its own.
# Each job then takes one of this machine's GPUs for itself (stateatlas.gpus).
if workflow.is_main_process and "gpu" not in workflow.global_resources:
    workflow.global_resources["gpu"] = len(_gpus.visible())
GPU = SETTINGS["gpu"] and ("gpu" not in workflow.global_resources or workflow.global_resources["gpu"].value > 0)

# Decided once, here: jobs on other machines get the answer with their config.
try:
    SETTINGS["backend"] = _backend.resolve(SETTINGS["backend"], GPU)
except _settings.ConfigError as error:
    raise WorkflowError(str(error)) from None
if workflow.is_main_process:
    workflow.config_settings.config_args = [
        *(workflow.config_settings.config_args or []),
        f"backend={SETTINGS['backend']}",
    ]
if workflow.is_main_process:
    logger.info(f"Kernels of Mamba and Mamba-2: {_backend.SAID[SETTINGS['backend']]}.")
    if "sink" in SETTINGS["studies"]:
        printed = _settings.read(ROOT / "data/published.yaml")["sink"]["cells"]
        logger.info(
            f"Study C: {unit_cells.number(SETTINGS['sink']):,} cells planned "
            f"(the paper: {printed['planned']:,}, of which {printed['evaluated']:,} evaluated)."
        )
PLAN = plan.Plan(SETTINGS)
SIZES = sizing.sizes(SETTINGS["scale"])
RESULTS = f"results/{SETTINGS['scale']}"

if workflow.is_main_process and not Path(".snakemake/metadata").exists() and Path(RESULTS).exists():
    if stale := adoption.adopt(PLAN):
        logger.warning(
            f"{len(stale)} results in {RESULTS} were made by other code or config and came without Snakemake's records, "
            f"so they are not made again by themselves. `./reproduce verify` lists them; delete what is stale."
        )


def check_places():
    """Refuse to start where a folder that jobs write to cannot be written."""
    try:
        _settings.check_writable([Path(RESULTS), Path("logs"), Path("benchmarks")])
    except _settings.ConfigError as error:
        raise WorkflowError(str(error)) from None


def cfg(rule):
    """The params function of a rule: the one string that decides whether a job runs again."""
    return lambda wildcards: PLAN.cfg(rule, dict(wildcards))


def at(rule, name):
    """Where a rule's result lies, with the rule's wildcards left open."""
    return f"{PLAN.place(rule)}/{name}"


def read(path):
    """A result as the input of another rule. Its manifest alone tells whether it is new: a small file, compared by
    its checksum; the age of the others says nothing."""
    return path if path.endswith("manifest.json") else ancient(path)


def result(rule, name):
    """A rule's result as an input, with the rule's wildcards left open."""
    return read(at(rule, name))


def env(rule):
    """The environment of a rule's jobs, for --sdm conda."""
    return f"../envs/{PLAN.env(rule)}.yaml"


def every(rule, name):
    """The results of all jobs of a rule."""
    jobs = [wildcards for job, wildcards in PLAN.jobs() if job == rule]
    return [f"{PLAN.folder(rule, w)}/{name.format(**w)}" for w in sorted(jobs, key=str)]


def table(name):
    """A whole-study table as the input of another rule."""
    return read(f"{PLAN.folder(*plan.table_job(name))}/table.parquet")


def read_by(rule, name, of=None):
    """An input function: the results that a job of `rule` reads, of one upstream rule or of all."""

    def paths(wildcards):
        jobs = PLAN.upstream(rule, dict(wildcards))
        return [read(f"{PLAN.folder(*job)}/{name}") for job in jobs if of is None or job[0] in of]

    return paths


def one_of(names):
    """A wildcard's constraint: one of these names, or nothing at all where there are none."""
    return "|".join(map(re.escape, names)) or "(?!)"


def log_of(rule):
    """The log of a rule's jobs, named like its results."""
    return f"logs/{SETTINGS['scale']}/{rule}/{plan.RULES[rule].folder}.log"


def benchmark_of(rule):
    """The benchmark file of a rule's jobs."""
    return f"benchmarks/{SETTINGS['scale']}/{rule}/{plan.RULES[rule].folder}.jsonl"


def grows(amount):
    """A resource that doubles with every attempt."""
    return lambda wildcards, attempt: amount * 2 ** (attempt - 1)


def memory(rule):
    """MB of memory of a rule's jobs."""
    return grows(SIZES[rule].memory)


def minutes(rule):
    """The time limit of a rule's jobs."""
    return grows(SIZES[rule].minutes)


def gpu(rule):
    """GPUs of a rule's jobs."""
    return int(SETTINGS["gpu"] and SIZES[rule].gpu)


def parts_of_table(wildcards):
    """The parts of a whole table, one a cell; of the probes also the base of every task."""
    return read_by("collect", plan.TABLES[wildcards.table][1])(wildcards)
