"""Models of llama2.c (Karpathy 2023), such as stories260K, as checkpoints of `transformers`.

The legacy file of a model is seven int32 (width, MLP width, layers, heads, key and value heads, vocabulary, context)
and then float32 tensors; the file of a tokenizer is one int32 and then a float32 score, an int32 length and as many
bytes for every piece (`run.c` and `tokenizer.py` of llama2.c).
"""

import struct
from pathlib import Path

import numpy as np
import torch

from stateatlas.job import InputError

UNKNOWN, BOS, EOS = "<unk>", "<s>", "</s>"


def convert(model: Path, tokenizer: Path, folder: Path) -> None:
    """Write a model and its tokenizer to `folder`, as `save_pretrained` does.

    Raises
    ------
    InputError
        If a file does not have the length that its header asks for.
    """
    read_model(model).save_pretrained(folder)
    read_tokenizer(tokenizer).save_pretrained(folder)


def read_model(path: Path):
    """Return the `LlamaForCausalLM` in a legacy float32 file."""
    from transformers import LlamaConfig, LlamaForCausalLM

    data = path.read_bytes()
    width, hidden, layers, heads, key_heads, vocabulary, context = struct.unpack_from("<7i", data)
    head, tied = width // heads, vocabulary > 0
    config = LlamaConfig(
        hidden_size=width, intermediate_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=key_heads, vocab_size=abs(vocabulary), max_position_embeddings=context, rms_norm_eps=1e-5,
        rope_theta=10000.0, tie_word_embeddings=tied, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    read = _Tensors(path, np.frombuffer(data, "<f4", offset=28))
    weights = {"model.embed_tokens.weight": read(abs(vocabulary), width)}
    # Each kind of tensor stands in the file for all layers at once.
    for name, rows, columns in (
        ("input_layernorm", width, None),
        ("self_attn.q_proj", heads * head, width),
        ("self_attn.k_proj", key_heads * head, width),
        ("self_attn.v_proj", key_heads * head, width),
        ("self_attn.o_proj", width, width),
        ("post_attention_layernorm", width, None),
        ("mlp.gate_proj", hidden, width),
        ("mlp.down_proj", width, hidden),
        ("mlp.up_proj", hidden, width),
    ):
        for layer in range(layers):
            tensor = read(rows) if columns is None else read(rows, columns)
            rotated = name in ("self_attn.q_proj", "self_attn.k_proj")
            weights[f"model.layers.{layer}.{name}.weight"] = _halves(tensor, head) if rotated else tensor
    weights["model.norm.weight"] = read(width)
    read(context, head)  # cosines and sines, not used
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"] if tied else read(-vocabulary, width)
    read.end()
    model = LlamaForCausalLM(config)
    model.load_state_dict(weights)
    return model.eval()


def _halves(weight: torch.Tensor, head: int) -> torch.Tensor:
    """Order the rows of every head for rotations of (i, i + head / 2) instead of (2 i, 2 i + 1)."""
    return weight.view(-1, head // 2, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


class _Tensors:
    """The tensors of a file, one after the other."""

    def __init__(self, path: Path, numbers: np.ndarray):
        self.path, self.numbers, self.used = path, numbers, 0

    def __call__(self, *shape: int) -> torch.Tensor:
        start, self.used = self.used, self.used + int(np.prod(shape))
        if self.used > len(self.numbers):
            raise InputError(f"{self.path} ends before the tensors that its header asks for; fetch it again")
        return torch.tensor(self.numbers[start : self.used]).view(*shape)

    def end(self) -> None:
        if self.used < len(self.numbers):
            raise InputError(f"{self.path}: not a legacy float32 file of llama2.c; export it as version 0")


def read_tokenizer(path: Path):
    """Return the `LlamaTokenizer` in a tokenizer file; `<s>` comes first in what it encodes."""
    from transformers import LlamaTokenizer

    scores = _pieces(path)
    ids = {piece: i for i, piece in enumerate(scores)}
    # SentencePiece joins the pair whose joint piece scores highest; `tokenizers` wants the pairs in that order.
    pairs = [
        (-score, ids[piece], (piece[:i], piece[i:]))
        for piece, score in scores.items()
        for i in range(1, len(piece))
        if piece[:i] in ids and piece[i:] in ids
    ]
    return LlamaTokenizer(
        vocab=ids, merges=[pair for *_, pair in sorted(pairs)], unk_token=UNKNOWN, bos_token=BOS, eos_token=EOS,
        add_bos_token=True,
    )  # fmt: skip


def _pieces(path: Path) -> dict[str, float]:
    """Return {piece: score} in the order of the ids, written as SentencePiece does."""
    data, place, scores = path.read_bytes(), 4, {}
    while place < len(data):
        score, length = struct.unpack_from("<fi", data, place)
        piece, place = data[place + 8 : place + 8 + length], place + 8 + length
        scores[piece.decode("utf-8").replace(" ", "▁")] = score
    special = {f"\n{BOS}\n": BOS, f"\n{EOS}\n": EOS}
    return {special.get(piece, piece): score for piece, score in scores.items()}
