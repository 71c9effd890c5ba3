"""What every rule's script runs inside: its cfg, log, threads, lock, temporary outputs and manifest.

A script is

    from stateatlas.job import job

    with job(snakemake) as run:
        ...read run.input.<name>, write run.output.<name>, both paths...

Outputs are written to temporary names and renamed when the block ends well; the manifest is written last. A job
that fails leaves one line that says what is wrong, and the traceback in its log.
"""

import contextlib
import errno
import json
import logging
import os
import platform
import re
import resource
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import filelock
import psutil

from stateatlas import gpus, manifest
from stateatlas.canonical import canonical, sha256, sha256_file

log = logging.getLogger("stateatlas")
leaving = threading.Event()  # set by a training that was asked to end and still saves its checkpoint
GRACE = 5  # seconds that it has for that
ONLINE = ("corpus", "fetch")  # the rules that may need the network


class InputError(Exception):
    """An input that cannot be used; the message names the file and the remedy."""


@dataclass
class Run:
    """A running job: `cfg`, `input` and `output` by name (paths), and `work`, a folder that outlives a kill."""

    cfg: dict
    input: SimpleNamespace
    output: SimpleNamespace
    work: Path
    device: str


@contextlib.contextmanager
def job(snakemake) -> Iterator[Run]:
    """Run one job of a rule (see the module)."""
    started = time.monotonic()
    cfg = json.loads(snakemake.params.cfg)
    _pin_threads(cfg["threads"])
    if cfg["rule"] not in ONLINE:
        os.environ["HF_HUB_OFFLINE"] = "1"
    _end_with_driver()
    # An error's text alone goes to the terminal; everything else is in the log.
    try:
        _log_to(Path(snakemake.log[0]))
        declared = {name: Path(path) for name, path in snakemake.output.items() if name != "manifest"}
        temporary = {name: _temporary(path) for name, path in declared.items()}
        with contextlib.ExitStack() as held:
            held.enter_context(_locked(Path(snakemake.output.manifest)))
            held.enter_context(_cleaned([*map(_temporary, map(Path, snakemake.output))]))
            device = "cpu"
            if gpus.wanted(snakemake.resources) and cfg.get("backend") != "compiled":
                held.enter_context(gpus.leased())
                device = gpus.device()
            run = Run(cfg, _inputs(snakemake), SimpleNamespace(**temporary), _work(snakemake), device)
            yield run
            for name, path in temporary.items():
                _publish(path, declared[name])
            _write_manifest(snakemake, cfg, list(declared.values()))
            _not_ahead([*map(Path, snakemake.input)])
            shutil.rmtree(run.work, ignore_errors=True)
            _write_run(Path(snakemake.log[0]), started, device)
        log.info("done in %.1f s", time.monotonic() - started)
    except Exception as error:
        log.error("%s", traceback.format_exc())
        sys.exit(f"{cfg['rule']}: {_say(error)}\nThe traceback is in {snakemake.log[0]}")


def _say(error: Exception) -> str:
    """What is wrong and what to do about it, in one line."""
    place = getattr(error, "filename", None) or os.getcwd()
    number = getattr(error, "errno", None)
    # Some libraries wrap the system's error in one of their own.
    if number in (errno.ENOSPC, errno.EDQUOT) or re.search("No space left|StorageFull|Disk quota", str(error)):
        return f"the disk is full ({place}); free some space and run the same command again"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no permission for {place}; make it writable and run the same command again"
    if number in (errno.EEXIST, errno.ENOTDIR, errno.EISDIR):
        return f"{place} is in the way; remove it and run the same command again"
    if type(error).__name__ == "OutOfMemoryError":  # torch's, which is not imported here
        return (
            "the GPU's memory is not enough, in smaller batches neither; take a GPU with more, a smaller model, or "
            "add `--resources gpu=0` to run on the CPU"
        )
    return f"{error}" if isinstance(error, InputError) else f"{type(error).__name__}: {error}"


def _pin_threads(threads: int) -> None:
    """The one place where threads are set: from cfg, never from what the scheduler grants."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)


def _log_to(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path, mode="w")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # a log on a full disk must not hide what is wrong


def _end_with_driver() -> None:
    """End this process as soon as the Snakemake that started it is gone: an orphan must not go on."""
    parents = psutil.Process().parents()
    places = [i for i, parent in enumerate(parents) if any("snakemake" in word for word in _command(parent))]
    drivers = parents[: places[0] + 1] if places else []

    def watch() -> None:
        while all(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in drivers):
            time.sleep(0.5)
        if leaving.is_set():  # a scheduler ends all processes of a job at once
            time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@contextlib.contextmanager
def _locked(output: Path) -> Iterator[None]:
    """Hold the lock of these outputs; wait while an orphan of a killed driver still holds it."""
    folder = _work_root(output)
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / f"{sha256(output.as_posix())[:16]}.lock")
    try:
        lock.acquire(timeout=30)
    except filelock.Timeout:
        raise InputError(f"another process writes {output.parent}; end it and run the same command again") from None
    try:
        yield
    finally:
        lock.release()


def _work_root(output: Path) -> Path:
    """`results/<scale>/.work`, beside the results of the same scale, or `resources/.work`."""
    parts = output.parts
    if "results" not in parts:
        return Path("resources", ".work")
    return Path(*parts[: len(parts) - 1 - parts[::-1].index("results") + 2], ".work")


def _work(snakemake) -> Path:
    """A folder for checkpoints, keyed by everything that they depend on."""
    inputs = [sha256_file(Path(path)) for path in snakemake.input if Path(path).name == "manifest.json"]
    versions = [manifest.version("torch"), manifest.version("numpy")]
    return (
        _work_root(Path(snakemake.output.manifest)) / sha256(canonical([snakemake.params.cfg, inputs, versions]))[:32]
    )


def _inputs(snakemake) -> SimpleNamespace:
    """Return the inputs by name, after checking that each file is what its manifest says."""
    known: dict[Path, str] = {}
    for path in map(Path, snakemake.input):
        if not path.exists():
            raise InputError(f"{path}: missing; delete {path.parent} and run again")
        if path.name == "manifest.json":
            try:
                outputs = json.loads(path.read_bytes())["outputs"]
                known |= {path.parent / name: checksum for name, checksum in outputs.items()}
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise InputError(f"{path}: damaged ({error}); delete {path.parent} and run again") from error
    for path in map(Path, snakemake.input):
        if path in known and manifest.checksum(path) != known[path]:
            raise InputError(f"{path}: not what its manifest says; delete {path.parent} and run again")
    return SimpleNamespace(
        **{
            name: Path(value) if isinstance(value, str) else [Path(v) for v in value]
            for name, value in snakemake.input.items()
        }
    )


def _temporary(path: Path) -> Path:
    return path.with_name(f".part-{path.name}")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _cleaned(temporary: list[Path]) -> Iterator[None]:
    """Remove what a killed job left, and at the end what a failed one leaves: a full disk is not made fuller."""
    for path in temporary:
        _remove(path)
    try:
        yield
    finally:
        for path in temporary:
            with contextlib.suppress(OSError):
                _remove(path)


def _publish(temporary: Path, path: Path) -> None:
    _remove(path)
    temporary.replace(path)


def _not_ahead(inputs: list[Path]) -> None:
    """Date to now what another job made and a clock that was set back has left in the future: Snakemake would take the
    outputs, which are older, for a failure and remove them. Times say nothing here; manifests are compared."""
    now = time.time()
    for path in inputs:
        dated = path / ".snakemake_timestamp" if path.is_dir() else path
        with contextlib.suppress(OSError):
            if dated.stat().st_mtime > now and (path.parent / "manifest.json").exists():
                os.utime(dated, (now, now))


def _write_manifest(snakemake, cfg: dict, outputs: list[Path]) -> None:
    path = Path(snakemake.output.manifest)
    inputs = [p for p in map(Path, snakemake.input) if p.name == "manifest.json"]
    temporary = _temporary(path)
    manifest.write(
        temporary,
        manifest.describe(cfg, dict(snakemake.wildcards), inputs, outputs, set(sys.modules), path.parent),
    )
    _publish(temporary, path)


def _write_run(logfile: Path, started: float, device: str) -> None:
    """What is not deterministic: beside the log, read by nothing but the benchmark table."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    wall = time.monotonic() - started
    content = {
        "wall_s": round(wall, 2),
        "peak_bytes": peak,
        "device": device,
        "ended": round(time.time(), 2),
        "node": os.environ.get("SLURMD_NODENAME") or platform.node(),
        "gpu": os.environ.get(gpus.VISIBLE),
        "peak_gpu_bytes": sys.modules["torch"].cuda.max_memory_allocated() if device == "cuda" else 0,
    }
    logfile.with_suffix(".run.json").write_text(json.dumps(content) + "\n")
