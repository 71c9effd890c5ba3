"""The steps that fill .venv, each logged, with one clear message when one fails. Standard library only.

pip is called with the user's own settings: configuration files, PIP_* variables, proxies.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TextIO

# Never built from source: without a wheel pip would start a compiler and fail an hour later.
WHEELS_ONLY = "torch,numpy,scipy,scikit-learn,pandas,pyarrow,matplotlib,safetensors,psutil"
UNREACHABLE = (
    "connection broken|NameResolutionError|name resolution|Connection refused|Network is unreachable|"
    "ProxyError|SSLError|CERTIFICATE_VERIFY_FAILED|ConnectTimeout|Read timed out|Could not fetch URL|"
    "HTTP error [45]"
)
THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
REMEDY = (
    f"On Debian or Ubuntu: sudo apt install python{THIS_PYTHON}-venv. "
    "Or name another Python: PYTHON=/path/to/python3 ./reproduce."
)
SIGN_OF_LIFE = 20  # seconds between two lines of progress


class SetupError(Exception):
    """The environment cannot be made; the message says why and what to do."""


def say(message: str) -> None:
    """Print one line of progress."""
    print(f"reproduce: {message}", file=sys.stderr, flush=True)


def packages(python: Path, requirements: Path, torch_source: str, log: TextIO) -> None:
    """Install the pinned packages into the environment of `python`.

    With a `torch_source` (index URL or folder) torch comes from there, and nothing else does.
    Raises SetupError.
    """
    pins = [line.strip() for line in requirements.read_text().splitlines() if "==" in line]
    pip = [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    if not {"PIP_NO_BINARY", "PIP_ONLY_BINARY"} & os.environ.keys():
        pip += ["--only-binary", WHEELS_ONLY]
    if torch_source:
        torch = next(pin for pin in pins if pin.startswith("torch=="))
        say(f"installing {torch} from {torch_source}")
        # Without its dependencies: those come from the usual index, at our pins.
        run([*pip, "--no-deps", "--force-reinstall", *index_options(torch_source), torch], log)
    say(f"installing {len(pins)} pinned packages and what they need")
    run([*pip, "-r", str(requirements)], log)


def index_options(source: str) -> list[str]:
    """Return pip's options for an index URL, a folder of wheels, or a folder laid out as an index."""
    folder = Path(source)
    if not folder.is_dir():
        return ["--index-url", source]
    if any(folder.glob("*.whl")):
        return ["--no-index", "--find-links", source]
    return ["--index-url", folder.as_uri()]


def run(command: list[str], log: TextIO) -> None:
    """Run one step with its output in the log, and a sign of life now and then. Raises SetupError."""
    log.write(f"$ {' '.join(command)}\n")
    log.flush()
    start = log.seek(0, os.SEEK_END)
    # PIP_USER: a `user = true` in the user's settings can never work in a virtual environment.
    environment = {**os.environ, "PIP_USER": "0", "PYTHONPATH": ""}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment)
    began = time.monotonic()
    try:
        while process.poll() is None:
            try:
                process.wait(timeout=SIGN_OF_LIFE)
            except subprocess.TimeoutExpired:
                say(f"  {time.monotonic() - began:.0f} s: {last_step(output_since(start, log))}")
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    if process.returncode != 0:
        raise SetupError(explain(command, process.returncode, output_since(start, log), log.name))


def output_since(start: int, log: TextIO) -> str:
    """Return what was written to the log from position `start` on."""
    with Path(log.name).open(errors="replace") as output:
        output.seek(start)
        return output.read()


def last_step(output: str) -> str:
    """Return what pip was last heard to do, in one short line."""
    steps = re.findall(r"^\s*((?:Collecting|Downloading|Installing|Building) [^\n]*)", output, re.M)
    return steps[-1][:90] if steps else "working"


def explain(command: list[str], code: int, output: str, log: str) -> str:
    """Return one message for a failed step: the cause, the remedy, and where the full output is."""

    def said(pattern: str) -> re.Match | None:
        return re.search(pattern, output, re.I)

    if said(r"No space left on device|Errno 28|Disk quota exceeded"):
        cause = "the disk is full. Free some space (.venv needs 2 GB, with CUDA 8 GB; pip also uses TMPDIR)."
    elif said(r"Permission denied|Errno 13|Read-only file system"):
        cause = "no permission to write .venv or pip's cache. Make the folder named in the log writable."
    elif "venv" in command:
        cause = f"{sys.executable} could not make a virtual environment (exit code {code}). {REMEDY}"
    elif said(r"No module named pip"):
        cause = f"the new environment has no pip. {REMEDY}"
    elif said(UNREACHABLE):
        cause = (
            "pip cannot reach its package index. Check the network; a proxy or an index of your own is set "
            "with pip's settings (HTTPS_PROXY, PIP_INDEX_URL or `pip config`). Then start again."
        )
    elif wheel := said(r"No matching distribution found for ([^\s(]+)"):
        cause = (
            f"pip found no {wheel[1]} for Python {THIS_PYTHON} on {os.uname().sysname} {os.uname().machine}. "
            "The pinned versions have wheels for Python 3.11 to 3.14: name one of these "
            "(PYTHON=python3.12 ./reproduce), or an index that has it (PIP_INDEX_URL)."
        )
        if said("from versions: none"):
            cause += " It saw no version at all: is the index reachable?"
    else:
        last = "".join(f"\n    {line}" for line in output.strip().splitlines()[-6:])
        cause = f"pip failed with exit code {code}:{last}\nMend this and start again."
    return f"{cause} Full output: {log}"


def check_imports(python: Path, statement: str, log: TextIO) -> None:
    """Run an import statement once, so that a broken install is found here and not in a job."""
    say("checking that the packages load")
    done = subprocess.run([python, "-I", "-c", statement], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        log.write(done.stderr)
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise SetupError(
            f"the installed packages do not load: {reason}. Full output: {log.name}. "
            f"To install them anew, remove {python.parents[1]} and start again."
        )
