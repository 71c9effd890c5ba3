"""Whether mamba-ssm's kernels compute what plain PyTorch computes, on the device at hand.

Values and gradients of every kernel, at the sizes of our blocks and of the published models, against the plain form
in float64.
"""

import itertools
from collections.abc import Iterator

import torch

from stateatlas.job import InputError
from stateatlas.kernels import mamba_ssm, plain

# Of the norm of what is compared. A GPU may round the factors of a product to 11 bits in float32 (TF32) and has 8 in
# bfloat16; a gradient can cancel to a twentieth of its terms.
BOUNDS = {torch.float32: 1e-2, torch.bfloat16: 8e-2}
LENGTHS = (1, 40, 300)  # 300: more than a chunk of theirs
SIZES = {  # (heads, channels a head, states); Mamba has no heads
    "conv_silu": ((1, 160, 0),),
    "selective_scan": ((1, 64, 16),),
    "ssd": ((8, 16, 32), (4, 64, 128)),  # ours, and the published models'
}
ARGUMENTS = {
    "conv_silu": ("x", "weight", "bias"),
    "selective_scan": ("u", "delta", "a", "b", "c", "skip", "gate"),
    "ssd": ("u", "delta", "a", "b", "c", "skip", "gate"),
}


def differences(device: str) -> Iterator[dict]:
    """Yield a row for every kernel, dtype, size, and value or gradient.

    A row has kernel, dtype, sizes, of ("value" or the argument that the gradient is taken to), difference (norm of
    the difference over the norm of what is right) and bound.

    Raises
    ------
    InputError
        If these kernels cannot run on `device`.
    """
    mamba_ssm.loaded()
    for (name, sizes), dtype, length in itertools.product(SIZES.items(), BOUNDS, LENGTHS):
        for heads, size, states in sizes:
            given = [x.to(device, dtype) for x in draw(name, length, heads, size, states)]
            if not mamba_ssm.fits(*given):
                raise InputError(f"mamba-ssm computes on a GPU and {device} is none; set backend: torch in config.yaml")
            found = _with_gradients(getattr(mamba_ssm, name), given)
            right = _with_gradients(getattr(plain, name), [x.cpu().double() for x in given])
            for of, one, other in zip(("value", *ARGUMENTS[name]), found, right, strict=True):
                apart = (one.cpu().double() - other).norm() / other.norm().clamp(min=1e-30)
                yield {
                    "kernel": name,
                    "dtype": str(dtype).removeprefix("torch."),
                    "sizes": f"length {length}, {heads} x {size} channels, {states} states",
                    "of": of,
                    "difference": float(apart),
                    "bound": BOUNDS[dtype],
                }


def draw(name: str, length: int, heads: int, size: int, states: int) -> list[torch.Tensor]:
    """Return what a kernel takes (see `plain`), for two sequences, in float32."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    channels = heads * size
    if name == "conv_silu":
        return [normal(2, length, channels), normal(channels, 1, 4), normal(channels)]
    shape = (heads,) if name == "ssd" else (channels, states)
    units = heads if name == "ssd" else channels
    tokens = [normal(2, length, width) for width in (channels, states, states, channels)]
    delta, a = 0.1 * normal(2, length, units).abs(), -1 - 15 * torch.rand(shape, generator=generator)
    return [tokens[0], delta, a, tokens[1], tokens[2], normal(channels), tokens[3]]


def check(rows: list[dict]) -> None:
    """Raise InputError if a difference is larger than its bound or no number."""
    wrong = [row for row in rows if not row["difference"] <= row["bound"]]
    if wrong:
        worst = max(wrong, key=lambda row: row["difference"] / row["bound"])
        of = "value" if worst["of"] == "value" else f"gradient of {worst['of']}"
        raise InputError(
            f"mamba-ssm's {worst['kernel']} is not what plain PyTorch computes: its {of} is {worst['difference']:.2g} "
            f"of its norm away in {worst['dtype']} ({worst['sizes']}), allowed is {worst['bound']:g}; "
            f"{len(wrong)} of {len(rows)} comparisons fail. Install the versions of envs/mamba.yaml, or set "
            "backend: torch in config.yaml"
        )


def _with_gradients(form, values: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the value, and the gradient of its product with fixed random numbers to every argument."""
    leaves = [x.clone().requires_grad_() for x in values]
    value = form(*leaves)
    toward = torch.randn(value.shape, generator=torch.Generator().manual_seed(1)).to(value)
    return [value.detach(), *torch.autograd.grad(value, leaves, toward)]
