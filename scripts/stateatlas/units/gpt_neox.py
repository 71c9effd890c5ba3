"""The units of GPT-NeoX: its attention heads. They have no Δ and no gate."""

from typing import NamedTuple

import torch
from torch import nn
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb

from stateatlas.adapters.attention import rotations
from stateatlas.units import Change, Means, Observed


def mixer(block: nn.Module) -> nn.Module:
    """Return the part of a block that holds its units."""
    return block.attention


def number(mixer: nn.Module) -> int:
    """Return how many heads an attention has."""
    return mixer.dense.in_features // mixer.head_size


def output(mixer: nn.Module) -> nn.Linear:
    """Return the map that reads the units' outputs."""
    return mixer.dense


def channels(mixer: nn.Module, units: torch.Tensor) -> torch.Tensor:
    """Return the inner channels of some heads."""
    return (units[:, None] * mixer.head_size + torch.arange(mixer.head_size)).flatten()


def output_zero(mixer: nn.Module, units: torch.Tensor, means: Means | None) -> list[Change]:
    return [Change(mixer.dense, "weight", (slice(None), channels(mixer, units)), 0.0)]


def output_mean(mixer: nn.Module, units: torch.Tensor, means: Means) -> list[Change]:
    chosen = channels(mixer, units)
    mean = mixer.dense.weight[:, chosen] @ means.output[chosen].to(mixer.dense.weight)
    return [*output_zero(mixer, units, means), Change(mixer.dense, "bias", slice(None), mean, add=True)]


def uniform_attention(mixer: nn.Module, units: torch.Tensor, means: Means | None) -> list[Change]:
    """Without a query all scores are 0: a head takes the mean over the tokens so far."""
    size = mixer.head_size
    rows = (units[:, None] * 3 * size + torch.arange(size)).flatten()  # query, key and value of a head, side by side
    names = ["weight"] if mixer.query_key_value.bias is None else ["weight", "bias"]
    return [Change(mixer.query_key_value, name, rows, 0.0) for name in names]


INTERVENTIONS = {function.__name__: function for function in (output_zero, output_mean, uniform_attention)}
REMEMBERS_CHEAPLY = True  # keys and values


class Memory(NamedTuple):
    """Rotated keys and values of the tokens so far, (batch, heads, length, size) each."""

    keys: torch.Tensor
    values: torch.Tensor


def observe(model: nn.Module, index: int, stream: torch.Tensor) -> Observed:
    """Return what the heads of one block do, given the stream before it.

    The signal of a token is the attention that it receives, in the mean over the tokens that may attend to it.
    """
    weights, memory = attend(model, index, stream)
    may_attend = torch.arange(stream.shape[1], 0, -1, device=stream.device)
    received = (weights.sum(dim=2) / may_attend).transpose(1, 2)
    nothing, outputs = stream[..., :0], read(weights, memory)
    return Observed(received, nothing, nothing, outputs, written(model, index, stream, outputs))


def remember(model: nn.Module, index: int, stream: torch.Tensor, memory: Memory | None = None) -> Memory:
    """Return what a block knows after the tokens of `stream`, the stream before it, and those of `memory`."""
    return project(model, index, stream, memory)[1]


def advance(model: nn.Module, index: int, stream: torch.Tensor, memory: Memory) -> torch.Tensor:
    """Return the stream after a block, given that before it, for tokens that come after those of `memory`."""
    return written(model, index, stream, read(*attend(model, index, stream, memory)))


def project(
    model: nn.Module, index: int, stream: torch.Tensor, memory: Memory | None = None
) -> tuple[torch.Tensor, Memory]:
    """Return the queries of new tokens, (batch, heads, new, head size), and the memory with their keys and values."""
    block, start = model.blocks[index], 0 if memory is None else memory.keys.shape[2]
    attention = block.attention
    parts = attention.query_key_value(block.input_layernorm(stream)).unflatten(-1, (-1, 3 * attention.head_size))
    query, key, value = parts.transpose(1, 2).chunk(3, dim=-1)
    query, key = apply_rotary_pos_emb(query, key, *rotations(model.hub.gpt_neox.rotary_emb, stream, start))
    if memory is not None:
        key, value = torch.cat([memory.keys, key], dim=2), torch.cat([memory.values, value], dim=2)
    return query, Memory(key, value)


def attend(
    model: nn.Module, index: int, stream: torch.Tensor, memory: Memory | None = None
) -> tuple[torch.Tensor, Memory]:
    """Return the attention of new tokens to all, (batch, heads, new, all), and the memory with the new ones."""
    query, memory = project(model, index, stream, memory)
    scores = query @ memory.keys.transpose(2, 3) * model.blocks[index].attention.scaling
    before = scores.shape[3] - scores.shape[2]
    ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1 + before)
    return scores.masked_fill(ahead, -torch.inf).softmax(-1), memory


def read(weights: torch.Tensor, memory: Memory) -> torch.Tensor:
    """Return the outputs of all heads side by side, (batch, new, inner)."""
    return (weights @ memory.values).transpose(1, 2).flatten(2)


def written(model: nn.Module, index: int, stream: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
    """Return the stream after a block, given that before it and the outputs of its heads."""
    block = model.blocks[index]
    after = stream + block.attention.dense(outputs)
    seen = stream if block.use_parallel_residual else after
    return after + block.mlp(block.post_attention_layernorm(seen))
