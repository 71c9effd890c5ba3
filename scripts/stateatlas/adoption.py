"""Results that came without Snakemake's records: an archive, a copy, a clone of a finished run."""

import contextlib
import json
import os
import time
from pathlib import Path

from stateatlas.plan import Plan


def adopt(plan: Plan) -> list[Path]:
    """Give all results one time, since the order in which files were copied says nothing of what was made from what.

    Returns the manifests of today's jobs that do not hold today's cfg.
    """
    now = time.time()
    for path in Path("results", plan.settings["scale"]).rglob("*"):
        with contextlib.suppress(OSError):  # a folder that may only be read keeps its times
            os.utime(path, (now, now))
    return [
        path
        for rule, wildcards, path in plan.expected()
        if path.exists() and _cfg(path) != json.loads(plan.cfg(rule, wildcards))
    ]


def _cfg(path: Path) -> dict | None:
    try:
        return json.loads(path.read_text())["cfg"]
    except (ValueError, KeyError):
        return None
