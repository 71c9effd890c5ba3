"""The recurrences and the convolution in plain PyTorch: for every device, every dtype and every transform."""

import torch
from torch.nn.functional import conv1d, pad, silu


def conv_silu(x, weight, bias):
    """SiLU of a causal convolution of every channel with its own weights.

    x: (batch, length, channels); weight: (channels, 1, size), as in `nn.Conv1d`; bias: (channels,). Returns y, as x.
    """
    y = conv1d(pad(x.transpose(1, 2), (weight.shape[2] - 1, 0)), weight, bias, groups=weight.shape[0])
    return silu(y.transpose(1, 2))


def selective_scan(u, delta, a, b, c, skip, gate):
    """Mamba's recurrence (arXiv 2312.00752, algorithm 2), with skip and gate.

    h_t = exp(Δ_t A) h_(t-1) + Δ_t B_t u_t and y_t = (C_t h_t + D u_t) silu(gate_t), where D is `skip`.

    u, delta, gate: (batch, length, channels); a: (channels, states); b, c: (batch, length, states);
    skip: (channels,). Returns y, as u.
    """
    state = u.new_zeros(u.shape[0], u.shape[2], a.shape[1])
    outputs = []
    for u_t, d_t, b_t, c_t in zip(u.unbind(1), delta.unbind(1), b.unbind(1), c.unbind(1), strict=True):
        decay = torch.exp(d_t[..., None] * a)  # (batch, channels, states)
        state = decay * state + (d_t * u_t)[..., None] * b_t[:, None, :]
        outputs.append((state * c_t[:, None, :]).sum(-1))
    return (torch.stack(outputs, dim=1) + skip * u) * silu(gate)


def ssd(u, delta, a, b, c, skip, gate):
    """Mamba-2's recurrence in its quadratic form, one chunk (arXiv 2405.21060, section 6), with skip and gate.

    As `selective_scan`, but the channels of a head share Δ and A: delta is (batch, length, heads) and a is (heads,).
    """
    batch, length, channels = u.shape
    heads = u.view(batch, length, a.shape[0], -1)
    log_decay = (delta * a).transpose(1, 2)  # (batch, heads, length)
    mask = torch.ones(length, length, dtype=torch.bool, device=u.device)
    steps = log_decay[..., None].expand(*log_decay.shape, length).masked_fill(~mask.tril(-1), 0).cumsum(-2)
    decay = steps.masked_fill(~mask.tril(), -torch.inf).exp()  # (batch, heads, length, length)
    scores = torch.einsum("bin,bjn->bij", c, b)[:, None] * decay
    mixed = torch.einsum("bhij,bjhp->bihp", scores, heads * delta[..., None])
    return (mixed.reshape(batch, length, channels) + skip * u) * silu(gate)
