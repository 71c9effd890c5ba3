"""The authors' packages on a CPU: their plain PyTorch references, and their Triton kernels in Triton's interpreter.

`import authors` comes before any import of them. Built without CUDA they lack two compiled modules, which must be
there, empty, to import the rest; what stands in for a device must answer what the kernels' launchers ask.
"""

import contextlib
import os
import sys
import types

os.environ["TRITON_INTERPRET"] = "1"
for name in ("selective_scan_cuda", "causal_conv1d_cuda"):
    sys.modules[name] = types.ModuleType(name)

import torch  # noqa: E402
import triton  # noqa: E402

_autotune = triton.autotune
triton.autotune = lambda configs, **more: _autotune(configs=configs[:1], **more)  # the others are other speeds
torch.cuda.device = lambda *_: contextlib.nullcontext()
torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(multi_processor_count=1)
torch.set_num_threads(1)

import causal_conv1d  # noqa: E402
from causal_conv1d.causal_conv1d_interface import causal_conv1d_ref  # noqa: E402

# In CUDA alone: their own references stand in.
causal_conv1d.causal_conv1d_fn = causal_conv1d_ref

from mamba_ssm.modules import mamba_simple  # noqa: E402
from mamba_ssm.ops import selective_scan_interface  # noqa: E402

for module in (mamba_simple, selective_scan_interface):
    module.selective_scan_fn = selective_scan_interface.selective_scan_ref

from stateatlas.kernels import mamba_ssm  # noqa: E402

mamba_ssm.DEVICE = "cpu"
