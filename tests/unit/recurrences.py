"""The recurrences of Mamba and Mamba-2 as their papers define them: token by token, channel group by channel group."""

import torch


def silu(x):
    return x / (1 + torch.exp(-x))


def conv_silu(x, weight, bias):
    """Each channel's own weights on its last few tokens; before the first token there are zeros."""
    batch, length, channels = x.shape
    size = weight.shape[2]
    y = []
    for t in range(length):
        y_t = bias.expand(batch, channels)
        for k in range(size):
            if t - k >= 0:
                y_t = y_t + weight[:, 0, size - 1 - k] * x[:, t - k]
        y.append(silu(y_t))
    return torch.stack(y, dim=1)


def selective_scan(u, delta, a, b, c, skip, gate):
    """h_t = exp(Δ_t A) h_(t-1) + Δ_t B_t u_t, y_t = (C_t h_t + D u_t) silu(gate_t)."""
    batch, length, channels = u.shape
    h = torch.zeros(batch, channels, a.shape[1], dtype=u.dtype)
    y = []
    for t in range(length):
        decay = torch.exp(delta[:, t, :, None] * a)
        h = decay * h + delta[:, t, :, None] * b[:, t, None, :] * u[:, t, :, None]
        y.append((torch.einsum("bdn,bn->bd", h, c[:, t]) + skip * u[:, t]) * silu(gate[:, t]))
    return torch.stack(y, dim=1)


def ssd(u, delta, a, b, c, skip, gate):
    """As `selective_scan`, with one Δ and one A for all channels and states of a head."""
    head = u.shape[2] // len(a)
    delta = delta.repeat_interleave(head, dim=2)
    a = a.repeat_interleave(head)[:, None].expand(-1, b.shape[2])
    return selective_scan(u, delta, a, b, c, skip, gate)


def rms_norm(x, weight, eps):
    return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + eps) * weight
