"""`./reproduce verify`: do the results on disk belong to today's code and config?

Every result has a manifest.json that says what made it. It is compared with today's plan, with the files
beside it and with the manifests it was made from. So results that came without Snakemake's metadata can be
judged too.
"""

import argparse
import json
import os
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from stateatlas.manifest import checksum

STATES = ("ok", "stale", "missing", "damaged")
TEMPORARY = ("record",)  # rules whose results may be deleted once they are used
SHOWN = 20  # lines of detail, and of folders in the advice


@dataclass(frozen=True)
class Finding:
    """One expected result: its rule, its folder seen from the working directory, state and why."""

    rule: str
    folder: Path
    state: str
    why: str = ""


def main(arguments: list[str], root: Path) -> int:
    """Print the comparison; return 0 if every result is today's, 1 if not, 2 if that cannot be told."""
    plan, workdir = asked("verify", __doc__.splitlines()[0], arguments, root)
    if plan is None:
        return 2
    findings = compare(plan, workdir)
    others = unexpected(plan, workdir)
    print(describe(findings, others, arguments))
    return 0 if all(finding.state == "ok" for finding in findings) else 1


def asked(command: str, about: str, arguments: list[str], root: Path) -> tuple:
    """Return the plan and the working directory that the arguments of a command ask for.

    The plan is None, and what is wrong has been printed, where the config cannot be used.
    """
    parser = argparse.ArgumentParser(prog=f"./reproduce {command}", description=about)
    parser.add_argument("--config", "-C", nargs="+", action="extend", default=[], metavar="KEY=VALUE")
    parser.add_argument("--configfile", nargs="+", action="extend", default=[], metavar="FILE")
    parser.add_argument("--directory", "-d", type=Path, default=root, help="where results/ and logs/ are")
    given = parser.parse_args(arguments)
    from snakemake_interface_common.exceptions import WorkflowError

    from stateatlas.settings import ConfigError

    try:
        return todays_plan(read_config(root, given.configfile, given.config)), given.directory
    except OSError as error:
        print(f"reproduce {command}: {error.filename}: {error.strerror}")
    except (ConfigError, WorkflowError, ValueError) as error:
        print(f"reproduce {command}: {error}")
    return None, given.directory


def read_config(root: Path, files: list | None = None, entries: list[str] | None = None) -> dict:
    """Return the config as Snakemake would: config.yaml, then `--configfile`, then `--config`."""
    from snakemake.cli import parse_config
    from snakemake.common.configfile import load_configfile
    from snakemake.utils import update_config

    config = load_configfile(root / "config.yaml")
    for file in files or []:
        update_config(config, load_configfile(file))
    update_config(config, parse_config(entries))
    return config


def todays_plan(config: dict):
    """Return the plan of a config, with the backend that the Snakefile would choose on this machine."""
    from stateatlas import backend, gpus
    from stateatlas.plan import Plan
    from stateatlas.settings import resolve

    settings = resolve(config)
    gpu = bool(settings["gpu"] and gpus.visible())
    return Plan(settings | {"backend": backend.resolve(settings["backend"], gpu)})


def compare(plan, workdir: Path) -> list[Finding]:
    """Judge every result that `plan` expects.

    `plan.expected()` lists (rule, wildcards, manifest path), `plan.cfg(rule, wildcards)` gives today's cfg as
    JSON. A temporary result that is gone is left out.
    """
    return [
        judge(rule, json.loads(plan.cfg(rule, wildcards)), Path(workdir, path), workdir)
        for rule, wildcards, path in reversed(plan.expected())  # from the data to the report
        if rule not in TEMPORARY or Path(workdir, path).exists()
    ]


def judge(rule: str, cfg: dict, path: Path, workdir: Path) -> Finding:
    """Judge one result by its manifest at `path`, against today's `cfg`."""
    folder = Path(os.path.relpath(path.parent, workdir))
    if not path.is_file():
        return Finding(rule, folder, "missing")
    try:
        content = json.loads(path.read_text())
        recorded, outputs, inputs = content["cfg"], content["outputs"], content["inputs"]
        keys = differences(recorded, cfg)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return Finding(rule, folder, "damaged", f"manifest.json cannot be read ({error})")
    state, why = judge_outputs(path.parent, outputs, gone_is_fine=rule in TEMPORARY)
    if state == "ok" and keys:
        state, why = "stale", ", ".join(keys)
    if state == "ok":
        state, why = judge_inputs(path.parent, inputs, workdir)
    return Finding(rule, folder, state, why)


def judge_outputs(folder: Path, outputs: dict, gone_is_fine: bool) -> tuple[str, str]:
    """Compare the files in `folder` with their recorded checksums."""
    for name, known in outputs.items():
        if not (folder / name).exists():
            if not gone_is_fine:
                return "missing", f"{name} is gone"
        elif checksum(folder / name) != known:
            return "damaged", f"{name} is not what was written"
    return "ok", ""


def judge_inputs(folder: Path, inputs: dict, workdir: Path) -> tuple[str, str]:
    """Compare what a result was made from, where it is still there, with what is there now."""
    for name, known in inputs.items():
        file = folder / name
        if file.exists() and checksum(file) != known:
            return "stale", f"built on another {os.path.relpath(file, workdir)}"
    return "ok", ""


def differences(recorded: dict, today: dict, above: str = "") -> list[str]:
    """Return what differs between two cfgs, as `key` or `key (then -> now)` for plain short values."""
    lines = []
    for key in sorted(recorded.keys() | today.keys()):
        then, now = recorded.get(key), today.get(key)
        if isinstance(then, dict) and isinstance(now, dict):
            lines += differences(then, now, f"{above}{key}.")
        elif then != now:
            change = f" ({json.dumps(then)} -> {json.dumps(now)})"
            lines.append(f"{above}{key}" + (change if len(change) <= 50 else ""))
    return lines


def unexpected(plan, workdir: Path) -> list[Path]:
    """Return the folders with a manifest at these scales that today's plan does not mention."""
    expected = {Path(path) for _, _, path in plan.expected()}
    scales = {Path(*path.parts[:2]) for path in expected}
    found = (path for scale in scales for path in Path(workdir, scale).rglob("manifest.json"))
    return sorted(path.parent for path in found if Path(os.path.relpath(path, workdir)) not in expected)


def describe(findings: list[Finding], others: list[Path], arguments: list[str]) -> str:
    """Return the table by rule, what is wrong, and what to do about it."""
    rules = list(dict.fromkeys(finding.rule for finding in findings))
    count = Counter((finding.rule, finding.state) for finding in findings)
    width = max([len("rule"), *map(len, rules)])
    lines = [f"{'rule':{width}}" + "".join(f"{state:>9}" for state in STATES)]
    lines += [f"{rule:{width}}" + "".join(f"{count[rule, state]:9}" for state in STATES) for rule in rules]
    wrong = [finding for finding in findings if finding.state != "ok"]
    # What is only behind something else that changed comes last.
    told = [finding for finding in wrong if finding.why]
    told.sort(key=lambda finding: finding.why == "upstream")
    lines += [""] * bool(told)
    lines += [f"{finding.state}: {finding.folder}: {finding.why}" for finding in told[:SHOWN]]
    lines += [f"... and {len(told) - SHOWN} more"] * (len(told) > SHOWN)
    if others:
        lines += ["", f"{len(others)} more belong to another config (seeds, tasks) and are not used."]
    return "\n".join([*lines, "", advice(findings, arguments)])


def advice(findings: list[Finding], arguments: list[str]) -> str:
    """Return the command that puts things right."""
    command = shlex.join(["./reproduce", *arguments])
    wrong = [finding for finding in findings if finding.state != "ok"]
    if not wrong:
        return f"All {len(findings)} results belong to today's code and config."
    if all(finding.state == "missing" for finding in findings):
        return f"Nothing has been made yet. To make it: {command}"
    # Forced by name: Snakemake does not miss what nothing asks for, and without its metadata it cannot see
    # what is stale.
    forced = [str(finding.folder / "manifest.json") for finding in wrong]
    if len(forced) > SHOWN:
        forced = list(dict.fromkeys(finding.rule for finding in wrong))
    redo = f"{command} --forcerun {shlex.join(forced)}"
    return f"{len(wrong)} of {len(findings)} results are not today's. To make them again:\n{redo}"
