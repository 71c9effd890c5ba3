"""One `./reproduce` at a time in a folder, and what a killed one left behind there.

The lock is a flock on `.reproduce.lock`: it dies with its process, whatever kills it. Snakemake's own lock
does not: it is a folder of files that stays behind, and looks the same whether its owner lives or not.
"""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

LOCK = ".reproduce.lock"
MARK = "STATEATLAS_RUN"  # in the environment of everything a run starts: the folder it works in
REMOTE = ("nfs", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb", "afs", "glusterfs", "panfs", "fuse.")
READ_ONLY = {
    "--dry-run", "--dryrun", "--lint", "--report", "--help", "--version", "--list", "--list-rules",
    "--list-target-rules", "--lt", "--dag", "--rulegraph", "--filegraph", "--summary", "--detailed-summary",
    "--list-changes", "--lc", "--list-input-changes", "--li", "--list-params-changes", "--lp",
    "--list-untracked", "--lu", "--list-conda-envs", "--print-compilation", "--containerize", "--export-cwl",
}  # fmt: skip


class Refusal(Exception):
    """The run must not start; the message names the cause and the remedy."""


def reads_only(arguments: list[str]) -> bool:
    """Say whether Snakemake only shows something with these arguments and takes no lock itself."""
    for argument in arguments:
        if argument.partition("=")[0] in READ_ONLY:
            return True
        if argument.startswith("-") and not argument.startswith("--"):
            flags = argument[1:]
            if flags.lstrip("pkaftF")[:1] in set("nlSDhv") and flags:  # also -np; -v and -h end the call
                return True
    return False


@contextlib.contextmanager
def hold(workdir: Path, command: str) -> Iterator[None]:
    """Hold the folder for one run, clearing what a killed run left. Raises Refusal if another is alive."""
    with (workdir / LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise Refusal(describe_holder(workdir)) from None
            print("reproduce: this file system has no locks; start only one run here at a time.", flush=True)
        before = read_record(workdir)  # a run that ended by itself leaves none
        clear_leftovers(workdir, before)
        record = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "command": command,
        }
        lock.truncate(0)
        lock.write(json.dumps(record) + "\n")
        lock.flush()
        yield
        lock.truncate(0)


def read_record(workdir: Path) -> dict:
    """Return what the last run wrote into its lock; empty if it ended by itself."""
    try:
        record = json.loads((workdir / LOCK).read_text())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def describe_holder(workdir: Path) -> str:
    """Return the message about the run that holds the folder."""
    record = read_record(workdir)
    pid, host = record.get("pid", "?"), record.get("host", "?")
    return (
        f"another ./reproduce runs in {workdir}: process {pid} on {host} since {record.get('since', '?')} "
        f"({record.get('command', '?')}). Wait for it to end, or stop it with `kill -INT {pid}` on {host}, "
        "or work in another folder with --directory."
    )


def clear_leftovers(workdir: Path, before: dict) -> None:
    """End what a killed run left running and remove its Snakemake lock.

    `before` is the record of the run before this one. Raises Refusal if a Snakemake that is not ours to end
    lives in the folder, or may live on another machine. The caller holds the folder's lock.
    """
    ended = end_orphans(workdir)
    if ended:
        print(f"reproduce: ended {ended} process(es) left running by a killed run.", flush=True)
    living = find_snakemake(workdir)
    if living:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(living.create_time()))
        raise Refusal(
            f"a Snakemake started without ./reproduce runs in {workdir}: process {living.pid} since {since}. "
            f"Wait for it to end, or stop it with `kill -INT {living.pid}`, or work in another folder with "
            "--directory."
        )
    locks = workdir / ".snakemake" / "locks"
    if not (locks.is_dir() and any(locks.iterdir())):
        return
    if not before and on_network(workdir):
        raise Refusal(
            f"{locks} holds the lock of a Snakemake started without ./reproduce. None runs on this machine, "
            "but the folder is on a network file system. If none runs on another machine either, remove "
            f"{locks} and start again."
        )
    shutil.rmtree(locks)
    owner = f" (process {before['pid']}, {before['since']})" if {"pid", "since"} <= before.keys() else ""
    print(f"reproduce: cleared the lock of a Snakemake that is no longer alive{owner}.", flush=True)


def end_orphans(workdir: Path) -> int:
    """End every process that a run in this folder started; return how many there were.

    Only for the holder of the folder's lock, or a run about its own children: then nobody waits for them.
    """
    family = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    here = os.path.realpath(workdir)
    orphans = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid not in family and process.environ().get(MARK) == here:
                orphans.append(process)
    for stop in (psutil.Process.terminate, psutil.Process.kill):
        for process in orphans:
            with contextlib.suppress(psutil.NoSuchProcess):
                stop(process)
        if not psutil.wait_procs(orphans, timeout=5)[1]:
            break
    return len(orphans)


def find_snakemake(workdir: Path) -> psutil.Process | None:
    """Return a living Snakemake that works in this folder and does more than show something."""
    here = os.path.realpath(workdir)
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            arguments = snakemake_arguments(process.cmdline())
            if arguments is not None and process.cwd() == here and not reads_only(arguments):
                return process
    return None


def snakemake_arguments(command: list[str]) -> list[str] | None:
    """Return the arguments after the program if a command line starts Snakemake, else None."""
    for position, word in enumerate(command):
        name = os.path.basename(word).lower()  # macOS: .../Python
        if position == 0 and name.startswith("python"):
            continue
        if name == "snakemake" or word.endswith("snakemake/__main__.py"):
            return command[position + 1 :]
        # Python's own options come before the program: `python -P -m snakemake`.
        if position == 0 or not word.startswith("-"):
            return None
    return None


def on_network(folder: Path) -> bool:
    """Say whether a folder lies on a file system that other machines may share."""
    path = os.path.realpath(folder)
    kind, longest = "", ""
    for disk in psutil.disk_partitions(all=True):
        inside = os.path.commonpath([path, disk.mountpoint]) == disk.mountpoint
        if inside and len(disk.mountpoint) >= len(longest):
            kind, longest = disk.fstype.lower(), disk.mountpoint
    return kind.startswith(REMOTE)
