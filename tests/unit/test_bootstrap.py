"""`./reproduce` makes its environment: real virtual environments and a real pip, tiny wheels, no network."""

import fcntl
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

from stateatlas import bootstrap, install

ROOT = Path(bootstrap.__file__).resolve().parents[2]
# Distribution -> module: what IMPORTS in bootstrap.py needs.
TINY = {
    "torch": "torch", "numpy": "numpy", "pandas": "pandas", "pyarrow": "pyarrow", "scikit_learn": "sklearn",
    "matplotlib": "matplotlib", "snakemake": "snakemake", "psutil": "psutil",
}  # fmt: skip
DRIVER = "import sys\nprint('driver', sys.version_info[:2], sys.prefix, sys.argv[1:])\n"


def write_wheel(folder: Path, distribution: str, module: str, version: str, body: str = "") -> None:
    """Write the smallest wheel that pip installs."""
    info = f"{distribution}-{version}.dist-info"
    content = {
        f"{module}/__init__.py": body,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    content[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*content, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{distribution}-{version}-py3-none-any.whl", "w") as wheel:
        for name, text in content.items():
            wheel.writestr(name, text)


def make_project(folder: Path) -> Path:
    """Copy what `./reproduce` needs to a new project with a fake driver and tiny wheels."""
    package = folder / "scripts" / "stateatlas"
    package.mkdir(parents=True)
    shutil.copy(ROOT / "reproduce", folder)
    for name in ("__init__", "bootstrap", "install"):
        shutil.copy(ROOT / "scripts" / "stateatlas" / f"{name}.py", package)
    (package / "driver.py").write_text(DRIVER)
    (folder / "envs").mkdir()
    (folder / "envs" / "requirements.txt").write_text("".join(f"{name}==1.0\n" for name in TINY))
    (folder / "wheels").mkdir()
    for distribution, module in TINY.items():
        write_wheel(folder / "wheels", distribution, module, "1.0")
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    return make_project(tmp_path_factory.mktemp("a") / "it's a project")


def settings(project: Path, **changes: str) -> dict[str, str]:
    """Return an environment with pip's settings for this project alone."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "STATEATLAS_"))}
    kept.pop("PYTHON", None)
    wheels = (project / "wheels").as_uri()
    own = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels}
    return kept | own | {"PATH": f"{Path(sys.executable).parent}:{kept['PATH']}"} | changes


def call(project: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess:
    """Run `./reproduce` from another working directory."""
    command, env = [str(project / "reproduce"), *arguments], settings(project, **changes)
    return subprocess.run(command, cwd=project.parent, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def made(project: Path) -> Path:
    """A project whose first setup was killed and whose second one ended well."""
    first = subprocess.Popen([project / "reproduce"], env=settings(project), stderr=subprocess.DEVNULL, process_group=0)
    while not (project / ".venv" / "bin" / "python").exists() and first.poll() is None:
        time.sleep(0.02)
    assert first.poll() is None
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    done = call(project, "-n", "a b", "it's")
    assert done.returncode == 0, done.stderr
    assert "not complete; making it again" in done.stderr
    assert done.stdout.endswith(f"{project / '.venv'} ['-n', 'a b', \"it's\"]\n")
    return project


def outdate(project: Path) -> None:
    """Let the environment look as if it was made from other pins."""
    stamp = {"requirements": "others", "python": install.THIS_PYTHON, "torch": ""}
    (project / ".venv" / bootstrap.STAMP).write_text(json.dumps(stamp))


def test_a_killed_setup_is_made_again_in_a_folder_with_space_and_apostrophe(made):
    assert json.loads((made / ".venv" / bootstrap.STAMP).read_text())["torch"] == ""


def test_a_second_call_starts_at_once_and_touches_nothing(made):
    log = (made / "logs" / "setup.log").stat().st_mtime_ns
    began = time.monotonic()
    done = call(made, "figures", PIP_FIND_LINKS="/nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - began < 2
    assert (made / "logs" / "setup.log").stat().st_mtime_ns == log


def test_another_pin_is_installed_into_the_same_environment(made):
    write_wheel(made / "wheels", "numpy", "numpy", "1.1")
    pins = made / "envs" / "requirements.txt"
    pins.write_text(pins.read_text().replace("numpy==1.0", "numpy==1.1"))
    done = call(made)
    assert done.returncode == 0
    assert "making" not in done.stderr
    assert list((made / ".venv").rglob("numpy-1.1.dist-info"))


def test_torch_alone_comes_from_the_folder_that_the_variable_names(made):
    other = made / "torch only"
    other.mkdir()
    write_wheel(other, "torch", "torch", "1.0+cpu")
    done = call(made, STATEATLAS_TORCH_INDEX=str(other))
    assert done.returncode == 0, done.stderr
    assert f"installing torch==1.0 from {other}" in done.stderr
    assert list((made / ".venv").rglob("torch-1.0+cpu.dist-info"))
    assert call(made).stderr == "", "a call without the variable keeps what is there"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"STATEATLAS_TORCH_INDEX": "/no/such"}, "_INDEX=/no/such is neither a URL nor a folder"),
        ({"STATEATLAS_TORCH_INDEX": "http://127.0.0.1:9/cpu"}, "pip cannot reach its package index"),
        ({"PIP_INDEX_URL": "http://127.0.0.1:9/simple"}, "pip cannot reach its package index"),
        ({"PIP_NO_INDEX": "1"}, "pip found no torch==9.0 for Python 3."),
    ],
)
def test_a_failed_install_gets_one_message_and_the_log_the_rest(made, changes, told):
    outdate(made)
    (made / "envs" / "requirements.txt").write_text("torch==9.0\n")
    done = call(made, **({"PIP_NO_INDEX": "0", "PIP_RETRIES": "1", "PIP_FIND_LINKS": ""} | changes))
    assert done.returncode == 1
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "driver" not in done.stdout


def test_packages_that_do_not_load_are_found_at_setup(made):
    write_wheel(made / "wheels", "psutil", "psutil", "2.0", body="raise ImportError('no libfoo')")
    (made / "envs" / "requirements.txt").write_text("psutil==2.0\n")
    outdate(made)
    done = call(made)
    assert done.returncode == 1
    assert "the installed packages do not load: ImportError: no libfoo" in done.stderr
    assert not (made / ".venv" / bootstrap.STAMP).exists()


def test_help_needs_no_environment(tmp_path):
    done = call(make_project(tmp_path / "p"), "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: ./reproduce")
    assert not (tmp_path / "p" / ".venv").exists()


def test_no_python_new_enough_gets_one_message(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("python3", "python3.13", "python3.12", "python3.11"):
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    project = make_project(tmp_path / "p")
    done = call(project, PATH=f"{programs}:/usr/bin:/bin", PYTHON="python2")
    assert done.returncode == 1
    assert "PYTHON=python2 is not a Python 3.11 or newer" in done.stderr
    assert "no Python 3.11 or newer found" in done.stderr


def test_the_named_python_is_taken_first(tmp_path):
    project = make_project(tmp_path / "p")
    mine = tmp_path / "mine"
    mine.write_text(f'#!/bin/sh\necho mine >&2\nexec {shlex.quote(sys.executable)} "$@"\n')
    mine.chmod(0o755)
    assert call(project, "--help", PYTHON=str(mine)).stderr == "mine\n"


@pytest.mark.parametrize("gone", ["venv", "ensurepip"])
def test_a_python_without_venv_or_pip_is_told_what_to_install(tmp_path, monkeypatch, gone):
    project = make_project(tmp_path / "p")
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda name: None if name == gone else 1)
    with pytest.raises(install.SetupError, match=rf"has no {gone} module.*apt install python3\.\d+-venv"):
        bootstrap.ensure(project)


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("PermissionError: [Errno 13] Permission denied: '/x'", "no permission to write"),
        ("/p/.venv/bin/python: No module named pip", "has no pip"),
        ("connection broken by ...\nERROR: No matching distribution found for torch==1", "cannot reach"),
        ("ERROR: No matching distribution found for numpy==9 (from x)", "found no numpy==9 for Python"),
        ("a\nb\nERROR: ResolutionImpossible", "exit code 1:\n    a\n    b\n    ERROR: ResolutionImpossible"),
    ],
)
def test_what_pip_says_becomes_a_cause_and_a_remedy(output, told):
    message = install.explain(["python", "-m", "pip"], 1, output, "logs/setup.log")
    assert told in message
    assert message.endswith("Full output: logs/setup.log")


def test_an_environment_whose_python_is_gone_is_unfinished(tmp_path):
    (tmp_path / bootstrap.STAMP).write_text('{"requirements": "x", "python": "3.11", "torch": ""}')
    assert bootstrap.state(tmp_path, "x") == "unfinished"


def test_constraints_belong_to_the_fingerprint(tmp_path):
    (tmp_path / "requirements.txt").write_text("torch==1.0\n")
    before = bootstrap.fingerprint(tmp_path / "requirements.txt")
    (tmp_path / "constraints.txt").write_text("six==1.0\n")
    assert bootstrap.fingerprint(tmp_path / "requirements.txt") != before


def test_a_second_setup_waits_for_the_first(tmp_path, capsys):
    with (tmp_path / "setup.log").open("a+") as first, (tmp_path / "setup.log").open("a+") as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        waiting = threading.Thread(target=bootstrap.wait_for_turn, args=(second,))
        waiting.start()
        time.sleep(0.2)
        assert waiting.is_alive()
        fcntl.flock(first, fcntl.LOCK_UN)
        waiting.join(timeout=5)
        assert not waiting.is_alive()
    assert "another setup of this .venv is running" in capsys.readouterr().err
