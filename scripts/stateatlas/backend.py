"""Which form the kernels of Mamba and Mamba-2 take, decided once a run, without importing torch."""

import shutil
import subprocess

from stateatlas import compiler

SAID = {
    "compiled": "compiled C, on the CPU",
    "torch": "plain PyTorch (slower on a CPU; `backend: auto` compiles where there is a C compiler)",
}


def local_gpus() -> int:
    """Return how many NVIDIA GPUs this machine shows."""
    if shutil.which("nvidia-smi") is None:
        return 0
    listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False)
    return listed.stdout.count("GPU ") if listed.returncode == 0 else 0


def resolve(backend: str, gpu: bool) -> str:
    """Return "compiled" or "torch" for the config's `backend`.

    gpu: whether models run on a GPU in this run, where the compiled form does not exist. `auto` compiles where it
    can; a backend that is asked for is taken as it is.
    """
    if backend != "auto":
        return backend
    return "compiled" if not gpu and compiler.available() else "torch"
