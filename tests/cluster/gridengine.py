"""A private Grid Engine on this machine: one host with two queues, counted GPUs, nothing outside its own folder.

`cpu.q` has eight slots; `gpu.q` has two and so has the host two of the consumable `gpu`.
"""

import os
import socket
import subprocess
import time
from pathlib import Path

from cluster import free_ports

LIBRARY = Path("/usr/lib/gridengine")
SHARED = Path("/usr/share/gridengine")
BOOTSTRAP = """\
admin_user         none
default_domain     none
ignore_fqdn        true
spooling_method    classic
spooling_lib       libspoolc
spooling_params    {folder}/default/common;{folder}/qmaster
binary_path        {library}
qmaster_spool_dir  {folder}/qmaster
security_mode      none
listener_threads   2
worker_threads     2
scheduler_threads  1
"""
CHANGED = {  # of Debian's own configuration
    "execd_spool_dir": "{folder}/execd",
    "min_uid": "0",
    "min_gid": "0",
    "load_report_time": "00:00:01",
    "reporting_params": "accounting=true reporting=false flush_time=00:00:01 joblog=false sharelog=00:00:00",
}
COMPLEXES = """\
gpu   gpu   INT     <=  YES  YES  0  0
tmem  tmem  MEMORY  <=  YES  NO   0  0
tscratch  tscratch  MEMORY  <=  YES  NO  0  0
"""
PARALLEL = """\
pe_name            smp
slots              99
user_lists         NONE
xuser_lists        NONE
start_proc_args    NONE
stop_proc_args     NONE
allocation_rule    $pe_slots
control_slaves     FALSE
job_is_first_task  TRUE
urgency_slots      min
accounting_summary FALSE
qsort_args         NONE
"""
QUEUE = """\
qname {name}
hostlist {host}
seq_no 0
load_thresholds NONE
suspend_thresholds NONE
nsuspend 1
suspend_interval 00:05:00
priority 0
min_cpu_interval 00:05:00
processors UNDEFINED
qtype BATCH INTERACTIVE
ckpt_list NONE
pe_list smp
rerun FALSE
slots {slots}
tmpdir /tmp
shell /bin/bash
prolog NONE
epilog NONE
shell_start_mode unix_behavior
starter_method NONE
suspend_method NONE
resume_method NONE
terminate_method NONE
notify 00:00:60
owner_list NONE
user_lists NONE
xuser_lists NONE
subordinate_list NONE
complex_values NONE
projects NONE
xprojects NONE
calendar NONE
initial_state default
s_rt INFINITY
h_rt INFINITY
s_cpu INFINITY
h_cpu INFINITY
s_fsize INFINITY
h_fsize INFINITY
s_data INFINITY
h_data INFINITY
s_stack INFINITY
h_stack INFINITY
s_core INFINITY
h_core INFINITY
s_rss INFINITY
h_rss INFINITY
s_vmem INFINITY
h_vmem INFINITY
"""


def missing() -> list[str]:
    """Return the programs of Grid Engine that are not installed here."""
    return [name for name in ("sge_qmaster", "sge_execd", "qconf", "spoolinit") if not (LIBRARY / name).exists()]


class GridEngine:
    """A running cluster in `folder`, whose path must have no space; `environment` is what its commands need."""

    def __init__(self, folder: Path):
        self.folder, self.host = folder, socket.gethostname().partition(".")[0]
        master, execd = free_ports(2)
        self.environment = os.environ | {
            "SGE_ROOT": str(folder),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": str(master),
            "SGE_EXECD_PORT": str(execd),
        }

    def start(self) -> None:
        """Start the daemons and wait until the host reports itself."""
        common = self.folder / "default" / "common"
        for path in (common, self.folder / "qmaster" / "job_scripts", self.folder / "execd"):
            path.mkdir(parents=True)
        architecture = self.run(SHARED / "util" / "arch").strip()
        for name in ("bin", "utilbin"):
            (self.folder / name).mkdir()
            (self.folder / name / architecture).symlink_to(LIBRARY)
        for name in ("util", "mpi"):
            (self.folder / name).symlink_to(SHARED / name)
        (common / "bootstrap").write_text(BOOTSTRAP.format(folder=self.folder, library=LIBRARY))
        (common / "act_qmaster").write_text(f"{self.host}\n")
        (common / "host_aliases").write_text(f"{self.host} localhost\n")  # the name of 127.0.0.1, where there is one
        changed = {key: value.format(folder=self.folder) for key, value in CHANGED.items()}
        lines = (SHARED / "default-configuration").read_text().splitlines()
        known = [
            f"{key} {changed[key]}" if (key := line.split()[0]) in changed else line for line in lines if line.strip()
        ]
        configuration = self._file("configuration", "\n".join(known) + "\n")
        self.run(LIBRARY / "spoolinit", "classic", "libspoolc", f"{common};{self.folder}/qmaster", "init")
        resources = SHARED / "util" / "resources"
        for what, given in (
            ("configuration", configuration),
            ("complexes", resources / "centry"),
            ("usersets", resources / "usersets"),
            ("managers", "root"),
            ("adminhosts", self.host),
        ):
            self.run(LIBRARY / "spooldefaults", what, given)
        self.run(LIBRARY / "sge_qmaster")
        self._wait(lambda: self.host in self.run("qconf", "-sh"))
        self._configure()
        self.run(LIBRARY / "sge_execd")
        self._wait(lambda: self.host in (said := self.run("qhost", "-F", "gpu")) and "gpu=2" in said)

    def _configure(self) -> None:
        self.run("qconf", "-as", self.host)
        complexes = self._file("complexes", self.run("qconf", "-sc") + COMPLEXES)
        self.run("qconf", "-Mc", complexes)
        self.run("qconf", "-Ap", self._file("smp", PARALLEL))
        none = (
            "load_scaling",
            "user_lists",
            "xuser_lists",
            "projects",
            "xprojects",
            "usage_scaling",
            "report_variables",
        )
        host = f"hostname {self.host}\ncomplex_values gpu=2,tmem=64G,tscratch=1000G\n" + "".join(
            f"{key} NONE\n" for key in none
        )
        self.run("qconf", "-Ae", self._file("host", host))
        for name, slots in (("cpu.q", 8), ("gpu.q", 2)):
            self.run("qconf", "-Aq", self._file(name, QUEUE.format(name=name, host=self.host, slots=slots)))
        scheduler = self.run("qconf", "-ssconf").replace(
            "schedule_interval                 0:0:15", "schedule_interval 0:0:1"
        )
        self.run("qconf", "-Msconf", self._file("scheduler", scheduler))

    def stop(self) -> None:
        """Delete what runs and end the daemons that were started here."""
        for command in (("qdel", "-u", "*"), ("qconf", "-ke", "all"), ("qconf", "-km")):
            subprocess.run(command, env=self.environment, capture_output=True, check=False)
        time.sleep(2)
        for file in self.folder.rglob("*.pid"):
            subprocess.run(["kill", "-KILL", file.read_text().strip()], capture_output=True, check=False)

    def run(self, *command: str | Path) -> str:
        """Run a command of Grid Engine and return what it says."""
        done = subprocess.run(
            [*map(str, command)], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"
        return done.stdout

    def jobs(self) -> list[dict[str, str]]:
        """Return what the accounting holds of every job that has ended, by its own names."""
        found: list[dict[str, str]] = []
        for block in self.run("qacct", "-j", "*").split("=" * 62)[1:]:
            rows = (line.split(None, 1) for line in block.splitlines() if line.strip())
            found.append({row[0]: row[1].strip() if len(row) > 1 else "" for row in rows})
        return found

    def _file(self, name: str, content: str) -> Path:
        path = self.folder / f"given-{name}"
        path.write_text(content)
        return path

    def _wait(self, ready) -> None:
        for _ in range(200):
            try:
                if ready():
                    return
            except AssertionError:
                pass
            time.sleep(0.1)
        logs = "\n".join(path.read_text()[-2000:] for path in self.folder.rglob("messages"))
        raise AssertionError(f"Grid Engine did not come up:\n{logs}")
