"""What Mamba and Mamba-2 compute along the sequence, in the form that the job's backend names."""

import functools

import torch

from stateatlas.kernels import plain

_faster = None  # the module with other forms than the plain ones, where they are to be used


def use(backend: str) -> None:
    """Choose the form for this process: "torch" (plain PyTorch, also before any call), "compiled" or "mamba_ssm".

    Compiled kernels serve float32 and float64 on the CPU, those of mamba-ssm a GPU; elsewhere plain PyTorch still
    takes over.

    Raises
    ------
    ValueError
        If `backend` is none of them.
    compiler.CompilerError
        If "compiled" is asked for and the kernels cannot be compiled.
    ImportError
        If "mamba_ssm" is asked for and the packages do not work.
    """
    global _faster  # noqa: PLW0603 (a setting of the process, made once before any work)
    if backend not in ("torch", "compiled", "mamba_ssm"):
        raise ValueError(f"backend {backend!r}: must be 'torch', 'compiled' or 'mamba_ssm'")
    _faster = None
    if backend == "compiled":
        from stateatlas.kernels import compiled

        compiled.loaded(torch.float32)
        _faster = compiled
    if backend == "mamba_ssm":
        from stateatlas.kernels import mamba_ssm

        mamba_ssm.loaded()
        _faster = mamba_ssm


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
    return (_form(x, weight) if x.ndim == 3 else plain).rms_norm(x, weight, eps)


def conv_silu(x, weight, bias):
    """SiLU of a causal convolution; see `plain.conv_silu`. `bias` may be None."""
    if bias is None:
        bias = weight.new_zeros(len(weight))
    return _form(x, weight, bias).conv_silu(x, weight, bias)


@_in_float32
def selective_scan(*inputs):
    """Mamba's recurrence; see `plain.selective_scan`."""
    return _form(*inputs).selective_scan(*inputs)


@_in_float32
def ssd(*inputs):
    """Mamba-2's recurrence; see `plain.ssd`."""
    return _form(*inputs).ssd(*inputs)


def _form(*inputs):
    return _faster if _faster and _faster.fits(*inputs) else plain
