"""A residual model whose linear response is known in closed form, and prompts for it."""

import torch

from stateatlas.field import Field
from stateatlas.prompts import Prompt
from stateatlas.residual import Residual

WIDTH, LENGTH, VOCABULARY, BEND = 6, 5, 8, 0.3


class Toy(Residual):
    """Block L0 mixes tokens linearly, R + M R W; block L1 bends every channel, R + .3 R^2; the head is linear."""

    def __init__(self, bend: float = BEND):
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        self.depth, self.width, self.bend, self.calls = 2, WIDTH, bend, []
        self.mix = torch.rand(LENGTH, LENGTH, generator=draw, dtype=torch.float64).tril()
        self.turn = torch.randn(WIDTH, WIDTH, generator=draw, dtype=torch.float64)
        self.table = torch.nn.Parameter(torch.randn(VOCABULARY, WIDTH, generator=draw, dtype=torch.float64), False)
        self.head = torch.randn(VOCABULARY, WIDTH, generator=draw, dtype=torch.float64)

    def embed(self, tokens):
        return self.table[tokens]

    def block(self, index, stream):
        self.calls.append(index)
        mix = self.mix[: stream.shape[1], : stream.shape[1]]
        return stream + (mix @ stream @ self.turn if index == 0 else self.bend * stream**2)

    def read(self, stream):
        return stream @ self.head.T


def prompts(number: int = 4) -> list[Prompt]:
    """Return prompts in pairs, each other's partner."""
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, VOCABULARY, (number, LENGTH), generator=draw)
    tokens[:, 0], tokens[::2, 1], tokens[1::2, 1] = 0, 1, 2
    return [Prompt("toy", tokens[i], 3, 5, tokens[i ^ 1], 3, 5) for i in range(number)]


def fields(model: Residual, number: int = 4) -> list[Field]:
    return [Field(model, prompt) for prompt in prompts(number)]
