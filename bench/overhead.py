"""Time what a job costs before it works: Python's start and every import of its rule's script, torch's and our own.

    python bench/overhead.py

Prints the median over turns for every rule, rules taking turns, and the time of an interpreter that imports nothing.
Snakemake adds .1 to .2 s of its own to a job.
"""

import argparse
import ast
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", nargs="*", help="rules to time (default: all)")
    parser.add_argument("--turns", type=int, default=5, help="starts of each (default 5)")
    return parser.parse_args()


def imports(script: Path) -> str:
    """Return the import statements of a script, also those inside its `with`."""
    found = [node for node in ast.walk(ast.parse(script.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(map(ast.unparse, found))


def seconds(program: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-c", program], cwd=ROOT / "scripts", env={"PYTHONPATH": "."}, check=True)
    return time.perf_counter() - started


def main() -> None:
    options = arguments()
    scripts = sorted((ROOT / "scripts").glob("*.py"))
    programs = {"(nothing)": ""} | {
        path.stem: imports(path) for path in scripts if not options.rules or path.stem in options.rules
    }
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for program in programs.values():  # once for the file cache
        seconds(program)
    for _ in range(options.turns):
        for name, program in programs.items():
            taken[name].append(seconds(program))
    for name, times in sorted(taken.items(), key=lambda item: statistics.median(item[1])):
        print(f"{name:16} {statistics.median(times):5.2f} s")


if __name__ == "__main__":
    main()
