"""Greedy answers of language models: every token is run once, and what the blocks know of the earlier ones is kept."""

import numpy as np
import torch

from stateatlas import units
from stateatlas.adapters import Adapter
from stateatlas.memory import in_parts

BATCH = 64  # prompts
PIECE = 128  # tokens whose part in a state is computed at a time


@torch.inference_mode()
def greedy(model: Adapter, prompts: list[np.ndarray], number: int) -> list[np.ndarray]:
    """Return the `number` most likely tokens after every prompt, int64, as `generate` of `transformers` finds them.

    prompts: 1-d int64 each. Prompts of one length are run together: there is no padding.
    """
    answers: list[np.ndarray] = [np.zeros(0, np.int64)] * len(prompts)
    for rows in batches(prompts):
        tokens = torch.from_numpy(np.stack([prompts[i] for i in rows])).to(next(model.parameters()).device)
        parts = in_parts(lambda part, tokens=tokens: _answers(model, tokens[part], number), len(rows), len(rows))
        for row, answer in zip(rows, torch.cat(parts).cpu().numpy(), strict=True):
            answers[row] = answer
    return answers


def batches(prompts: list[np.ndarray], most: int = BATCH) -> list[list[int]]:
    """Return the indices of prompts of one length, at most `most` together."""
    by_length: dict[int, list[int]] = {}
    for i, prompt in enumerate(prompts):
        by_length.setdefault(len(prompt), []).append(i)
    return [rows[i : i + most] for rows in by_length.values() for i in range(0, len(rows), most)]


def _answers(model: Adapter, tokens: torch.Tensor, number: int) -> torch.Tensor:
    """Return the next tokens, (batch, number)."""
    kind, memories, answers = units.family(model.family), [], []
    stream = model.embed(tokens)
    for index in range(model.depth):
        memory = None
        for piece in stream.split(PIECE, dim=1):
            memory = kind.remember(model, index, piece, memory)
        memories.append(memory)
        stream = model.block(index, stream)
    while True:
        answers.append(model.read(stream[:, -1:]).argmax(-1))
        if len(answers) == number:
            return torch.cat(answers, dim=1)
        stream = model.embed(answers[-1])
        for index in range(model.depth):
            before, memory = stream, memories[index]
            stream = kind.advance(model, index, before, memory)
            memories[index] = kind.remember(model, index, before, memory)
