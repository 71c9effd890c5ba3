"""What Mamba and Mamba-2 compute along the sequence, in the form that the job's backend names."""

import functools

import torch

from stateatlas.kernels import plain

_compiled = None  # the module with the compiled forms, where they are to be used


def use(backend: str) -> None:
    """Choose the form for this process: "torch" (plain PyTorch, also before any call) or "compiled".

    Compiled kernels serve float32 and float64 on the CPU; elsewhere plain PyTorch still takes over.

    Raises
    ------
    ValueError
        If `backend` is neither.
    compiler.CompilerError
        If "compiled" is asked for and the kernels cannot be compiled.
    """
    global _compiled  # noqa: PLW0603 (a setting of the process, made once before any work)
    if backend not in ("torch", "compiled"):
        raise ValueError(f"backend {backend!r}: must be 'torch' or 'compiled'")
    _compiled = None
    if backend == "compiled":
        from stateatlas.kernels import compiled

        compiled.loaded(torch.float32)
        _compiled = compiled


def _in_float32(form):
    """Let `form` run in float32 where autocast has halved its inputs: a state sums over the whole sequence."""

    @functools.wraps(form)
    def run(*inputs):
        device = inputs[0].device.type
        if not torch.is_autocast_enabled(device):
            return form(*inputs)
        with torch.autocast(device, enabled=False):
            return form(*(x.float() for x in inputs))

    return run


def rms_norm(x, weight, eps):
    """Root-mean-square norm; see `plain.rms_norm`."""
    if _compiled and x.ndim == 3 and _compiled.fits(x, weight):
        return _compiled.Norm.apply(x, weight, eps)
    return plain.rms_norm(x, weight, eps)


def conv_silu(x, weight, bias):
    """SiLU of a causal convolution; see `plain.conv_silu`. `bias` may be None."""
    if bias is None:
        bias = weight.new_zeros(len(weight))
    if _compiled and _compiled.fits(x, weight, bias):
        return _compiled.Convolution.apply(x, weight, bias)
    return plain.conv_silu(x, weight, bias)


@_in_float32
def selective_scan(*inputs):
    """Mamba's recurrence; see `plain.selective_scan`."""
    if _compiled and _compiled.fits(*inputs):
        return _compiled.Recurrence.apply(*inputs)
    return plain.selective_scan(*inputs)


@_in_float32
def ssd(*inputs):
    """Mamba-2's recurrence; see `plain.ssd`."""
    if _compiled and _compiled.fits(*inputs):
        return _compiled.Recurrence.apply(*inputs)
    return plain.ssd(*inputs)
