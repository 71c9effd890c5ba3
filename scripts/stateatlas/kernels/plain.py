"""The recurrences, the convolution and the norm in plain PyTorch: for every device, dtype and transform."""

import torch
from torch.nn import functional as F
from torch.nn.functional import silu

CHUNK = 32  # tokens; memory grows with the length times this


def rms_norm(x, weight, eps):
    """Root-mean-square norm over the last dimension."""
    return F.rms_norm(x, weight.shape, weight, eps)


def conv_silu(x, weight, bias):
    """SiLU of a causal convolution of every channel with its own weights.

    x: (batch, length, channels); weight: (channels, 1, size), as in `nn.Conv1d`; bias: (channels,).
    Returns y, as x.
    """
    length, size = x.shape[1], weight.shape[2]
    padded = F.pad(x, (0, 0, size - 1, 0))  # (batch, size - 1 + length, channels)
    y = bias
    for k in range(size):  # on the CPU faster than conv1d
        y = torch.addcmul(y, padded[:, k : k + length], weight[:, 0, k])
    return silu(y)


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
    """Mamba-2's recurrence in chunks (arXiv 2405.21060, section 6), with skip and gate.

    As `selective_scan`, but the channels of a head share Δ and A: delta is (batch, length, heads) and
    a is (heads,). Inside a chunk it is a masked product as in attention; a state goes from chunk to chunk.
    """
    length = u.shape[1]
    inputs = u.unflatten(-1, (len(a), -1)) * delta[..., None]
    inputs = inputs.transpose(1, 2)  # (batch, heads, length, head size)
    # Differences of sums lose digits where Δ is large; in float64 enough are left.
    log_decay = (delta * a).double().transpose(1, 2)  # (batch, heads, length)
    state, outputs = None, []
    for start in range(0, length, CHUNK):
        part = slice(start, min(start + CHUNK, length))
        b_part, c_part, inputs_part = b[:, part], c[:, part], inputs[:, :, part]
        since = log_decay[..., part].cumsum(-1)  # log decay from before the chunk to each token
        size = since.shape[-1]
        later = torch.ones(size, size, dtype=torch.bool, device=u.device).triu(1)
        between = since[..., :, None] - since[..., None, :]  # (batch, heads, to, from)
        decay = between.masked_fill(later, -torch.inf).to(u.dtype).exp()
        y = ((c_part @ b_part.mT)[:, None] * decay) @ inputs_part
        if state is not None:  # (batch, heads, states, head size), before the chunk
            y = y + (c_part[:, None] @ state) * since.to(u.dtype).exp()[..., None]
        if part.stop < length:
            left = (since[..., -1:] - since).to(u.dtype).exp()[..., None]
            new = b_part[:, None].mT @ (inputs_part * left)
            state = new if state is None else new + state * since[..., -1:, None].to(u.dtype).exp()
        outputs.append(y)
    y = torch.cat(outputs, dim=2).transpose(1, 2).flatten(2)  # (batch, length, channels)
    return (y + skip * u) * silu(gate)
