"""Which form the kernels of Mamba and Mamba-2 take, decided once a run, without importing torch."""

import importlib.util

from stateatlas import compiler
from stateatlas.settings import ConfigError

SAID = {
    "compiled": "compiled C, on the CPU",
    "mamba_ssm": "mamba-ssm, on the GPU, compared with plain PyTorch first",
    "torch": "plain PyTorch (slower; `backend: auto` takes mamba-ssm or a C compiler where there is one)",
}
PACKAGES = ("mamba_ssm", "causal_conv1d")


def resolve(backend: str, gpu: bool) -> str:
    """Return "compiled", "mamba_ssm" or "torch" for the config's `backend`.

    gpu: whether models run on a GPU in this run. There `auto` takes mamba-ssm where this Python has it, on the CPU
    the compiled form where there is a C compiler; a backend that is asked for is taken as it is.

    Raises
    ------
    ConfigError
        If mamba-ssm is asked for and models run on the CPU.
    """
    if backend == "mamba_ssm" and not gpu:
        raise ConfigError(
            "config.yaml: backend is 'mamba_ssm', which computes on a GPU, and this run has none; set gpu: true and "
            "leave `--resources gpu` above 0, or set backend: auto"
        )
    if backend != "auto":
        return backend
    if gpu:
        return "mamba_ssm" if all(map(importlib.util.find_spec, PACKAGES)) else "torch"
    return "compiled" if compiler.available() else "torch"
