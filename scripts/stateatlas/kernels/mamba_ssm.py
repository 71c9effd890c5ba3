"""The recurrences and the convolution as the authors' packages compute them on a GPU: mamba-ssm and causal-conv1d.

They read and write what the forms in `plain` do. Their gradients cannot be differentiated again.
"""

import torch
from torch.autograd import forward_ad

from stateatlas.kernels import plain

DEVICE = "cuda"
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
TAPS = (2, 3, 4)  # sizes of a convolution that causal-conv1d has
CHUNK = 256  # tokens, as in the authors' Mamba-2
PACKAGES = ("mamba_ssm", "causal_conv1d")

rms_norm = plain.rms_norm


def loaded() -> None:
    """Import the packages. Raises ImportError, with the remedy, if they are not there or do not work."""
    try:
        import causal_conv1d  # noqa: F401
        import mamba_ssm.ops.selective_scan_interface
        import mamba_ssm.ops.triton.ssd_combined  # noqa: F401
    except Exception as error:  # whatever a build for another torch or CUDA leads to
        raise ImportError(
            f"mamba-ssm or causal-conv1d does not work here ({type(error).__name__}: {error}); install the versions of "
            "envs/mamba.yaml, or set backend: torch in config.yaml (slower, same results within check_backend's bounds)"
        ) from error


def fits(*tensors: torch.Tensor) -> bool:
    """Return whether these kernels can take the tensors: on a GPU, and not in a transform of `torch.func` or in
    forward-mode differentiation."""
    return (
        all(t.device.type == DEVICE and t.dtype in DTYPES for t in tensors)
        and not torch._C._are_functorch_transforms_active()
        and forward_ad._current_level < 0
    )


def conv_silu(x, weight, bias):
    """`plain.conv_silu`."""
    from causal_conv1d import causal_conv1d_fn

    if weight.shape[2] not in TAPS:
        return plain.conv_silu(x, weight, bias)
    return causal_conv1d_fn(x.mT, weight[:, 0], bias, activation="silu").mT


def selective_scan(*inputs):
    """`plain.selective_scan`; in float32, since a state sums over the whole sequence."""
    from mamba_ssm.ops.selective_scan_interface import selective_scan_fn

    u, delta, a, b, c, skip, gate = (x.float() for x in inputs)
    return selective_scan_fn(u.mT, delta.mT, a, b.mT, c.mT, skip, gate.mT).mT.to(inputs[0].dtype)


def ssd(*inputs):
    """`plain.ssd`; in float32, too."""
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

    u, delta, a, b, c, skip, gate = (x.float() for x in inputs)
    u, gate, skip = (x.unflatten(-1, (len(a), -1)) for x in (u, gate, skip))  # (..., heads, head size)
    b, c = b[:, :, None], c[:, :, None]  # one group
    y = mamba_chunk_scan_combined(u, delta, a, b, c, CHUNK, D=skip, z=gate)
    return y.flatten(2).to(inputs[0].dtype)
