"""The command line of `./reproduce`, run by .venv's Python: Snakemake under a lock, the tests, verify.

Snakemake runs as a child in a process group of its own. The lock stays with the driver, so no job can keep
it. Signals reach the child once, from here: Ctrl-C would otherwise arrive twice, or not at all.
"""

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.append(str(ROOT / "scripts"))

from stateatlas import runlock  # noqa: E402

CORES = ("-c", "--cores", "-j", "--jobs")
BRING_CORES = ("-e", "--executor", "--profile", "--workflow-profile")
DEFAULT_PROFILE = ROOT / "profiles" / "default" / "profile.yaml"
WRITTEN = (".", "results", "logs", ".snakemake")


def main(arguments: list[str]) -> int:
    """Run one call of `./reproduce` and return its exit code."""
    if arguments[:1] == ["test"]:
        test(arguments[1:])
    if arguments[:1] == ["verify"]:
        from stateatlas import verify

        return verify.main(arguments[1:], ROOT)
    if arguments[:1] in (["plan"], ["costs"]):
        from stateatlas import sizing

        return sizing.main(arguments[0], arguments[1:], ROOT)
    try:
        return run(arguments)
    except runlock.Refusal as refusal:
        print(f"reproduce: {refusal}", file=sys.stderr)
        return 2


WORKERS = 4  # processes that run the fast tests


def test(arguments: list[str]) -> None:
    """Replace this process by pytest; `--slow` takes the slow tests in."""
    words = [word for word in arguments if word != "--slow"]
    # Paths are the caller's, but pytest runs in the project, where its settings are.
    places = {
        position: str(Path.cwd() / word)
        for position, word in enumerate(words)
        if is_test(word) and words[position - 1] not in ("-k", "-m")
    }
    words = [places.get(position, word) for position, word in enumerate(words)]
    command = [sys.executable, "-P", "-m", "pytest"]
    command += [] if "--slow" in arguments else ["-m", "not slow"]
    if "--slow" not in arguments and not places:
        # A worker takes whole files, whose fixtures are costly, in their order: the long ones, on clusters and DAGs,
        # come first. The slow tests kill and time what runs beside them.
        command += ["-n", str(min(WORKERS, os.cpu_count() or 1)), "--dist", "loadfile", "--no-loadscope-reorder"]
    command += words if places else [*words, "tests"]
    os.chdir(ROOT)
    os.execv(sys.executable, command)


def is_test(word: str) -> bool:
    """Say whether a word on the command line is a file or folder of tests."""
    path = Path(word.partition("::")[0])
    return path.exists() and path.resolve().is_relative_to(ROOT / "tests")


def run(arguments: list[str]) -> int:
    """Run Snakemake with the caller's arguments and return its exit code. Raises Refusal before it starts."""
    options = snakemake_options(arguments)
    command = [sys.executable, "-P", "-m", "snakemake", *options]
    # As activating .venv would, for rules that call a program by name.
    programs = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([programs, os.environ.get("PATH", os.defpath)])
    sys.stdout.flush()
    if runlock.reads_only(options):
        os.execv(sys.executable, command)
    workdir = Path(value_of(("-d", "--directory"), options) or ROOT).absolute()
    check_writable(workdir)
    with runlock.hold(workdir, " ".join(["./reproduce", *arguments])):
        code = supervise(command, workdir)
    if code == 0:
        say_where(options, workdir)
    return code


def snakemake_options(arguments: list[str]) -> list[str]:
    """Return the arguments for Snakemake: the caller's in their order, after the defaults they leave open."""
    defaults, cores_are_set = [], value_of((*CORES, *BRING_CORES), arguments) is not None
    if value_of(("-s", "--snakefile"), arguments) is None:
        defaults += ["--snakefile", str(ROOT / "Snakefile")]
        # On the command line they would overrule the profile, where the user may have set them.
        cores_are_set |= re.search("^(cores|jobs):", DEFAULT_PROFILE.read_text(), re.M) is not None
    if value_of(("-d", "--directory"), arguments) is None:
        defaults += ["--directory", str(ROOT)]
    if not cores_are_set and not os.environ.get("SNAKEMAKE_PROFILE"):
        defaults += ["--cores", "all"]
    return [*defaults, *arguments]


def value_of(names: tuple[str, ...], arguments: list[str]) -> str | None:
    """Return what an option is set to ("" if nothing follows it), or None if it is not there."""
    for position, word in enumerate(arguments):
        name, _, value = word.partition("=")
        if name in names:
            following = arguments[position + 1] if position + 1 < len(arguments) else ""
            return value if "=" in word else following
        if word[:2] in names:  # -c4
            return word[2:]
    return None


def check_writable(workdir: Path) -> None:
    """Raise Refusal if a folder that a run writes to cannot be written."""
    for name in WRITTEN:
        folder = (workdir / name).resolve()
        try:
            if name == ".":
                folder.mkdir(parents=True, exist_ok=True)
            elif not folder.exists():
                continue  # made by Snakemake in the folder above, which was checked
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".reproduce-") as file:
                file.write(bytes(1 << 16))
        except OSError as error:
            remedy = "Make it writable, or work in another folder with --directory."
            if error.errno in (28, 122):  # ENOSPC, EDQUOT
                remedy = "Free some space, then start again: what is finished stays."
            raise runlock.Refusal(f"cannot write to {folder}: {error.strerror}. {remedy}") from None


def supervise(command: list[str], workdir: Path) -> int:
    """Run Snakemake as a child, pass signals on to it, and return its exit code (128 + n after signal n)."""
    environment = {**os.environ, runlock.MARK: os.path.realpath(workdir)}
    child = None

    def pass_on(number: int, _frame: object) -> None:
        if child is None:
            sys.exit(128 + number)
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGTERM:  # Snakemake lets running jobs finish, so they must not see it
                child.send_signal(number)
            elif number == signal.SIGTSTP:
                os.killpg(child.pid, signal.SIGSTOP)
                os.kill(os.getpid(), signal.SIGSTOP)
                os.killpg(child.pid, signal.SIGCONT)
            else:  # a closed terminal ends the run as Ctrl-C does
                os.killpg(child.pid, signal.SIGINT)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup stays in force
            signal.signal(number, pass_on)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        env=environment,
        process_group=0,
        preexec_fn=die_with_parent(),  # noqa: PLW1509 (this process has one thread)
    )
    code = child.wait()
    if code < 0:
        runlock.end_orphans(workdir)
        name = signal.Signals(-code).name
        print(f"reproduce: Snakemake was ended by {name}; the same command goes on from there.", flush=True)
        return 128 - code
    return code


def die_with_parent():
    """Return what a child runs first so that it dies with this process, even by kill -9 (Linux), or None."""
    if not sys.platform.startswith("linux"):
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return ask


def say_where(options: list[str], workdir: Path) -> None:
    """Print where the report is after a run that made everything."""
    from snakemake.cli import get_argument_parser

    from stateatlas import verify

    asked = get_argument_parser().parse_args(options)
    ours = Path(asked.snakefile).resolve() == ROOT / "Snakefile"
    if asked.targets or asked.until or asked.omit_from or not ours:
        return
    config = verify.read_config(ROOT, asked.configfile, asked.config)
    page = workdir / "results" / str(config.get("scale")) / "report" / "index.html"
    if page.is_file():
        print(f"reproduce: the report is {page}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
