"""The C compiler that kernels are built with at run time, if there is one. Standard library only."""

import ctypes
import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

# No -ffast-math: it reorders sums, and with older GCC the whole process then flushes denormal numbers.
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-w")
TRIAL = """
typedef float vec __attribute__((vector_size(16)));
void add(vec *x) { *x += 1; }
"""


class CompilerError(RuntimeError):
    """A kernel could not be compiled or loaded."""


@functools.cache
def find() -> str | None:
    """Return the command of a working C compiler, or None; `$CC` goes before `cc`, `gcc` and `clang`.

    Working means: a small shared library, built with the flags of the kernels, can be loaded.
    """
    candidates = [os.environ["CC"]] if os.environ.get("CC") else ["cc", "gcc", "clang"]
    for command in candidates:
        if not shutil.which(shlex.split(command)[0]):
            continue
        try:
            with tempfile.TemporaryDirectory() as folder:
                source, library = Path(folder, "trial.c"), Path(folder, "trial.so")
                source.write_text(TRIAL)
                build(command, [source], library)
                ctypes.CDLL(str(library))
        except (CompilerError, OSError):
            continue
        return command
    return None


def available() -> bool:
    """Return whether kernels can be compiled here."""
    return find() is not None


def build(command: str, sources: list[Path], library: Path, defines: tuple[str, ...] = ()) -> None:
    """Compile `sources` to the shared `library`.

    Raises
    ------
    CompilerError
        With the command and what the compiler said, if it failed.
    """
    line = [*shlex.split(command), *FLAGS, *defines, "-o", str(library), *map(str, sources)]
    run(line)


def target(command: str) -> str:
    """Return the predefined macros: they name the compiler and the instructions of this processor."""
    return run([*shlex.split(command), *FLAGS[:2], "-dM", "-E", "-x", "c", os.devnull])


def run(line: list[str]) -> str:
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CompilerError(f"{shlex.join(line)}: {error}") from error
    if done.returncode:
        said = done.stderr.strip()
        raise CompilerError(f"{shlex.join(line)}\nfailed with status {done.returncode}:\n{said}")
    return done.stdout
