"""The recurrences and the convolution in C, compiled at first use, for the CPU in float32 and float64."""

import ctypes
import functools
import hashlib
import itertools
import os
import tempfile
from pathlib import Path

import torch
from torch.autograd import forward_ad

from stateatlas import compiler
from stateatlas.kernels import plain

SOURCES = sorted(Path(__file__).parent.glob("*.[ch]"))
DEFINES = {
    torch.float32: ("-DREAL=float", "-DDOUBLE=0"),
    torch.float64: ("-DREAL=double", "-DDOUBLE=1"),
}


class Tokens(ctypes.Structure):
    """`tokens` of vectors.h: a (batch, length, width) array and how far its tokens are apart."""

    _fields_ = (("start", ctypes.c_void_p), ("stride", ctypes.c_long))


@functools.cache
def loaded(dtype: torch.dtype) -> ctypes.CDLL:
    """Return the compiled kernels for `dtype`, from the user's cache if they were built before.

    Raises
    ------
    compiler.CompilerError
        If there is no working compiler or it cannot compile the kernels.
    """
    command = compiler.find()
    try:
        if command is None:
            tried = os.environ.get("CC", "cc, gcc and clang")
            raise compiler.CompilerError(f"no working C compiler: tried {tried}")
        return _load(command, DEFINES[dtype])
    except (compiler.CompilerError, OSError) as error:
        raise compiler.CompilerError(
            f"the kernels in {SOURCES[0].parent} could not be compiled: {error}\n"
            "Install a C compiler, or set backend: torch in config.yaml (slower, same results to rounding)."
        ) from error


def _load(command: str, defines: tuple[str, ...]) -> ctypes.CDLL:
    parts = ([s.read_text() for s in SOURCES], compiler.FLAGS, defines, compiler.target(command))
    name = f"kernels-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}.so"
    try:
        cached = _cache() / name
        return ctypes.CDLL(str(cached))
    except OSError:  # not built yet
        pass
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, name)
        compiler.build(command, [s for s in SOURCES if s.suffix == ".c"], built, defines)
        try:
            # Renamed into place: jobs that build at the same time see a whole file or none.
            with tempfile.NamedTemporaryFile(dir=_cache(), delete=False) as copy:
                copy.write(built.read_bytes())
            os.replace(copy.name, cached)
        except OSError:  # no place to keep it
            return ctypes.CDLL(str(built))
        return ctypes.CDLL(str(cached))


def _cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stateatlas"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def fits(*tensors: torch.Tensor) -> bool:
    """Return whether the compiled kernels can take these tensors, here and now.

    Not on other devices, in half precision, under autocast, in `torch.func` transforms or in forward-mode
    differentiation.
    """
    dtype = tensors[0].dtype
    return (
        dtype in DEFINES
        and all(t.device.type == "cpu" and t.dtype == dtype for t in tensors)
        and not torch.is_autocast_enabled("cpu")
        and not torch._C._are_functorch_transforms_active()
        and forward_ad._current_level < 0
    )


@functools.cache
def _parallel():
    """Return OpenMP's "call this function in so many threads" as torch has loaded it, or None."""
    # Torch's own threads: others would share the cores with these, which spin for a while after each operation.
    return getattr(ctypes.CDLL(None), "GOMP_parallel", None)


def _run(function: str, rows: int, sizes: tuple[float, ...], tensors: tuple[torch.Tensor, ...]) -> None:
    """Run a C function over all batch rows; tensors of three dimensions are passed as `tokens`."""
    call = getattr(loaded(tensors[0].dtype), function)
    arguments = [(ctypes.c_double if isinstance(s, float) else ctypes.c_long)(s) for s in sizes]
    for t in tensors:
        arguments.append(Tokens(t.data_ptr(), t.stride(1)) if t.ndim == 3 else ctypes.c_void_p(t.data_ptr()))
    threads = max(1, min(torch.get_num_threads(), rows)) if _parallel() else 1
    stretches, statuses = itertools.count(), []

    def work(_=None):
        while (i := next(stretches)) < threads:  # OpenMP may give fewer threads than asked for
            ends = ctypes.c_long(rows * i // threads), ctypes.c_long(rows * (i + 1) // threads)
            statuses.append(call(*ends, *arguments))  # ctypes lets go of the GIL

    if threads == 1:
        work()
    else:
        _parallel()(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(work), None, threads, 0)
    if any(statuses):
        raise MemoryError(f"{function}: no memory for its working space; length, channels, ... are {sizes}")
    if len(statuses) < threads:
        raise RuntimeError(f"{function} was interrupted")


def _regular(t: torch.Tensor) -> torch.Tensor:
    """Return `t` with channels side by side and tokens evenly spaced, copied only if it must be."""
    if t.ndim == 3 and t.stride(2) == 1 and t.stride(0) == t.shape[1] * t.stride(1):
        return t
    return t.contiguous()


class Convolution(torch.autograd.Function):
    """`plain.conv_silu`, compiled."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        x = _regular(x)
        y = x.new_empty(x.shape)
        taps = weight.flatten(1).t().contiguous()  # (size, channels)
        _run("conv_forward", x.shape[0], (*x.shape[1:], len(taps)), (x, taps, bias, y))
        ctx.save_for_backward(x, weight, bias)
        return y

    @staticmethod
    def backward(ctx, gy):
        x, weight, bias = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is asked for
            y = plain.conv_silu(x, weight, bias)
            return torch.autograd.grad(y, (x, weight, bias), gy, create_graph=True)
        rows, length, channels = x.shape
        taps = weight.flatten(1).t().contiguous()
        gx, gtaps, gbias = x.new_empty(x.shape), x.new_empty(rows, taps.numel()), x.new_empty(rows, channels)
        sizes = (length, channels, len(taps))
        _run("conv_backward", rows, sizes, (x, taps, bias, _regular(gy), gx, gtaps, gbias))
        return gx, gtaps.sum(0).view(taps.shape).t().reshape(weight.shape), gbias.sum(0)


class Norm(torch.autograd.Function):
    """`plain.rms_norm`, compiled."""

    @staticmethod
    def forward(ctx, x, weight, eps):
        x = _regular(x)
        y = x.new_empty(x.shape)
        _run("norm_forward", x.shape[0], (*x.shape[1:], eps), (x, weight, y))
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return y

    @staticmethod
    def backward(ctx, gy):
        x, weight = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is asked for
            y = plain.rms_norm(x, weight, ctx.eps)
            return *torch.autograd.grad(y, (x, weight), gy, create_graph=True), None
        gx, gweight = x.new_empty(x.shape), x.new_zeros(x.shape[0], len(weight))
        _run("norm_backward", x.shape[0], (*x.shape[1:], ctx.eps), (x, weight, _regular(gy), gx, gweight))
        return gx, gweight.sum(0), None


class Recurrence(torch.autograd.Function):
    """`plain.selective_scan` (two-dimensional `a`) and `plain.ssd` (one-dimensional `a`), compiled."""

    @staticmethod
    def forward(ctx, *inputs):
        u, delta, a, b, c, skip, gate = inputs = tuple(map(_regular, inputs))
        y = u.new_empty(u.shape)
        ctx.name = "mamba" if a.ndim == 2 else "mamba2"
        ctx.sizes = (*u.shape[1:], b.shape[2], u.shape[2] // delta.shape[2])
        by_state = a.t().contiguous()  # (states, channels)
        _run(f"{ctx.name}_forward", u.shape[0], ctx.sizes, (u, delta, by_state, b, c, skip, gate, y))
        ctx.save_for_backward(*inputs)
        return y

    @staticmethod
    def backward(ctx, gy):
        inputs = u, delta, a, b, c, skip, gate = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is asked for
            form = plain.selective_scan if a.ndim == 2 else plain.ssd
            return torch.autograd.grad(form(*inputs), inputs, gy, create_graph=True)
        rows, by_state = u.shape[0], a.t().contiguous()
        gu, gb, gc, ggate = (t.new_empty(t.shape) for t in (u, b, c, gate))
        gdelta = delta.new_zeros(delta.shape)
        # One gradient a row: they are summed in the same order whatever the number of threads.
        ga, gskip = a.new_zeros(rows, a.numel()), skip.new_empty(rows, skip.numel())
        given = (u, delta, by_state, b, c, skip, gate, _regular(gy))
        _run(f"{ctx.name}_backward", rows, ctx.sizes, (*given, gu, gdelta, ga, gb, gc, gskip, ggate))
        return gu, gdelta, ga.sum(0).view(by_state.shape).t(), gb, gc, gskip.sum(0), ggate


rms_norm, conv_silu = Norm.apply, Convolution.apply
selective_scan = ssd = Recurrence.apply
