"""What jobs ask for and what they took: `./reproduce plan` and `./reproduce costs`.

The sizes stand in data/sizing.yaml. The rules ask here for their memory, time and GPU, so that the plan of a scale and
the jobs of a cluster are told the same.
"""

import functools
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import yaml

from stateatlas.canonical import ROOT
from stateatlas.rulebook import RULES

SCALES = ("smoke", "laptop", "workstation", "paper")
STUDIES = ("encoding", "response", "sink")
HEADER = ("study", "rule", "jobs", "hours", "GPU hours", "memory", "disk")
COSTS = ("rule", "jobs", "seconds", "longest", "memory", "GPU memory")


@dataclass(frozen=True)
class Size:
    """What one job asks for: memory and disk in MB, minutes, and whether it computes on a GPU where there is one."""

    memory: int
    minutes: int
    disk: int
    gpu: bool


@functools.cache
def sizes(scale: str, root: Path = ROOT) -> dict[str, Size]:
    """Return the size of every rule's jobs at a scale."""
    given = yaml.safe_load((root / "data/sizing.yaml").read_text())
    place = SCALES.index(scale)
    return {
        rule: Size(said["memory"][place], said["minutes"][place], said["disk"][place], said["gpu"])
        for rule, said in given.items()
    }


def planned(plan) -> list[tuple]:
    """Return a row a study and rule, in the order of `HEADER`: every job of `plan` at its first attempt's limits."""
    known, gpu = sizes(plan.settings["scale"]), plan.settings["gpu"]
    count: dict[tuple[str, str], int] = defaultdict(int)
    for rule, _ in plan.jobs():
        study = RULES[rule].folder.partition("/")[0]
        count[study if study in STUDIES else "all", rule] += 1
    rows = []
    for (study, rule), jobs in sorted(count.items(), key=lambda row: (row[0][0], list(RULES).index(row[0][1]))):
        size = known[rule]
        hours = jobs * size.minutes / 60
        rows.append((study, rule, jobs, hours, hours * (size.gpu and gpu), size.memory, jobs * size.disk))
    total = [sum(column) for column in zip(*(row[2:5] for row in rows), strict=True)]
    return [*rows, ("", "total", *total, max(row[5] for row in rows), sum(row[6] for row in rows))]


def measured(workdir: Path, scale: str) -> list[tuple]:
    """Return a row a rule, in the order of `COSTS`, from what jobs wrote beside their logs."""
    found = defaultdict(list)
    for path in sorted((workdir / "logs" / scale).rglob("*.run.json")):
        found[path.relative_to(workdir / "logs" / scale).parts[0]].append(json.loads(path.read_text()))
    return [
        (
            rule,
            len(runs),
            sum(run["wall_s"] for run in runs),
            max(run["wall_s"] for run in runs),
            max(run["peak_bytes"] for run in runs) / 1e6,
            max(run.get("peak_gpu_bytes", 0) for run in runs) / 1e6,
        )
        for rule, runs in sorted(found.items(), key=lambda item: list(RULES).index(item[0]))
    ]


def aligned(header: tuple, rows: list[tuple], left: int) -> str:
    """Return a table as text: the first `left` columns are words, the others numbers."""
    body = [[word if isinstance(word, str) else f"{word:,.0f}" for word in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*body, strict=True)]
    return "\n".join(
        "  ".join(
            word.ljust(width) if place < left else word.rjust(width)
            for place, (word, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in body
    )


def main(command: str, arguments: list[str], root: Path) -> int:
    """Print what a run would ask for (`plan`) or what it took (`costs`); return 2 where that cannot be told."""
    from stateatlas.verify import asked

    plan, workdir = asked(command, __doc__.splitlines()[0], arguments, root)
    if plan is None:
        return 2
    scale = plan.settings["scale"]
    if command == "plan":
        print(aligned(HEADER, planned(plan), 2))
        print("\nHours: the time limits of all jobs together, an upper bound. Memory: MB a job. Disk: MB of results.")
        return 0
    if not (rows := measured(workdir, scale)):
        print(f"reproduce costs: no job of scale {scale} has run in {workdir}")
        return 2
    print(aligned(COSTS, rows, 1))
    print("\nSeconds: of all jobs together; longest: of one. Memory: MB, the largest of a job.")
    return 0
