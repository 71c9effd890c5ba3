"""Both forms of the kernels are the recurrences of the papers, value and gradient, wherever they are used."""

import os
import subprocess
import sys
import threading
import time

import pytest
import recurrences
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from stateatlas import compiler, kernels
from stateatlas.kernels import plain

C = plain.CHUNK
LENGTHS = [1, C - 1, C, C + 1, 3 * C + 5]
NAMES = ["selective_scan", "ssd", "conv_silu", "rms_norm"]
needs_compiler = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler here")


@pytest.fixture(params=["torch", pytest.param("compiled", marks=needs_compiler)])
def backend(request):
    kernels.use(request.param)
    yield request.param
    kernels.use("torch")


@pytest.fixture
def compiled():
    kernels.use("compiled")
    yield
    kernels.use("torch")


@pytest.fixture
def threads():
    """Set torch's threads, and put them back."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def inputs(name, batch=3, length=7, heads=4, head=5, states=6, scale=1.0, dtype=torch.float64):
    """Draw what a kernel takes; token arrays are parts of wider ones, as in the blocks. `scale` multiplies Δ."""
    torch.manual_seed(0)
    channels = heads * head

    def tokens(width):
        return torch.randn(batch, length, width + 3, dtype=torch.float64)[..., 1 : width + 1].to(dtype)

    if name == "rms_norm":
        drawn = [tokens(channels), torch.randn(channels)]
    elif name == "conv_silu":
        drawn = [tokens(channels), torch.randn(channels, 1, 4), torch.randn(channels)]
    else:
        shared = name == "ssd"
        delta = tokens(heads if shared else channels).abs() * 0.1 * scale
        a = -(1 + 15 * torch.rand(heads)) if shared else -(1 + 15 * torch.rand(channels, states))
        drawn = [tokens(channels), delta, a, tokens(states), tokens(states), torch.randn(channels), tokens(channels)]
    return [x.to(dtype).requires_grad_() for x in drawn]


def call(module, name, values):
    return getattr(module, name)(*values, *([1e-5] if name == "rms_norm" else []))


def value_and_gradients(module, name, values):
    y = call(module, name, values)
    torch.manual_seed(1)
    toward = torch.randn(y.shape, dtype=torch.float64).to(y.dtype)
    return [y.detach(), *torch.autograd.grad(y, values, toward)]


def furthest(found, expected):
    """Largest difference of each tensor, relative to the largest entry."""
    pairs = zip(found, expected, strict=True)
    return max(((f - e).abs().max() / e.abs().max().clamp(min=1e-30)).item() for f, e in pairs)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", NAMES)
def test_float64_is_the_literal_recurrence(backend, name, length):
    values = inputs(name, length=length)
    expected = value_and_gradients(recurrences, name, values)
    assert furthest(value_and_gradients(kernels, name, values), expected) < 1e-10


@pytest.mark.parametrize("scale", [1, 100])
@pytest.mark.parametrize("name", NAMES)
def test_float32_is_the_literal_recurrence_also_where_delta_is_large(backend, name, scale):
    values = inputs(name, length=3 * C + 5, scale=scale, dtype=torch.float32)
    expected = value_and_gradients(recurrences, name, [v.detach().double().requires_grad_() for v in values])
    assert furthest(value_and_gradients(kernels, name, values), expected) < 1e-5


@pytest.mark.parametrize(("heads", "head"), [(1, 1), (3, 1), (2, 16), (2, 32), (1, 67)])
@pytest.mark.parametrize("name", NAMES)
def test_any_number_of_channels(backend, name, heads, head):
    values = inputs(name, heads=heads, head=head)
    expected = value_and_gradients(recurrences, name, values)
    assert furthest(value_and_gradients(kernels, name, values), expected) < 1e-10


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_of_first_and_second_order(backend, name):
    values = inputs(name, batch=2, length=3, heads=2, head=2, states=2)
    assert torch.autograd.gradcheck(lambda *v: call(kernels, name, v), values)
    assert torch.autograd.gradgradcheck(lambda *v: call(kernels, name, v), values)


@pytest.mark.parametrize("name", NAMES)
def test_transforms_see_the_same_function(backend, name):
    values = tuple(v.detach() for v in inputs(name))
    toward = tuple(torch.ones_like(v) for v in values)

    def function(*v):
        return call(kernels, name, v)

    y, slope = torch.func.jvp(function, values, toward)
    step = 1e-6
    ahead, behind = (function(*(v + sign * step for v in values)) for sign in (1, -1))
    assert furthest([y, slope], [function(*values), (ahead - behind) / (2 * step)]) < 1e-6
    torch.testing.assert_close(torch.func.vjp(function, *values)[0], y)
    two = torch.stack([values[0]] * 2)
    torch.testing.assert_close(torch.func.vmap(lambda first: function(first, *values[1:]))(two)[1], y)
    with torch.autograd.forward_ad.dual_level():
        dual = [torch.autograd.forward_ad.make_dual(v, t) for v, t in zip(values, toward, strict=True)]
        torch.testing.assert_close(torch.autograd.forward_ad.unpack_dual(function(*dual)).tangent, slope)


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_takes_the_plain_form(backend, name):
    values = [v.detach().bfloat16() for v in inputs(name)]
    assert torch.equal(call(kernels, name, values), call(plain, name, values))


@pytest.mark.parametrize("name", ["conv_silu", "rms_norm"])
def test_under_autocast_convolution_and_norm_take_the_plain_form(backend, name):
    values = [v.detach().float() for v in inputs(name)]
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(call(kernels, name, values), call(plain, name, values))


@pytest.mark.parametrize("name", ["selective_scan", "ssd"])
def test_under_autocast_a_recurrence_runs_in_float32(backend, name):
    halves = [v.detach().bfloat16() for v in inputs(name)]
    with torch.autocast("cpu", torch.bfloat16):
        y = call(kernels, name, halves)
    assert torch.equal(y, call(kernels, name, [v.float() for v in halves]))


def test_a_convolution_may_have_no_bias(backend):
    x, weight, bias = inputs("conv_silu", dtype=torch.float32)
    torch.testing.assert_close(kernels.conv_silu(x, weight, None), kernels.conv_silu(x, weight, torch.zeros_like(bias)))


@pytest.mark.parametrize("name", NAMES)
def test_a_sequence_alone_and_in_a_batch(backend, name):
    values = inputs(name, batch=5, length=2 * C, dtype=torch.float32)
    alone = [v[2:3] if v.ndim == 3 and v.shape[0] == 5 else v for v in values]
    assert furthest([call(kernels, name, alone)[0]], [call(kernels, name, values)[2]]) < 1e-5


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_the_compiled_form_gives_the_same_bytes_for_any_number_of_threads(compiled, threads, name):
    values = inputs(name, batch=5, length=C, heads=3, head=16, dtype=torch.float32)
    results = []
    for number in (1, 2, 3, 8):
        threads(number)
        results.append(value_and_gradients(kernels, name, values))
    for result in results[1:]:
        assert all(torch.equal(x, y) for x, y in zip(result, results[0], strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_a_number_stays_so(backend, name):
    values = [v.detach() for v in inputs(name)]
    values[0][1, 2] = torch.nan
    y = call(kernels, name, values)
    assert y[1, 2].isnan().all()
    assert y[0].isfinite().all()
    if name in ("selective_scan", "ssd"):
        values[2][0] = torch.nan  # A of the first channel or head
        y = call(kernels, name, values)
        assert y[0, 1:, 0].isnan().all()
        assert y[0, :, -1].isfinite().all()


@pytest.mark.parametrize("name", ["selective_scan", "ssd"])
def test_memory_grows_with_the_length_not_its_square(name):
    class Largest(TorchDispatchMode):
        numbers = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            self.numbers = max(self.numbers, out.numel() if isinstance(out, torch.Tensor) else 0)
            return out

    largest = []
    for length in (4 * C, 16 * C):
        with Largest() as mode:
            call(plain, name, [v.detach() for v in inputs(name, length=length)])
        largest.append(mode.numbers)
    assert largest[1] <= 4 * largest[0]


def test_an_unknown_backend_is_refused():
    with pytest.raises(ValueError, match=r"'cuda'.*'torch', 'compiled' or 'mamba_ssm'"):
        kernels.use("cuda")


@pytest.fixture
def no_library_yet():
    """Forget compiled libraries and the compiler that was found, before and after."""
    from stateatlas.kernels import compiled

    def forget():
        compiled.loaded.cache_clear()
        compiler.find.cache_clear()

    forget()
    yield compiled
    forget()


def test_a_kernel_that_cannot_be_compiled_is_one_clear_error(no_library_yet, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "false")
    with pytest.raises(compiler.CompilerError, match=r"(?s)false.*backend: torch in config\.yaml"):
        kernels.use("compiled")
    monkeypatch.setattr(compiler, "find", lambda: "false")
    with pytest.raises(compiler.CompilerError, match=r"(?s)kernels .*: false -O3 .*backend: torch in config\.yaml"):
        kernels.use("compiled")
    assert call(kernels, "rms_norm", inputs("rms_norm")).isfinite().all()  # the plain form still serves


@needs_compiler
def test_jobs_that_compile_at_the_same_time_leave_one_whole_library(no_library_yet, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command, defines = compiler.find(), no_library_yet.DEFINES[torch.float32]
    loaded = []
    jobs = [threading.Thread(target=lambda: loaded.append(no_library_yet._load(command, defines))) for _ in range(3)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert len(loaded) == 3
    (library,) = (tmp_path / "stateatlas").iterdir()
    written = library.stat().st_mtime_ns
    no_library_yet._load(command, defines)
    assert library.stat().st_mtime_ns == written, "a second job compiled again"


@needs_compiler
def test_a_cache_that_cannot_be_written_does_not_stop_the_job(no_library_yet, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    kernels.use("compiled")
    assert furthest(*[value_and_gradients(m, "ssd", inputs("ssd")) for m in (kernels, recurrences)]) < 1e-10
    kernels.use("torch")


def test_the_compiler_is_looked_for_quickly_and_without_torch():
    code = "import sys; from stateatlas import compiler; compiler.available(); assert 'torch' not in sys.modules"
    paths = os.pathsep.join(sys.path)
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": paths})
    compiler.find.cache_clear()
    started = time.process_time()
    compiler.find()
    assert time.process_time() - started < 0.3


def test_cc_names_the_compiler(no_library_yet, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler --flag")
    assert compiler.find() is None
    if found := compiler.shutil.which("cc"):
        compiler.find.cache_clear()
        monkeypatch.setenv("CC", f"{found} -Wall")
        assert compiler.find() == f"{found} -Wall"
