"""Which form the kernels of Mamba and Mamba-2 take, decided once a run, without importing torch."""

from stateatlas import compiler

SAID = {
    "compiled": "compiled C, on the CPU",
    "torch": "plain PyTorch (slower on a CPU; `backend: auto` compiles where there is a C compiler)",
}


def resolve(backend: str, gpu: bool) -> str:
    """Return "compiled" or "torch" for the config's `backend`.

    gpu: whether models run on a GPU in this run, where the compiled form does not exist. `auto` compiles where it
    can; a backend that is asked for is taken as it is.
    """
    if backend != "auto":
        return backend
    return "compiled" if not gpu and compiler.available() else "torch"
