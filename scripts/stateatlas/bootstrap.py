"""What `./reproduce` runs first: sees to .venv with the pinned packages, then starts the driver in it.

Standard library only, since nothing else is there yet.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.append(str(ROOT / "scripts"))

from stateatlas import install  # noqa: E402
from stateatlas.install import SetupError, say  # noqa: E402

STAMP = "stateatlas.json"  # in .venv, written last: without it the environment is half made
IMPORTS = "import torch, numpy, pandas, pyarrow, sklearn, matplotlib, snakemake, psutil"

USAGE = """\
usage: ./reproduce [SNAKEMAKE ARGUMENTS]     run the workflow: all of it, at the scale set in config.yaml
       ./reproduce test [--slow] [PYTEST ARGUMENTS]     run the fast tests, or all with --slow
       ./reproduce verify [--config KEY=VALUE ...] [--configfile FILE] [--directory DIR]
                                             do results on disk belong to today's code and config?
       ./reproduce plan [--config KEY=VALUE ...]        jobs, hours, memory and disk of a run, by rule
       ./reproduce costs [--config KEY=VALUE ...]       what the jobs of a run took, by rule
       ./reproduce --help                    this text

Everything else goes to Snakemake as it stands:
  ./reproduce -n                             say what would be run
  ./reproduce --config scale=smoke           the smallest scale, for a first look
  ./reproduce figures                        only the figures
  ./reproduce --cores 4 --directory DIR      four cores, results in DIR
  .venv/bin/python -m snakemake --help       all of Snakemake's options

The first call makes .venv, in a few minutes. Environment variables:
  PYTHON=python3.12                          the Python to make .venv with
  STATEATLAS_TORCH_INDEX=URL or FOLDER       where torch comes from, for example
                                             https://download.pytorch.org/whl/cpu (no CUDA)
"""


def main() -> None:
    """Make the environment if it is not there yet and replace this process by the driver."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["help"], ["-h"], ["--help"]):
        print(USAGE, end="")
        return
    try:
        python = ensure(ROOT)
    except SetupError as error:
        sys.exit(f"reproduce: {error}")
    except OSError as error:
        sys.exit(f"reproduce: cannot set up {ROOT / '.venv'}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    driver = str(ROOT / "scripts" / "stateatlas" / "driver.py")
    # Modules on a cluster often leave packages of another Python there.
    for name in ("PYTHONPATH", "PYTHONHOME"):
        os.environ.pop(name, None)
    sys.stdout.flush()
    os.execv(python, [str(python), "-P", driver, *arguments])


def ensure(root: Path, imports: str = IMPORTS) -> Path:
    """Return the Python of a complete `.venv` under `root`; make or complete it first if need be.

    `imports` is the statement that a finished environment must be able to run. Raises SetupError.
    """
    venv = root / ".venv"
    python = venv / "bin" / "python"
    requirements = root / "envs" / "requirements.txt"
    wanted = fingerprint(requirements)
    if state(venv, wanted) == "ready":
        return python
    try:
        (root / "logs").mkdir(exist_ok=True)
        log = (root / "logs" / "setup.log").open("a+")
    except OSError as error:
        raise SetupError(f"cannot write {error.filename}: {error.strerror}. Make {root} writable.") from None
    with log:
        wait_for_turn(log)
        found = state(venv, wanted)  # another call may have finished it while this one waited
        if found == "ready":
            return python
        log.truncate(0)
        if found != "outdated":
            make_venv(venv, found, log)
        (venv / STAMP).unlink(missing_ok=True)
        install.packages(python, requirements, torch_source(), log)
        install.check_imports(python, imports, log)
        stamp = {"requirements": wanted, "python": minor_version(python), "torch": torch_source()}
        (venv / STAMP).write_text(json.dumps(stamp) + "\n")
        say(f"ready: {venv}")
    return python


def state(venv: Path, wanted: str) -> str:
    """Return what `venv` is: ready, outdated (other pins), missing, or unfinished (to be made again)."""
    if not venv.exists():
        return "missing"
    try:
        stamp = json.loads((venv / STAMP).read_text())
        version, pins, torch = stamp["python"], stamp["requirements"], stamp["torch"]
    except (OSError, ValueError, KeyError, TypeError):
        return "unfinished"
    if version != minor_version(venv / "bin" / "python"):
        return "unfinished"  # its Python is gone, or another one took its place
    if os.environ.get("PYTHON") and version != install.THIS_PYTHON:
        return "unfinished"  # the user asks for another Python
    return "ready" if pins == wanted and torch_source() in ("", torch) else "outdated"


def fingerprint(requirements: Path) -> str:
    """Return the sha256 of the requirements and of the constraints beside them."""
    digest = hashlib.sha256()
    for path in (requirements, requirements.with_name("constraints.txt")):
        if path.exists():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def minor_version(python: Path) -> str:
    """Return the version of a Python as "3.11", or "" if it does not run."""
    command = [python, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def torch_source() -> str:
    """Return where torch is to come from: an index URL, a folder's absolute path, or "" (pip's settings)."""
    given = os.environ.get("STATEATLAS_TORCH_INDEX", "").strip()
    if not given or re.match(r"[a-z+]+://", given):
        return given
    folder = Path(given).expanduser().resolve()
    if not folder.is_dir():
        raise SetupError(f"STATEATLAS_TORCH_INDEX={given} is neither a URL nor a folder.")
    return str(folder)


def wait_for_turn(log: TextIO) -> None:
    """Lock the log, so that two calls never set up at once; a pip that outlives us keeps the lock."""
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("another setup of this .venv is running; waiting for it.")
        fcntl.flock(log, fcntl.LOCK_EX)
    except OSError:
        pass  # a file system without locks


def make_venv(venv: Path, found: str, log: TextIO) -> None:
    """Make an empty environment; what an interrupted setup left there is removed first."""
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        names = " and no ".join(missing)
        raise SetupError(f"{sys.executable} ({install.THIS_PYTHON}) has no {names} module. {install.REMEDY}")
    if venv.is_symlink() and not venv.exists():
        raise SetupError(f"{venv} is a link to a folder that does not exist: {os.readlink(venv)}")
    if found == "unfinished":
        say("the .venv here is not complete; making it again.")
    say(f"making .venv with Python {install.THIS_PYTHON}, once, in a few minutes. Details: {log.name}")
    install.run([sys.executable, "-m", "venv", "--clear", str(venv)], log)


if __name__ == "__main__":
    main()
