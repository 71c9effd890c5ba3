"""The residual model: everything the studies do is said with `embed`, `block`, `read`, `states` and `resume`.

Site 0 is the embedding; site l + 1 is the output of block L<l>. The stream at the last site is *before* the final
norm, which belongs to `read`. `Residual` is what holds for every model, `ResidualModel` the formal ones.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import torch
from torch import nn

from stateatlas import blocks

Edit = Callable[[torch.Tensor], torch.Tensor]
POSITIONS = 256  # rows of the learned position table (protocol A: positions past the training length are untrained)


@dataclass(frozen=True)
class Shape:
    """What `config.json` of a model holds. `mlp_width` 0 means no MLP (the stock form of Mamba)."""

    architecture: str
    width: int
    layers: int
    mlp_width: int
    vocabulary: int
    classes: int
    positions: bool


class Residual(nn.Module):
    """A model as a stream that blocks write to: tokens in, logits at every position out.

    Tokens are (batch, length) int64, the stream is (batch, length, width) and logits are (batch, length, classes),
    both float32 unless the model was converted. A subclass gives `depth`, the number of blocks, `width`, and the
    three methods that raise here; `config` is what `config.json` of a saved model holds.
    """

    depth: int
    width: int
    config: dict

    @property
    def sites(self) -> int:
        """Number of sites: the embedding and the output of every block."""
        return self.depth + 1

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the stream at site 0."""
        raise NotImplementedError

    def block(self, index: int, stream: torch.Tensor) -> torch.Tensor:
        """Return the stream at site `index + 1`, given the one at site `index`."""
        raise NotImplementedError

    def read(self, stream: torch.Tensor) -> torch.Tensor:
        """Return the logits, given the stream at the last site."""
        raise NotImplementedError

    def states(self, tokens: torch.Tensor) -> list[torch.Tensor]:
        """Return the stream at every site."""
        stream = self.embed(tokens)
        streams = [stream]
        for index in range(self.depth):
            stream = self.block(index, stream)
            streams.append(stream)
        return streams

    def resume(self, stream: torch.Tensor, site: int, edit: Edit | None = None) -> torch.Tensor:
        """Return the logits when the model runs on from `stream` at `site`, edited first."""
        if not 0 <= site < self.sites:
            raise ValueError(f"site {site}: the model has sites 0 to {self.sites - 1}")
        if edit is not None:
            stream = edit(stream)
        for index in range(site, self.depth):
            stream = self.block(index, stream)
        return self.read(stream)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.resume(self.embed(tokens), 0)


class ResidualModel(Residual):
    """A formal model: embedding, blocks and a linear read-out at every position."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape, self.depth, self.width = shape, shape.layers, shape.width
        self.config = asdict(shape)
        mixer = blocks.load(shape.architecture)
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.position = nn.Embedding(POSITIONS, shape.width) if shape.positions else None
        self.blocks = nn.ModuleList(blocks.Block(mixer, shape.width, shape.mlp_width) for _ in range(shape.layers))
        self.norm = mixer.Norm(shape.width, eps=1e-5)
        self.head = nn.Linear(shape.width, shape.classes)

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        stream = self.embedding(tokens)
        if self.position is None:
            return stream
        return stream + self.position.weight[: tokens.shape[1]]

    def block(self, index: int, stream: torch.Tensor) -> torch.Tensor:
        return self.blocks[index](stream)

    def read(self, stream: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(stream))


def parameters(shape: Shape) -> int:
    """Count the parameters of a model."""
    # Built for real: the meta device would import a compiler that costs seconds.
    with torch.random.fork_rng(devices=[]):
        return sum(p.numel() for p in ResidualModel(shape).parameters())


def matched_shape(architecture: str, width: int, layers: int, vocabulary: int, classes: int, **form) -> Shape:
    """Return the shape whose parameter count is nearest the Transformer's (MLP four times the width).

    `form` overrides fields of `Shape`: `mlp_width=0` gives the stock form, `positions=False` a Transformer
    without positions.
    """
    positions = blocks.load(architecture).positions
    shape = Shape(architecture, width, layers, 4 * width, vocabulary, classes, positions)
    # The Transformer's count in closed form, so that another architecture's results do not hang on its code.
    target = layers * width * (12 * width + 13) + width * (vocabulary + POSITIONS + classes + 2) + classes
    per_unit = layers * (2 * width + 1)  # parameters that one more MLP unit brings
    mlp_width = shape.mlp_width - round((parameters(shape) - target) / per_unit)
    return replace(shape, **{"mlp_width": mlp_width} | form)
