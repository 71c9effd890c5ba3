"""A private Slurm on this machine: virtual nodes, fake GPUs, no root rights, nothing outside its own folder.

Two CPU nodes and two nodes with two GPUs each, in the partitions `cpu` and `gpu`. The GPUs are links to /dev/null:
Slurm hands them out and sets CUDA_VISIBLE_DEVICES, and nothing can compute on them.
"""

import getpass
import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "srun", "munged")
NODES = {"cpu": ("c1", "c2"), "gpu": ("g1", "g2")}
GPUS = 2  # a node

SLURM_CONF = """\
ClusterName=private
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=1,bf_interval=1
MpiDefault=none
ReturnToService=2
MinJobAge=3600
KillWait=5
GresTypes=gpu
{nodes}
PartitionName=cpu Nodes=c1,c2 Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes=g1,g2 MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """Return the programs of Slurm that are not installed here."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


def free_ports(number: int) -> list[int]:
    """Return ports that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Cluster:
    """A running cluster in `folder`, whose path must have no space; `environment` is what its commands need."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.daemons: dict[str, subprocess.Popen] = {}
        programs = folder / "bin"
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath), "/usr/sbin"]),
        }
        programs.mkdir(parents=True)
        # Jobs lose SLURM_CONF before they call srun; on a real cluster the file lies where Slurm looks by itself.
        wrapper = programs / "srun"
        wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun")} "$@"\n')
        wrapper.chmod(0o755)

    def start(self) -> None:
        """Start the daemons and wait until every node is idle."""
        self._configure()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        names = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        options = [f"--{option}={self.folder}/munge.{name}" for option, name in names.items()]
        self._daemon("munged", "--foreground", "--force", *options)
        self._wait((self.folder / "munge.socket").exists, "munged")
        self._daemon("slurmctld", "-D", "-i")
        for node in (*NODES["cpu"], *NODES["gpu"]):
            self.start_node(node)
        self._wait(lambda: self.states() == ["idle"] * 4, "the nodes")

    def start_node(self, node: str) -> None:
        """Start a node, or start it again."""
        self._daemon("slurmd", "-D", "-N", node, name=node)

    def stop_node(self, node: str) -> None:
        """Let a node die without a word, with everything that runs on it."""
        jobs = self.run("squeue", "--noheader", "--nodelist", node, "-o", "%A").split()
        steps = [p for job in jobs for p in _matching(f"slurmstepd: [{job}.")]
        self.daemons.pop(node).kill()
        for process in steps:
            subprocess.run(["pkill", "-KILL", "-P", process], check=False)
            subprocess.run(["kill", "-KILL", process], check=False)
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")

    def stop(self) -> None:
        """Cancel what runs and end the daemons that were started here."""
        subprocess.run(["scancel", "--me"], env=self.environment, check=False)
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()

    def run(self, *command: str) -> str:
        """Run a command of Slurm and return what it says."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def states(self) -> list[str]:
        """Return the state of every node."""
        return self.run("sinfo", "--Node", "--noheader", "-o", "%T").split()

    def jobs(self) -> list[dict[str, str]]:
        """Return what Slurm knows about every job so far, by the names that `scontrol show job` uses."""
        text = self.run("scontrol", "show", "job", "--details", "--oneliner")
        return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in text.splitlines() if line.startswith("JobId=")]

    def _configure(self) -> None:
        nodes = [*NODES["cpu"], *NODES["gpu"]]
        controller, *ports = free_ports(1 + len(nodes))
        host = socket.gethostname().partition(".")[0]
        lines = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 RealMemory=64000 State=UNKNOWN"
            + (f" Gres=gpu:{GPUS}" if node in NODES["gpu"] else "")
            for node, port in zip(nodes, ports, strict=True)
        ]
        for name in ("state", *(f"spool-{node}" for node in nodes)):
            (self.folder / name).mkdir()
        for gpu in range(GPUS):
            (self.folder / f"gpu{gpu}").symlink_to(os.devnull)
        gres = [f"NodeName={node} Name=gpu File={self.folder}/gpu{gpu}" for node in NODES["gpu"] for gpu in range(GPUS)]
        (self.folder / "gres.conf").write_text("\n".join(gres) + "\n")
        (self.folder / "slurm.conf").write_text(
            SLURM_CONF.format(
                host=host, controller=controller, user=getpass.getuser(), folder=self.folder, nodes="\n".join(lines)
            )
        )

    def _daemon(self, program: str, *arguments: str, name: str | None = None) -> None:
        with (self.folder / f"{name or program}.out").open("a") as out:
            self.daemons[name or program] = subprocess.Popen(
                [program, *arguments], env=self.environment, stdout=out, stderr=out, start_new_session=True
            )

    def _wait(self, ready, what: str) -> None:
        for _ in range(300):
            try:
                if ready():
                    return
            except AssertionError:
                pass
            time.sleep(0.1)
        logs = "\n".join(path.read_text()[-2000:] for path in sorted(self.folder.glob("*.out")))
        raise AssertionError(f"{what} did not come up:\n{logs}")


def _matching(words: str) -> list[str]:
    found = subprocess.run(["pgrep", "-f", re.escape(words)], capture_output=True, text=True, check=False)
    return found.stdout.split()
